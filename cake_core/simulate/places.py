"""A place that a statement names: which part of which array, read and written with what is known of what was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cake_core.frozen import frozen
from cake_core.ir.types import Tile
from cake_core.machine import Kind, MachineError
from cake_core.primitive.simulated import dtype_of
from cake_core.simulate.expressions import Compiled, Env, Fragment

if TYPE_CHECKING:
    from cake_core.simulate.context import Context


@frozen
class Spot:
    """`slots`, `parts`: compiled indices; a part is its start and its size, None of a single index. `slot`: of the name in an environment, for
    what is in registers. `extents`: of a tensor."""

    name: str
    memory: str
    declared: Tile
    slots: tuple[Compiled, ...]
    parts: tuple[tuple[Compiled, Any], ...]
    transposed: bool
    slot: int
    extents: tuple[Compiled, ...] = ()

    # --- registers -------------------------------------------------------------------------------------------------

    def held(self, env: Env) -> Any:
        """A part of a fragment, or of a value that a `let` names."""
        x = env[self.slot]
        if isinstance(x, Fragment):
            x = x.whole(self._number(env))
        if isinstance(x, dict):
            return x
        return self._turned(x[self._box(env)])

    def assign(self, env: Env, value: Any) -> None:
        """Fill a fragment, or a part of it, with a value of its shape or with a scalar."""
        x: Fragment = env[self.slot]
        number = self._number(env)
        if value is None or isinstance(value, dict):
            x.arrays[number] = value
            return
        shape, dtype = tuple(self.declared.shape), dtype_of(self.declared.elem)
        box = self._box(env)
        if all(b == slice(0, n) for b, n in zip(box, shape, strict=True)):
            x.arrays[number] = np.broadcast_to(np.asarray(value).astype(dtype, copy=False), shape)
            return
        old = x.arrays[number]
        new = np.full(shape, np.nan if self.declared.elem.kind == "float" else -1, np.float32).astype(dtype) if old is None else old.copy()
        new[box] = value
        x.arrays[number] = new

    def _number(self, env: Env) -> int:
        number = 0
        try:
            for at, size in zip(self.slots, self.declared.slots, strict=True):
                number = number * size + int(at(env))
        except ZeroDivisionError:
            raise MachineError("a division by zero") from None
        return number

    def _box(self, env: Env) -> tuple:
        out = []
        for lo, size in self.parts:
            first = lo(env)
            out.append(int(first) if size is None else slice(int(first), int(first) + (size if isinstance(size, int) else int(size(env)))))
        return tuple(out)

    def _turned(self, x: Any) -> Any:
        return np.swapaxes(x, -1, -2) if self.transposed else x

    # --- memory ----------------------------------------------------------------------------------------------------

    def index(self, cx: Context) -> Index:
        """The place at the values at hand."""
        try:
            return self._at(cx.env)
        except ZeroDivisionError:
            raise MachineError("a division by zero") from None

    def _at(self, env: Env) -> Index:
        slots = tuple(_number(s(env)) for s in self.slots)
        lows, sizes = [], []
        for lo, size in self.parts:
            lows.append(_number(lo(env)))
            sizes.append(size if size is None or isinstance(size, int) else int(size(env)))
        limits = tuple(int(e(env)) for e in self.extents) if self.memory == "global" else tuple(self.declared.shape)
        return Index(self, slots, tuple(lows), tuple(sizes), limits)


def _number(x: Any) -> Any:
    """An index: a number, or an array of several warps' numbers."""
    if isinstance(x, np.ndarray):
        return int(x.flat[0]) if x.size == 1 else x
    return int(x)


