"""PTX of other compilers, executed without a GPU: how their kernels are compiled and started.

Compilers are those of the extra `cross`; one that is missing is a failure. What they print is compiled anew in each run of the tests and kept nowhere.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path

import pytest

from cake_core.plugins import load_registry

os.environ.setdefault("TRITON_CACHE_DIR", os.path.join(tempfile.gettempdir(), f"cake-cross-{os.getpid()}"))
for _name in ("by_triton", "by_nvrtc"):
    if _name not in sys.modules:  # test folders are no packages
        _spec = importlib.util.spec_from_file_location(_name, Path(__file__).with_name(f"{_name}.py"))
        sys.modules[_name] = importlib.util.module_from_spec(_spec)
        _spec.loader.exec_module(sys.modules[_name])


@pytest.fixture(scope="session")
def emulates():
    return load_registry().emulates
