"""SHA-256 by the interpreter's own module is that of `hashlib`."""

from __future__ import annotations

import hashlib

import pytest

from cake_core.sha256 import sha256


@pytest.mark.parametrize("data", [b"", b"cake", bytes(range(256)) * 300])
def test_it_is_the_same(data):
    parts = sha256(data[:70])
    parts.update(data[70:])
    assert sha256(data).hexdigest() == parts.hexdigest() == hashlib.sha256(data).hexdigest()
