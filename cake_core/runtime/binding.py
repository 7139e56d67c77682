"""From the arguments of a call to checked values: sizes from shapes, the launch contract, and what pointers must keep.

Two steps, so that each is done once and cached: `bind_shapes` needs shapes, strides and element types only;
`check_pointers` needs addresses.
"""

from __future__ import annotations

import difflib
import math
import operator
from itertools import combinations
from typing import Any

from cake_core.artifact import Manifest, ParamInfo
from cake_core.frozen import frozen
from cake_core.runtime.elements import ELEMENTS, scalar_cell
from cake_core.runtime.errors import LaunchError
from cake_core.runtime.formula import Compiled, Value, compile_formula, formula_text
from cake_core.runtime.views import View, packed_strides


@frozen
class Signature:
    """A manifest's parameters, prepared once.

    `sizes`: scalars that some tensor's extent names, alone or with a number added, so that shapes give them. `positional`: the
    parameters that arguments without a name fill, in the order of the text: all but the sizes, and but what the runtime
    makes itself. `needed`: what can't be left out. `mapped`: tensors read or written through
    a tensor map. `packed`: tensors that must be contiguous.
    """

    manifest: Manifest
    scalars: tuple[ParamInfo, ...]
    tensors: tuple[ParamInfo, ...]
    sizes: frozenset[str]
    positional: tuple[ParamInfo, ...]
    outputs: tuple[str, ...]
    known: frozenset[str]
    needed: tuple[str, ...]
    mapped: frozenset[str]
    packed: frozenset[str]
    extents: dict[str, tuple[Compiled, ...]]
    requires: tuple[tuple[Compiled, str], ...]
    items: Compiled

    @property
    def kernel(self) -> str:
        return self.manifest.kernel


def read_signature(m: Manifest) -> Signature:
    scalars = tuple(p for p in m.params if p.kind == "scalar")
    tensors = tuple(p for p in m.params if p.kind == "tensor")
    names = [p.name for p in scalars]
    sizes = frozenset(found[0] for p in tensors for d in p.shape if (found := _size(d)) is not None)
    pointers = {e.ref for e in m.entry_params if e.kind == "pointer"}
    return Signature(
        m,
        scalars,
        tensors,
        sizes,
        tuple(p for p in m.params if p.name not in sizes | m.hidden),
        tuple(p.name for p in tensors if p.mode != "in" and p.name not in m.workspaces),
        frozenset(p.name for p in m.params) - m.hidden,
        tuple(p.name for p in m.params if p.name not in sizes | m.hidden and p.mode != "out"),
        frozenset(t.tensor for t in m.tensor_maps),
        # The entry gets no strides, so a tensor with a plain pointer is addressed as packed whatever the flag says.
        frozenset(p.name for p in tensors if p.contiguous or p.name in pointers),
        {p.name: tuple(compile_formula(d, names) for d in p.shape) for p in tensors},
        tuple((compile_formula(c.formula, names), c.text) for c in m.requires),
        compile_formula(m.launch.items, names),
    )


def _size(dim: object) -> tuple[str, int] | None:
    """The scalar that an extent is, and what is added to it."""
    match dim:
        case str():
            return dim, 0
        case ["+", str(name), int(n)] | ["+", int(n), str(name)]:
            return name, n
        case ["-", str(name), int(n)]:
            return name, -n
    return None


