"""What the host is told of a launch and what the entry declares, held against the facts: threads, cluster, shared memory, items, shapes and tensor maps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod

from cake_core.facts.schema import Facts
from cake_core.ir.types import ELEMENTS
from cake_core.lower import Lowered
from cake_core.machine.scenarios import value
from cake_core.machine.values import MachineError
from cake_core.ptx.reader import Entry

#: Bytes at a multiple of which dynamic shared memory starts, and sizes of parameters: a tensor map, a pointer (PTX ISA, tensor-map; CUDA C++ Programming Guide).
GRANULE, MAP_BYTES, POINTER_BYTES = 16, 128, 8
_TWO = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a // b, "%": lambda a, b: a % b,
    "min": min, "max": max, "ceildiv": lambda a, b: -(-a // b), "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


def launched(lowered: Lowered, facts: Facts, entry: Entry, align: int) -> Iterator[str]:
    """What differs for every launch, in words; `align`: of the plan in shared memory."""
    threads, launch = 32 * facts.warps, lowered.launch
    for where, number in (("the entry declares", entry.threads), ("the host launches", launch.threads)):
        if number is not None and number != threads:
            yield f"{where} {number} threads a CTA, its text has {threads}"
    declared = _declared(entry, ".reqnctapercluster")
    for where, number in (("the entry declares", declared), ("the host launches", launch.cluster)):
        if number is not None and number != facts.cluster:
            yield f"{where} clusters of {number}, its text has {facts.cluster}"
    if facts.cluster > 1 and declared is None:
        yield f"the entry declares no cluster, its text has {facts.cluster}"
    resident, wanted = _declared(entry, ".minnctapersm"), facts.launch.ctas_per_sm
    if wanted is not None and resident != wanted:
        yield f"the entry declares {resident} CTAs a multiprocessor, its text has {wanted}"
    planned = max((x.offset + x.bytes for x in (*facts.buffers.values(), *facts.barriers.values())), default=0)
    needed = planned + (align - GRANULE if planned else 0)
    if launch.shared_bytes < needed:
        yield f"the host gives {launch.shared_bytes} bytes of shared memory, its text needs {needed}"
    yield from _parameters(lowered, facts, entry)


def _parameters(lowered: Lowered, facts: Facts, entry: Entry) -> Iterator[str]:
    tensors = {t.name: t for t in facts.tensors}
    for (name, _), info in zip(entry.params, lowered.entry_params, strict=True):
        size = entry.sizes[name][1]
        needed = {"map": MAP_BYTES, "pointer": POINTER_BYTES}.get(info.kind)
        if needed is not None and size != needed:
            yield f"the parameter '{name}' has {size} bytes, a {info.kind} has {needed}"
    for m in lowered.tensor_maps:
        t = tensors[m.tensor]
        if ELEMENTS[m.elem].bits != t.bits or len(m.box) != len(t.shape):
            yield f"the map '{m.param}' is of {len(m.box)} dimensions of {ELEMENTS[m.elem].bits} bits, its tensor of {len(t.shape)} of {t.bits}"


def _declared(entry: Entry, name: str) -> int | None:
    """The product of the numbers behind a directive of the entry."""
    for d in entry.directives:
        if d.split()[0] == name:
            return prod(map(int, re.findall(r"\d+", d.removeprefix(name))))
    return None


def counted(lowered: Lowered, facts: Facts, params: Mapping[str, int]) -> Iterator[str]:
    """What differs at these sizes: how many items are launched, and the shapes of tensors."""
    try:
        pairs = [("launches", "items", lowered.launch.items, facts.launch.items)]
        shapes = {p.name: p.shape for p in lowered.params if p.kind == "tensor"}
        pairs += [("takes", f"for extent {d} of '{t.name}'", shapes[t.name][d], e) for t in facts.tensors for d, e in enumerate(t.shape)]
        for verb, what, formula, expr in pairs:
            got, wanted = of_formula(formula, params), value(expr, params)
            if got != wanted:
                yield f"the host {verb} {got} {what}, its text says {wanted}"
    except (MachineError, KeyError, ZeroDivisionError):
        return  # a size that these parameters do not decide


def of_formula(tree: object, params: Mapping[str, int]) -> int | bool:
    """A formula of the manifest in integers. Raises KeyError for what is no formula of parameters alone."""
    if isinstance(tree, bool | int):
        return tree
    if isinstance(tree, str):
        return params[tree]
    op, *args = tree
    match op:
        case "and":
            return all(of_formula(a, params) for a in args)
        case "or":
            return any(of_formula(a, params) for a in args)
        case "not":
            return not of_formula(args[0], params)
        case "if":
            return of_formula(args[1] if of_formula(args[0], params) else args[2], params)
        case "-" if len(args) == 1:
            return -of_formula(args[0], params)
    found = [of_formula(a, params) for a in args]
    out = found[0]
    for x in found[1:]:
        out = _TWO[op](out, x)
    return out
