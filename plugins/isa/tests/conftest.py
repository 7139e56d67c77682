"""Instructions on registers, and values to try."""

from __future__ import annotations

import numpy as np
import pytest

from cake_core.emulate.registers import on_registers
from cake_core.plugins import load_registry


@pytest.fixture(scope="session")
def emulates():
    return load_registry().emulates


@pytest.fixture
def execute(emulates):
    """execute(statements, {name: values}, {name: type}): the registers afterwards, and no finding."""

    def run(statements, given, results, **more):
        done = on_registers(statements, {n: np.asarray(v) for n, v in given.items()}, results, emulates, **more)
        assert done.findings == []
        return done

    return run