def name_arguments(s: Signature, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by parameter name. An argument that is None counts as left out."""
    if len(args) > len(s.positional):
        takes = ", ".join(p.name for p in s.positional)
        raise LaunchError("runtime/too-many-arguments", f"'{s.kernel}' takes {len(s.positional)} positional arguments ({takes}), {len(args)} were given")
    given = {p.name: a for p, a in zip(s.positional, args)}
    for name, value in kwargs.items():
        if name not in s.known:
            near = [k for k in s.known if k.lower() == name.lower()] or difflib.get_close_matches(name, s.known, 1)
            fix = f"did you mean '{near[0]}'?" if near else f"its parameters are {', '.join(p.name for p in s.manifest.params if p.name in s.known)}"
            raise LaunchError("runtime/unknown-argument", f"'{s.kernel}' has no parameter '{name}'", fix=fix)
        if name in given:
            raise LaunchError("runtime/duplicate-argument", f"'{name}' is given twice, by position and by name")
        given[name] = value
    given = {k: v for k, v in given.items() if v is not None}
    for name in s.needed:
        if name not in given:
            raise LaunchError("runtime/missing-argument", f"'{s.kernel}' needs '{name}'", resource=name)
    return given


def scalar(p: ParamInfo, value: Any) -> int | float:
    """A scalar argument as a Python number that the parameter's type can hold."""
    e = ELEMENTS[p.elem]
    what = f"'{p.name}' is {value!r}, which is no {p.elem}"
    try:
        if e.lo is None:
            number = float(value)
            scalar_cell(e, number)
            return number
        number = operator.index(value)
    except (TypeError, ValueError, OverflowError):
        raise LaunchError("runtime/scalar", what, resource=p.name) from None
    if (isinstance(value, bool) and p.elem != "bool") or not e.lo <= number <= e.hi:
        raise LaunchError("runtime/scalar", what, why=f"{p.elem} holds {e.lo} to {e.hi}", resource=p.name)
    return number


@frozen
class Binding:
    """What shapes decide. `strides` in elements, those of extents of 0 and 1 made regular; `missing`: outputs to allocate."""

    values: dict[str, Value]
    shapes: dict[str, tuple[int, ...]]
    strides: dict[str, tuple[int, ...]]
    missing: tuple[str, ...]
    items: int


def bind_shapes(s: Signature, views: dict[str, View], scalars: dict[str, int | float]) -> Binding:
    """Check element types, ranks, sizes, contract and strides, in this order. Raises LaunchError."""
    for p in s.tensors:
        view = views.get(p.name)
        if view is None:
            continue
        if view.elem is not ELEMENTS[p.elem]:
            raise LaunchError("runtime/element-type", f"'{p.name}' holds {view.elem}, '{s.kernel}' needs {p.elem}", resource=p.name)
        if len(view.shape) != len(p.shape):
            message = f"'{p.name}' has {len(view.shape)} dimensions, '{s.kernel}' needs {len(p.shape)} {_shape_text(p.shape)}"
            raise LaunchError("runtime/rank", message, resource=p.name)
    values = solve_sizes(s, {n: v.shape for n, v in views.items()}, scalars, tuple(p.name for p in s.scalars))
    shapes = {p.name: tuple(_extent(s, p, i, values) for i in range(len(p.shape))) for p in s.tensors}
    for p in s.tensors:
        view = views.get(p.name)
        if view is not None and view.shape != shapes[p.name]:
            i = next(i for i, (a, b) in enumerate(zip(view.shape, shapes[p.name])) if a != b)
            message = f"'{p.name}' has {view.shape[i]} in dimension {i}, where '{formula_text(p.shape[i])}' is {shapes[p.name][i]}"
            raise LaunchError("runtime/shape", message, resource=p.name)
    for holds, text in s.requires:
        if not _evaluate(holds, values, text):
            at = ", ".join(f"{p.name} = {values[p.name]}" for p in s.scalars)
            raise LaunchError("runtime/require", f"'{s.kernel}' requires {text}", why=f"here {at}" if at else None)
    strides = {}
    for p in s.tensors:
        view = views.get(p.name)
        strides[p.name] = packed_strides(shapes[p.name]) if view is None else _strides(s, p, view)
        if p.name in s.mapped:
            strides[p.name] = _map_strides(p, shapes[p.name], strides[p.name])
    missing = tuple(p.name for p in s.tensors if p.name not in views)
    return Binding(values, shapes, strides, missing, _evaluate(s.items, values, "the number of work items"))


def solve_sizes(s: Signature, shapes: dict[str, tuple[int, ...]], scalars: dict[str, int | float], wanted: tuple[str, ...]) -> dict[str, Value]:
    """The values of scalars: as given, or from the extents that name them. All sources must agree, and `wanted` ones be found."""
    values: dict[str, Value] = dict(scalars)
    found: dict[str, str] = {name: f"the argument '{name}'" for name in scalars}
    infos = {p.name: p for p in s.scalars}
    for p in s.tensors:
        if p.name not in shapes:
            continue
        for i, (dim, extent) in enumerate(zip(p.shape, shapes[p.name])):
            if (size := _size(dim)) is None:
                continue
            where = f"dimension {i} of '{p.name}'"
            name, value = size[0], extent - size[1]
            if name not in values:
                values[name], found[name] = scalar(infos[name], value), where
            elif values[name] != value:
                message = f"'{name}' is {values[name]} by {found[name]} and {value} by {where}"
                raise LaunchError("runtime/size-conflict", message, resource=name)
    for name in wanted:
        if name not in values:
            fix = f"give '{name}', or an array whose shape has it"
            raise LaunchError("runtime/size-unknown", f"'{name}' can't be found from the arrays given", fix=fix, resource=name)
    return values


def _evaluate(formula: Compiled, values: dict[str, Value], text: str) -> Value:
    try:
        return formula(values)
    except ZeroDivisionError:
        raise LaunchError("runtime/division-by-zero", f"{text} divides by zero", why=f"the sizes are {values}") from None


def _extent(s: Signature, p: ParamInfo, i: int, values: dict[str, Value]) -> int:
    extent = _evaluate(s.extents[p.name][i], values, f"dimension {i} of '{p.name}'")
    if not isinstance(extent, int) or extent < 0:
        raise LaunchError("runtime/shape", f"dimension {i} of '{p.name}' is '{formula_text(p.shape[i])}' = {extent}", resource=p.name)
    return extent


def _strides(s: Signature, p: ParamInfo, view: View) -> tuple[int, ...]:
    """The view's strides, those of extents of 1 replaced by packed ones (libraries leave them arbitrary)."""
    if 0 in view.shape:
        return packed_strides(view.shape)
    strides, least = [], 1
    for extent, stride in zip(reversed(view.shape), reversed(view.strides)):
        strides.append(least if extent == 1 else stride)
        least = extent * max(strides[-1], 1)
    regular = tuple(reversed(strides))
    if p.name in s.packed:
        if any(n != 1 and a != b for n, a, b in zip(view.shape, regular, packed_strides(view.shape))):
            message = f"'{p.name}' has the strides {view.strides}; '{s.kernel}' needs it contiguous"
            raise LaunchError("runtime/strides", message, fix="pass a contiguous copy", resource=p.name)
        return packed_strides(view.shape)
    if regular and regular[-1] != 1:
        raise LaunchError("runtime/strides", f"'{p.name}' has the last stride {view.strides[-1]}; it must be 1", fix="pass a contiguous copy", resource=p.name)
    for i in range(len(regular) - 1):
        if regular[i] < regular[i + 1] * view.shape[i + 1]:
            message = f"'{p.name}' has the stride {view.strides[i]} in dimension {i}, over an inner extent of {regular[i + 1] * view.shape[i + 1]}"
            raise LaunchError("runtime/strides", message, why="rows may be padded, not overlapping, reversed or transposed", fix="pass a contiguous copy", resource=p.name)
    return regular


def _map_strides(p: ParamInfo, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides as a tensor map takes them: but for the last, multiples of 16 bytes and under 2**40 (CUDA driver API,
    cuTensorMapEncodeTiled). Strides over an extent of 0 or 1 step nowhere and are rounded up."""
    size = ELEMENTS[p.elem].bytes
    result = list(strides)
    for i in range(len(shape) - 1):
        if shape[i] <= 1 or 0 in shape:
            result[i] = -(-strides[i] * size // 16) * 16 // size
        elif strides[i] * size % 16 or strides[i] * size >= 2**40:
            message = f"'{p.name}' has a stride of {strides[i] * size} bytes in dimension {i}"
            raise LaunchError("runtime/strides", message, why="a tensor map needs multiples of 16 bytes", fix="pad its rows", resource=p.name)
    return tuple(result)


# --- addresses -------------------------------------------------------------------------------------------------


def check_pointers(s: Signature, b: Binding, views: dict[str, View]) -> int | None:
    """Alignment, writability, one device, no overlap of an output with anything. Returns the device's ordinal, None
    where no array has memory. Raises LaunchError.

    Overlap: a kernel's tensors are distinct unless its text declares an alias, and the compiler orders accesses on that
    ground; so an output that shares bytes with another argument is refused even where one kernel would bear it.
    """
    device, whose = None, None
    for p in s.tensors:
        view = views[p.name]
        if p.mode != "in" and view.readonly:
            raise LaunchError("runtime/read-only", f"'{p.name}' is read-only, and '{s.kernel}' writes it", resource=p.name)
        if 0 in view.shape:
            continue
        align = math.lcm(p.align, ELEMENTS[p.elem].bytes, 16 if p.name in s.mapped else 1)
        if view.pointer % align:
            message = f"'{p.name}' is at address {view.pointer:#x}, which is no multiple of {align}"
            raise LaunchError("runtime/alignment", message, fix="pass an aligned copy", resource=p.name)
        if view.device is not None:
            if device is not None and view.device != device:
                message = f"'{whose}' is on device {device} and '{p.name}' on device {view.device}"
                raise LaunchError("runtime/devices", message, fix="put all arrays on one device", resource=p.name)
            device, whose = view.device, p.name
    writes = frozenset(s.outputs) | s.manifest.workspaces
    for x, y in combinations([p.name for p in s.tensors if 0 not in views[p.name].shape], 2):
        if (x in writes or y in writes) and _overlap(b, views, x, y):
            out, other = (y, x) if y in writes else (x, y)
            message = f"'{out}', which '{s.kernel}' writes, shares memory with '{other}'"
            raise LaunchError("runtime/overlap", message, fix=f"pass another array for '{out}'", resource=out)
    return device


def _overlap(b: Binding, views: dict[str, View], x: str, y: str) -> bool:
    """Whether two tensors share a byte. Exact for packed ones and for column blocks of one padded matrix, else by extent."""
    sizes = [views[n].elem.bytes for n in (x, y)]
    start = [views[n].pointer for n in (x, y)]
    span = [(sum((e - 1) * st for e, st in zip(b.shapes[n], b.strides[n])) + 1) * size for n, size in zip((x, y), sizes)]
    if start[0] + span[0] <= start[1] or start[1] + span[1] <= start[0]:
        return False
    if all(len(b.shapes[n]) == 2 and b.shapes[n][0] > 1 for n in (x, y)):
        pitch = [b.strides[n][0] * size for n, size in zip((x, y), sizes)]
        width = [b.shapes[n][1] * size for n, size in zip((x, y), sizes)]
        column = (start[1] - start[0]) % pitch[0]
        if pitch[0] == pitch[1] and width[0] <= column and column + width[1] <= pitch[0]:
            return False
    return True


def _shape_text(shape: tuple) -> str:
    return "[" + ", ".join(map(formula_text, shape)) + "]"
