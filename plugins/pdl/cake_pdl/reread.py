"""Order between grids, read from the PTX ISA (griddepcontrol) and apart from lowering."""

from __future__ import annotations

from cake_core.ptx.acts import Act, Moment, Reread, grids_ordered
from cake_core.ptx.reader import Statement


def _ordered(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`.wait` until the prerequisite grids have completed, `.launch_dependents` says that those that depend on this one may start."""
    return (grids_ordered({"wait": True, "launch_dependents": False}[s.words[1]]),)


REREADS = (Reread("griddepcontrol", _ordered, doc="PTX ISA, griddepcontrol"),)
