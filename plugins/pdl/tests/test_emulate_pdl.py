"""griddepcontrol without a GPU: both forms are executed, others are refused."""

from __future__ import annotations

import numpy as np
import pytest

from cake_core.emulate.outcome import Unsupported
from cake_core.emulate.registers import on_registers
from cake_core.plugins import load_registry


def test_waits_end_and_launches_are_told_to_nobody():
    emulates = load_registry().emulates
    run = on_registers("griddepcontrol.wait;\nmov.b32 %a, 4;\ngriddepcontrol.launch_dependents;", {}, {"a": "uint32"}, emulates)
    assert run.findings == [] and run["a"].tolist() == [4] * 32
    with pytest.raises(Unsupported):
        on_registers("griddepcontrol.other;", {"a": np.zeros(32, np.uint32)}, {}, emulates)
