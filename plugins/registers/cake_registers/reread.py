"""How many registers a warp asks for, read from the PTX ISA (setmaxnreg) and apart from lowering."""

from __future__ import annotations

from cake_core.ptx.acts import Reread, worded

REREADS = (Reread("setmaxnreg", lambda s, at: (worded("regs", at.value(s.operands[0])),), doc="PTX ISA, setmaxnreg"),)
