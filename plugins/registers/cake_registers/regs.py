"""`regs N` on a role's header: the role's warps own N registers a thread from its entry on."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.primitive import CheckContext, LowerContext, RoleWord

#: PTX ISA, setmaxnreg: the count is a multiple of 8 between 24 and 256.
GRANULE, LEAST, MOST = 8, 24, 256


def largest(cx: CheckContext) -> int:
    """The largest count that a thread can use: what the ISA takes, and no more than the target's registers a thread."""
    if cx.arch is None:
        return MOST
    return min(MOST, cx.arch.limit("registers_per_thread") // GRANULE * GRANULE)


@frozen(kw_only=True)
class Regs(RoleWord):
    def check(self, value: int, cx: CheckContext) -> None:
        """Raises `type/register-count` for a value that is no multiple of 8 in range, with the nearest that is."""
        top = largest(cx)
        if LEAST <= value <= top and value % GRANULE == 0:
            return
        nearest = min(max((value + GRANULE // 2) // GRANULE * GRANULE, LEAST), top)
        raise fail(
            "type/register-count",
            f"'regs {value}' is no register count that a role can own",
            why=f"a count is a multiple of {GRANULE} from {LEAST} to {top}",
            fix=f"write 'regs {nearest}'",
        )

    def lower(self, value: int, entry_registers: int, cx: LowerContext) -> None:
        """One instruction, or none where the role starts with what it asks for."""
        if value != entry_registers:
            action = "inc" if value > entry_registers else "dec"
            cx.b.emit(f"setmaxnreg.{action}.sync.aligned.u32", value)


REGS = Regs(
    name="regs",
    capabilities=frozenset({"setmaxnreg"}),
    groups_of=4,
    sets_registers=True,
    doc=(
        "Registers a thread that the role owns. Whole warpgroups execute it: the role is padded to four warps. More "
        "than at entry waits until other roles have given enough back. PTX ISA, setmaxnreg."
    ),
)
