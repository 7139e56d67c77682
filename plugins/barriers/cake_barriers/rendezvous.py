"""Barriers that threads meet at: named barriers of a CTA, the CTA as a whole, a warp (PTX ISA, barrier, bar.warp.sync)."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.effects import Effect, Rendezvous
from cake_core.frozen import frozen
from cake_core.ir.build import op as statement
from cake_core.ir.nodes import Block, Int, Name, Op
from cake_core.ir.types import Scalar
from cake_core.primitive import CheckContext, DeriveContext, Form, LowerContext, Operation, Parameter, WordSpec

WARP = 32
CAPABILITIES = frozenset({"named_barrier"})


@frozen(kw_only=True)
class Sync(Operation):
    """`sync ROLE`: the threads of this instance meet; `sync ROLE all`: those of all instances.

    Derives to the fences that earlier writes still owe, then the barrier. One warp needs no named barrier, of which a CTA has few.
    """

    name: str = "sync"
    form: Form = Form.SCHEDULE
    operands: tuple[Parameter, ...] = (Parameter("role", "role"),)
    flags: tuple[str, ...] = ("all",)
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, barrier{.cta}; bar.warp.sync"

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (Rendezvous(_scope(op)),)

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        role = op.operands[0]
        if not isinstance(role, Name) or role.id != cx.role:
            named = f"'{role.id}'" if isinstance(role, Name) else "another role"
            raise fail(
                "derive/sync-role",
                f"'{cx.role}' syncs {named}",
                role.span,
                why="a role meets at barriers of its own",
                fix=f"write 'sync {cx.role}'",
            )
        fences = cx.pending_fences()
        if cx.warps == 1 and (_scope(op) == "instance" or cx.instances == 1):
            return (*fences, statement("warp.sync", at=op.span))
        identity, threads = cx.named_barrier(_scope(op))
        return (*fences, statement("bar.sync", identity, threads=threads, at=op.span))


def _scope(op: Op) -> str:
    return "role" if op.words.flag == "all" else "instance"


@frozen(kw_only=True)
class NamedBarrier(Operation):
    """What `bar.sync` and `bar.arrive` share. The id is a constant in each instance: a register would reserve all barriers.

    Where one code serves several instances (a role that is written `once`), there is one instruction for each id that it may be.
    """

    waits: bool
    form: Form = Form.DERIVED
    operands: tuple[Parameter, ...] = (Parameter("id", "integer"),)
    words: tuple[WordSpec, ...] = (WordSpec("threads", "constant", required=True, help="threads that meet, a multiple of 32"),)
    immediate: tuple[int, ...] = (0,)
    capabilities: frozenset[str] = CAPABILITIES

    def check(self, op: Op, cx: CheckContext) -> None:
        threads = op.words.get("threads")
        if isinstance(threads, Int) and (threads.value <= 0 or threads.value % WARP):
            raise fail(
                "ptx/barrier-threads",
                f"{threads.value} threads meet",
                threads.span,
                why=f"a named barrier counts whole warps of {WARP} threads",
            )
        identity = op.operands[0]
        if cx.arch is None or not isinstance(identity.type, Scalar):
            return
        ids, r = cx.arch.limit("named_barriers"), identity.type.range
        if (r.hi is not None and r.hi >= ids) or (r.lo is not None and r.lo < 0):
            raise fail(
                "ptx/barrier-id",
                f"named barrier {r.lo if r.lo == r.hi else f'{r.lo} to {r.hi}'}",
                identity.span,
                why=f"a CTA has barriers 0 to {ids - 1}",
            )

    def effects(self, op: Op) -> tuple[Effect, ...]:
        threads = op.words.get("threads")
        return (Rendezvous("instance", threads.value if isinstance(threads, Int) else None, op.operands[0], self.waits),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        identity, threads = cx.value(op.operands[0]), cx.constant(op.words.get("threads"))
        if isinstance(identity, int):
            cx.b.emit(self.name, identity, threads)
            return
        r = op.operands[0].type.range
        if r.lo is None or r.hi is None:
            cx.constant(op.operands[0])  # raises: nothing says which barriers it may be
        for known in range(r.lo, r.hi + 1):
            cx.b.emit(self.name, known, threads, guard=cx.b.compare("==", identity, known))


@frozen(kw_only=True)
class BarSync(NamedBarrier):
    """`bar.sync ID threads N`: N threads meet at named barrier ID."""

    name: str = "bar.sync"
    waits: bool = True
    doc: str = "PTX ISA, barrier{.cta} (bar.sync a, b)"


@frozen(kw_only=True)
class BarArrive(NamedBarrier):
    """`bar.arrive ID threads N`: these threads count among the N that meet at named barrier ID, and go on."""

    name: str = "bar.arrive"
    waits: bool = False
    doc: str = "PTX ISA, barrier{.cta} (bar.arrive a, b)"


@frozen(kw_only=True)
class CtaSync(Operation):
    """`cta.sync`: all threads of the CTA meet, at barrier 0, which no role is given."""

    name: str = "cta.sync"
    form: Form = Form.DERIVED
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, barrier{.cta} (bar.sync 0)"

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (Rendezvous("cta"),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit("bar.sync", 0)


@frozen(kw_only=True)
class WarpSync(Operation):
    """`warp.sync`: the lanes of each warp meet, and see each other's earlier accesses."""

    name: str = "warp.sync"
    form: Form = Form.DERIVED
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, bar.warp.sync"

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (Rendezvous("warp", WARP),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit("bar.warp.sync", -1)
