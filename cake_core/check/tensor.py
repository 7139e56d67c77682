"""Tensor memory: buffers lie apart inside what the CTA takes, and all that it takes is given back."""

from __future__ import annotations

from cake_core.check.subject import Subject
from cake_core.diagnostics import Related, Sink
from cake_core.effects import Free, Reserve
from cake_core.ir.flow import walk
from cake_core.source import Span


def check(subject: Subject, sink: Sink) -> None:
    taken, freed = (_amounts(subject, kind) for kind in (Reserve, Free))
    buffers = sorted(subject.plan.tensors.values(), key=lambda b: (b.column, b.name))
    for a, b in zip(buffers, buffers[1:], strict=False):
        if a.column + a.columns > b.column:
            sink.error(
                "core/tensor-overlap",
                f"'{b.name}' starts at column {b.column}, inside '{a.name}' ({a.column} to {a.column + a.columns - 1})",
                b.span,
                resource=b.name,
                related=(Related(f"'{a.name}' is here", a.span),),
                why="both would be the same cells of tensor memory",
            )
    if buffers and not taken:
        sink.error(
            "core/tensor-allocation",
            "the kernel takes no tensor memory",
            buffers[0].span,
            resource=buffers[0].name,
            why="another CTA of the multiprocessor may own the columns that it uses",
            fix="allocate them before the roles, by one whole warp",
        )
    if len(taken) > 1:
        sink.error(
            "core/tensor-allocation",
            f"the kernel takes tensor memory {len(taken)} times",
            taken[1][1],
            why="not analysed: which buffer lies in which allocation",
            fix="take all of it at once",
        )
        return
    held = sum(n for n, _ in taken)
    for b in buffers if taken else ():
        if b.column + b.columns > held:
            sink.error(
                "core/tensor-allocation",
                f"'{b.name}' ends at column {b.column + b.columns - 1}, and the CTA takes {held}",
                b.span,
                resource=b.name,
                related=(Related("taken here", taken[0][1]),),
                why="the columns behind belong to somebody else",
            )
    if held != sum(n for n, _ in freed):
        at = (freed or taken)[0][1]
        sink.error(
            "core/tensor-allocation",
            f"the kernel takes {held} columns of tensor memory and gives {sum(n for n, _ in freed) or 'none'} back",
            at,
            why="what a CTA does not give back is lost to those after it, which then wait for ever",
            fix="give back what was taken, behind the roles, by the warp that took it",
        )


def _amounts(subject: Subject, kind: type) -> list[tuple[int, Span]]:
    return [(e.amount, s.span) for s in walk(subject.kernel.body) for e in subject.effects(s) if isinstance(e, kind)]
