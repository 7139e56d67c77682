"""griddepcontrol as it is executed without a GPU, apart from lowering (PTX ISA, Parallel Synchronization and Communication Instructions:
griddepcontrol)."""

from __future__ import annotations

from cake_core.ptx.emulated import Coder, Step
from cake_core.ptx.forms import Words
from cake_core.ptx.reader import Statement


def griddepcontrol(s: Statement, c: Coder) -> Step:
    """Grids are executed one after another, each to its end: `.wait` finds those in front complete and their writes visible, and `.launch_dependents`
    starts nobody early. A missing `.wait` shows nothing here."""
    w = Words(s, c)
    w.need("wait", "launch_dependents")
    w.end()
    return lambda lanes: None
