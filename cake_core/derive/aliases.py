"""Buffers that share bytes with those of a pipeline (S14): whether its other side is at work on them at the same time.

In a kernel whose items follow one another a role that has handed a slot on goes on with the next item. So who touches a buffer in
the bytes of the slots must hold all of them, or hold the other side back by another pipeline; which of its slots that one waits for
is for a proof to say. Of several producers the others fill the slots that one of them holds.
"""

from __future__ import annotations

from cake_core.derive.accesses import Touch
from cake_core.derive.held import HeldSlots
from cake_core.diagnostics import Related, Sink
from cake_core.ir.aliases import declared_mates
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Declare, For, Kernel, Pipeline, Role, Stmt


def touching(kernel: Kernel, touched: list[Touch]) -> list[Touch]:
    """Accesses of buffers that share bytes with others."""
    shared = declared_mates(kernel.body)
    return [t for t in touched if t.buffer in shared]


def check(kernel: Kernel, touched: list[Touch], held: dict[str, HeldSlots], sink: Sink) -> None:
    """`held`: by role, analysed, having watched the statements of `touching`. For a kernel whose CTAs take several items."""
    shared = declared_mates(kernel.body)
    pipelines = [s for s in kernel.body if isinstance(s, Pipeline)]
    item = {id(s) for r in kernel.roles for s in _of_items(r)}
    spans = {d.name: d.span for s in kernel.body if isinstance(s, Declare) for d in s.declarations}
    told = set()
    for t in touching(kernel, touched):
        for p in pipelines:
            mine = shared[t.buffer] & set(p.buffers)
            beside, others = _beside(p, t.role), _across(p, t.role)
            if not mine or not others or id(t.by) not in item or (t.role, t.buffer, p.name) in told:
                continue
            least = held[t.role].at.get(id(t.by), {}).get(p.name, (0, 0))[0]
            others = beside if least >= p.slots.value else others | beside
            if not others or any(q is not p and others & _across(q, t.role) for q in pipelines):
                continue
            told.add((t.role, t.buffer, p.name))
            mate, other = sorted(mine)[0], sorted(others)[0]
            sink.error(
                "derive/alias-at-once",
                f"'{t.buffer}' shares bytes with '{mate}', on which role '{other}' may be at work",
                t.by.span,
                role=t.role,
                resource=t.buffer,
                related=(Related(f"'{mate}' is declared here", spans[mate]),),
                why=f"role '{t.role}' surely holds {least} of {p.slots.value} slots of '{p.name}' here, and '{other}' "
                + ("fills them too (S14)" if other in beside else "goes on with the next item (S14)"),
                fix=("" if other in beside else "touch it while all slots are held, ")
                + "hold that role back by another pipeline, or give the buffer bytes of its own",
            )


def _across(p: Pipeline, role: str) -> frozenset[str]:
    """The roles at the other side of a pipeline; none where the role is at no end."""
    producers, consumers = ({e.name for e in ends} for ends in (p.producers, p.consumers))
    return frozenset(consumers if role in producers else producers if role in consumers else ())


def _beside(p: Pipeline, role: str) -> frozenset[str]:
    """The other producers of a pipeline that a role fills."""
    producers = {e.name for e in p.producers}
    return frozenset(producers - {role} if role in producers else ())


def _of_items(role: Role) -> list[Stmt]:
    return [x for s in role.body if isinstance(s, For) and s.hi is None for x in walk(s.body)]
