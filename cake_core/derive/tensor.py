"""Tensor memory: columns of its buffers, and the one allocation that a CTA makes for them (S18).

The first warp of the CTA takes as many columns as all buffers need, rounded up to what the hardware gives out, and writes
their address to a word of shared memory; every thread reads it once the CTA has met. When all roles have ended and the CTA
(or the cluster, whose other CTAs may still use this one's barriers) has met again, the same warp gives the columns back.
"""

from __future__ import annotations

from dataclasses import replace

from cake_core.architecture import Architecture
from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.ir.aliases import WORD, shared_with
from cake_core.ir.build import binary, index, lift
from cake_core.ir.nodes import Binding, Block, Declaration, Declare, If, Int, Kernel, Let, Name, TypeExpr, Word
from cake_core.ir.plan import TensorPlan, tensor_plan
from cake_core.primitive import Space


@frozen
class TensorMemory:
    """`word`: where the address is written. `declared`: the buffers with `at` and `base`. `take`, `free`: of the first warp.
    `address`: names the address once the CTA has met."""

    word: Declare
    declared: tuple[Declare, ...]
    take: Block
    address: Let
    free: Block


def plan_tensor(kernel: Kernel, registry, arch: Architecture, fresh) -> TensorMemory | None:
    """Columns in text order, those of others for buffers that share them. None where the kernel has no tensor memory. Raises CakeError where it does not fit."""
    found = [s for s in kernel.body if isinstance(s, Declare) and registry.spaces[s.space].memory == "tensor"]
    if not found:
        return None
    space: Space = registry.spaces[found[0].space]
    word, address = fresh(f"{space.name}_at"), fresh(f"{space.name}_base")
    column, declared = 0, []
    aligned = arch.limits.get("tensor_alignment")
    step = aligned.value if aligned is not None else 1
    columns: dict[str, int] = {}
    for s in found:
        if s.space != space.name:
            raise fail("derive/not-implemented", f"tensor memory of two spaces, '{space.name}' and '{s.space}'", s.span)
        placed = []
        for d in s.declarations:
            size: TensorPlan = tensor_plan(d, space)
            home = shared_with(d)
            columns[d.name] = column if home is None else columns[home]
            placed.append(_placed(d, columns[d.name], address))
            column += -(-size.columns // step) * step if home is None else 0
        declared.append(replace(s, declarations=tuple(placed)))
    amount = _amount(column, arch, declared[-1].declarations[-1])
    where = index(word, 0)
    return TensorMemory(
        word=Declare("shared", (Declaration(word, TypeExpr("u32", ((Int(1),),)), span=found[0].span),), span=found[0].span),
        declared=tuple(declared),
        take=space.allocate(where, amount),
        address=Let((Binding(address, space.address(where)),), span=found[0].span),
        free=space.release(Name(address), amount),
    )


def _placed(d: Declaration, column: int, address: str) -> Declaration:
    kept = tuple(w for w in d.words.items if w.name == WORD)
    return replace(d, words=replace(d.words, items=(Word("at", lift(column)), Word("base", Name(address)), *kept)))


def _amount(columns: int, arch: Architecture, last: Declaration) -> int:
    """The least power of two, of at least the granule, that holds the buffers."""
    limit, granule = (arch.limits.get(n) for n in ("tensor_columns", "tensor_granule"))
    if limit is None or granule is None:
        raise fail("derive/tensor-capacity", f"{arch.name} does not say how many columns of tensor memory it has", last.span)
    amount = granule.value
    while amount < columns:
        amount *= 2
    if amount > limit.value:
        raise fail(
            "derive/tensor-capacity",
            f"the buffers take {columns} columns of tensor memory",
            last.span,
            resource=last.name,
            why=f"{arch.name} has {limit.value} a CTA ({limit.source})",
            fix="fewer slots, or narrower tiles",
        )
    return amount


def by_first_warp(body: Block) -> If:
    """`if warp == 0 { body }`, outside roles."""
    return If(binary("==", "warp", 0), body, span=body[0].span)
