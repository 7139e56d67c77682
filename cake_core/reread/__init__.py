"""Reads the machine code of a kernel back and compares it with the facts that were proved: translation validation of barriers.

The text is read by a reader of its own (`ptx.reader`), its integer part executed for threads that stand for all, at a few small sizes, and what each
does to barriers, groups, fences and those who wait compared, act by act, with what the event machine has that thread do. So an error of
lowering that no operand shows, a parity, a slot, an address that is computed in registers, is found with the build.
"""

from cake_core.reread.judge import Reading, reread

__all__ = ["Reading", "reread"]