@frozen
class Index:
    """A place at concrete indices. `lows`, `sizes`: one a dimension, a size None of a single index; `limits`: extents of the shape."""

    spot: Spot
    slots: tuple
    lows: tuple
    sizes: tuple
    limits: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(n for n in self.sizes if n is not None)

    def box(self, clip: int | None = None) -> tuple[tuple, tuple, bool]:
        """What lies inside of the extents: the index into the memory, that into the tile, and whether this is all of it. `clip`: an end of the
        first dimension that is sliced."""
        there, here, whole = [], [], True
        for lo, size, limit in zip(self.lows, self.sizes, self.limits, strict=True):
            if size is None:
                there.append(lo)
                continue
            end = limit
            if clip is not None:
                end, clip = min(limit, max(clip, 0)), None
            first, last = max(lo, 0), min(lo + size, end)
            whole &= first == lo and last == lo + size
            there.append(slice(first, max(first, last)))
            here.append(slice(first - lo, max(first, last) - lo))
        return (*self.slots, *there), tuple(here), whole

    def in_front(self) -> str | None:
        """In words, a dimension of a tensor in which a tile starts in front of its first element."""
        for lo, size in zip(self.lows, self.sizes, strict=True):
            if size is not None and (least := lo.min() if isinstance(lo, np.ndarray) else lo) < 0:
                return f"a tile of '{self.spot.name}' starts at {least}, in front of its first element"
        return None

    def outside(self) -> str | None:
        """In words, an index that the array does not have: tiles of tensors are clipped, single indices and buffers are not."""
        of = self.spot
        for what, lows, sizes, limits in (
            ("slot ", self.slots, (None,) * len(self.slots), of.declared.slots),
            ("", self.lows, self.sizes, self.limits),
        ):
            for lo, size, limit in zip(lows, sizes, limits, strict=False):
                if size is not None and of.memory == "global":
                    continue
                least, most = (lo.min(), lo.max()) if isinstance(lo, np.ndarray) else (lo, lo)
                if least < 0 or most + (size or 1) > limit:
                    at = f"{lo} +: {size}" if size is not None else str(most if most >= limit else least)
                    return f"{what}{at} of '{of.name}' is outside 0 .. {limit}"
        return None


def read(at: Index, cx: Context, fill: float, cta: int) -> Any:
    """A tile as an array of its own; one element as a number."""
    spot = at.spot
    dtype = dtype_of(spot.declared.elem)
    if (told := at.outside()) is not None:
        cx.tell(Kind.BOUNDS, told, spot.name)
        return np.full(at.shape, fill, np.float32).astype(dtype) if at.shape else dtype.type(fill)
    block = cx.block(spot, cta)
    there, here, whole = at.box()
    if spot.memory == "global":
        cx.touch(at, there, here, False)
    found = block.data[there]
    if block.written is not None:
        cx.check_written(at, block.written[there])
    if not whole:
        padded = np.full(at.shape, fill, np.float32).astype(dtype)
        padded[here] = found
        found = padded
    elif at.shape:
        found = found.copy()
    return spot._turned(found) if at.shape else _scalar(found, spot.declared.elem.kind)


def _scalar(x: Any, kind: str) -> Any:
    if isinstance(x, np.ndarray):
        return x.astype(np.int64) if kind in ("int", "uint") else x
    return int(x) if kind in ("int", "uint") else bool(x) if kind == "bool" else x


def write(at: Index, cx: Context, value: Any, clip: int | None, cta: int, mask: np.ndarray | None, combine: Callable | None) -> Any:
    """Put a value into its place. With `combine`: what was there."""
    spot = at.spot
    if (told := at.outside()) is not None:
        cx.tell(Kind.BOUNDS, told, spot.name)
        return 0
    block = cx.block(spot, cta)
    there, here, _ = at.box(clip)
    if spot.memory == "global":
        cx.touch(at, there, here, True, combine is not None)
    if spot.memory == "tensor":
        cx.memory.overwritten(cta, spot.name, at.slots, None if mask is None else mask.any(axis=-1))
    if combine is not None:
        return _combined(block, there, here, value, mask, combine, spot.declared.elem.kind)
    target = block.data[there] if at.shape else None
    if target is None:
        block.data[there] = np.asarray(value).astype(block.data.dtype)
    else:
        given = np.asarray(value)
        given = given[here] if given.shape == at.shape else given
        if mask is None:
            target[...] = given
        else:
            np.copyto(target, given.astype(target.dtype, copy=False), where=mask[here])
    if block.written is not None:
        if mask is None or not at.shape:
            block.written[there] = True
        else:
            flags = block.written[there]
            flags[mask[here]] = True
    return None


def _combined(block: Any, there: tuple, here: tuple, value: Any, mask: np.ndarray | None, combine: Callable, kind: str) -> Any:
    """One step for each element; where lanes name elements of their own, one lane after the other."""
    many = [np.asarray(x) for x in there if isinstance(x, np.ndarray)]
    given = np.asarray(value)
    if here:
        old = block.data[there].copy()
        new = combine(old, given[here] if given.ndim else given)
        block.data[there] = new if mask is None else np.where(mask[here], new, old)
        return old
    if not many and given.size == 1:
        old = block.data[there]
        block.data[there] = combine(old, given.reshape(()).astype(block.data.dtype)[()])
        return _scalar(old, kind)
    places = np.broadcast_arrays(given, *(np.asarray(x) for x in there))
    old = np.zeros(places[0].shape, np.int64 if kind in ("int", "uint") else block.data.dtype)
    for n in np.ndindex(places[0].shape):
        at = tuple(int(p[n]) for p in places[1:])
        old[n] = block.data[at]
        block.data[at] = combine(block.data[at], places[0][n].astype(block.data.dtype))
    return old
