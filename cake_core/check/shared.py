"""Shared memory: everything fits, nothing overlaps, swizzled buffers and barriers are aligned."""

from __future__ import annotations

from cake_core.check.subject import Subject
from cake_core.diagnostics import Related, Sink
from cake_core.ir.plan import BufferPlan

#: A swizzle pattern repeats every 8 of its rows (PTX ISA, tensor swizzling modes), so a slot starts at a multiple of that.
PATTERN_ROWS = 8
BARRIER_BYTES = 8


def check(subject: Subject, sink: Sink) -> None:
    plan, arch = subject.plan, subject.arch
    limit = arch.limit("shared_bytes_per_block")
    if plan.shared_bytes > limit:
        largest = max((*plan.buffers.values(), *plan.barriers.values()), key=lambda b: b.bytes)
        sink.error(
            "core/shared-capacity",
            f"the kernel needs {plan.shared_bytes} bytes of shared memory, {plan.shared_bytes - limit} over the limit",
            largest.span,
            resource=largest.name,
            why=f"{arch.name} has {limit} bytes a CTA ({arch.limits['shared_bytes_per_block'].source}); the largest part is '{largest.name}' with {largest.bytes}",
            fix="fewer slots, or smaller tiles",
        )
    for x in (*plan.buffers.values(), *plan.barriers.values()):
        if x.offset < 0:
            sink.error("core/alignment", f"'{x.name}' starts at {x.offset}, before the base", x.span, resource=x.name, why="offsets count from the aligned base of the CTA's shared memory")
    regions = sorted((*plan.buffers.values(), *plan.barriers.values()), key=lambda x: (x.offset, x.name))
    for a, b in zip(regions, regions[1:], strict=False):
        if a.offset + a.bytes > b.offset:
            sink.error("core/shared-overlap", f"'{b.name}' starts at {b.offset}, inside '{a.name}' ({a.offset} to {a.offset + a.bytes - 1})", b.span, resource=b.name, why="two buffers at one place overwrite each other", related=(Related(f"'{a.name}' is here", a.span),))
    for buffer in plan.buffers.values():
        _aligned(buffer, sink)
    for barrier in plan.barriers.values():
        if barrier.offset % BARRIER_BYTES:
            sink.error("core/alignment", f"barrier '{barrier.name}' at {barrier.offset} is not {BARRIER_BYTES}-byte aligned", barrier.span, resource=barrier.name, why="a barrier is one aligned word of 8 bytes")


def _aligned(b: BufferPlan, sink: Sink) -> None:
    need = PATTERN_ROWS * b.swizzle if b.swizzle else b.elem.bytes
    if b.swizzle not in (0, 32, 64, 128):
        sink.error("core/swizzle", f"'{b.name}' has a swizzle of {b.swizzle} bytes", b.span, resource=b.name, why="32, 64 and 128 exist")
    elif b.offset % need or b.slots and b.slot_bytes % need:
        sink.error(
            "core/alignment",
            f"'{b.name}' at {b.offset}{f' with slots of {b.slot_bytes} bytes' if b.slots else ''} is not aligned to {need} bytes",
            b.span,
            resource=b.name,
            why=f"a swizzle of {b.swizzle} bytes repeats every {need}" if b.swizzle else f"its elements have {need} bytes",
        )
