"""What a derived text says about resources, read into records: roles, buffers, barriers, launch.

Derivation writes these facts into the text (`at`, `pad`, `count`, `swizzle`); lowering, checks, manifest and the
command line read them from there, so a derived text that a person wrote is treated like a derived one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import prod
from types import MappingProxyType

from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.ir.aliases import mates, shared_with
from cake_core.ir.nodes import Declaration, Declare, Expr, Index, Int, Kernel, Name, Op, Role, Tuple, Words
from cake_core.ir.types import ELEMENTS, Elem
from cake_core.source import Span

#: The flag of a role whose code is written once for all instances, also where a barrier's identity depends on the instance.
ONCE = "once"


@frozen
class RolePlan:
    """`warps` of one instance; `first` warp of the CTA; `pad` idle warps behind the last instance; `entry`: role words. `on`:
    rank in its pair of the one CTA that has the role; None: every CTA has it."""

    name: str
    instances: int
    warps: int
    first: int
    pad: int
    entry: dict[str, int]
    span: Span
    on: int | None = None

    @property
    def end(self) -> int:
        """One past the last warp that belongs to the role, pads not included."""
        return self.first + self.instances * self.warps


@frozen
class BufferPlan:
    """A shared buffer. `slots` and `shape` constant; `offset` in bytes from the aligned base; `swizzle` in bytes, 0 none."""

    name: str
    elem: Elem
    slots: tuple[int, ...]
    shape: tuple[int, ...]
    offset: int
    swizzle: int
    span: Span
    alias: str | None = None  # the buffer in whose bytes it lies

    unit = "bytes"

    @staticmethod
    def of(d: Declaration) -> BufferPlan:
        """What a declaration says, sizes constant; what it does not say yet is 0."""
        *slots, shape = map(constants, d.declared.groups)
        flat = tuple(x for g in slots for x in g)
        at, swizzle = integer(d.words, "at"), integer(d.words, "swizzle")
        return BufferPlan(d.name, ELEMENTS[d.declared.name], flat, shape, at, swizzle, d.span, shared_with(d))

    @property
    def row_bytes(self) -> int:
        return self.shape[-1] * self.elem.bytes

    @property
    def slot_bytes(self) -> int:
        """Bytes from one slot to the next: the tile, rounded up to 128 where there are several slots of a larger tile."""
        tile = prod(self.shape) * self.elem.bytes
        return -(-tile // 128) * 128 if tile > 128 and self.slots else tile

    @property
    def bytes(self) -> int:
        return self.slot_bytes * prod(self.slots)

    @property
    def cells(self) -> range:
        """Where it lies, in bytes."""
        return range(self.offset, self.offset + self.bytes)


@frozen
class TensorPlan:
    """A buffer in tensor memory. `column` of its first slot from the allocation's address `base`; `slot_columns` from one
    slot to the next, equally many for each element of a row."""

    name: str
    elem: Elem
    slots: tuple[int, ...]
    shape: tuple[int, ...]
    column: int
    slot_columns: int
    base: Expr
    span: Span
    alias: str | None = None  # the buffer in whose columns it lies

    unit = "columns"

    @property
    def columns(self) -> int:
        return self.slot_columns * prod(self.slots)

    @property
    def cells(self) -> range:
        """Where it lies, in columns."""
        return range(self.column, self.column + self.columns)


#: A buffer in memory that has places: what is said of both kinds goes by `cells`, `slots`, `shape`, `alias` and `unit`.
Placed = BufferPlan | TensorPlan


def slot_cells(b: Placed, numbers: tuple[int, ...]) -> range:
    """The cells of the slots that `numbers`, of the first dimensions of slots, name."""
    number = 0
    for n, count in zip(numbers, b.slots, strict=False):
        number = number * count + n
    size = len(b.cells) // prod(b.slots[: len(numbers)])
    return range(b.cells.start + number * size, b.cells.start + (number + 1) * size)


@frozen
class BarrierPlan:
    name: str
    kind: str
    slots: int
    count: int
    offset: int
    span: Span

    @property
    def bytes(self) -> int:
        return 8 * self.slots


@frozen
class LaunchPlan:
    """The `launch ITEMS [persistent] [ctas n]` line of a derived text. Items are clusters."""

    items: Expr
    persistent: bool
    ctas_per_sm: int | None
    span: Span


@frozen
class Plan:
    roles: tuple[RolePlan, ...]
    buffers: dict[str, BufferPlan]
    barriers: dict[str, BarrierPlan]
    launch: LaunchPlan
    cluster: int
    tensors: dict[str, TensorPlan] = field(default_factory=dict)
    pair: bool = False

    @property
    def warps(self) -> int:
        return max((r.end + r.pad for r in self.roles), default=1)

    @property
    def threads(self) -> int:
        return 32 * self.warps

    @property
    def mates(self) -> dict[str, frozenset[str]]:
        """By buffer, those that it shares bytes, or columns, with by declaration (S14)."""
        return mates({b.name: b.alias for b in self.placed.values()})

    @property
    def placed(self) -> dict[str, Placed]:
        return self.buffers | self.tensors

    @property
    def planned_bytes(self) -> int:
        """Shared memory that buffers and barriers take, from the aligned base."""
        return max((x.offset + x.bytes for x in (*self.buffers.values(), *self.barriers.values())), default=0)

    @property
    def base_align(self) -> int:
        """Alignment that the base needs: a swizzle pattern repeats every 8 of its rows."""
        return max((8 * b.swizzle for b in self.buffers.values()), default=16) or 16

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a launch: planned bytes and the slack that aligns the base (dynamic memory is 16-byte aligned)."""
        planned = self.planned_bytes
        return planned + self.base_align if planned and self.base_align > 16 else planned


def integer(words: Words, name: str, default: int = 0) -> int:
    value = words.get(name)
    return value.value if isinstance(value, Int) else default


def constants(group: tuple[Expr, ...]) -> tuple[int, ...]:
    return tuple(e.value for e in group if isinstance(e, Int))


def layout_words(d: Declaration) -> dict[str, object]:
    """The words of a fragment's declaration that its layout reads: numbers, names and tuples of them."""
    return {w.name: _word(w.value) for w in d.words.items if w.name not in ("layout", "part")}


def _word(e: Expr):
    match e:
        case Int(v):
            return v
        case Name(id):
            return id
        case Tuple(items):
            return tuple(_word(i) for i in items)
    raise fail("derive/not-constant", "a word of a fragment is a number, a name or a tuple of them", e.span)


def warp_grid(words: Words, warps: int) -> tuple[int, int]:
    """Rows and columns of the grid of an instance's warps, from the word `over (r, c)` or `grid (r, c)`; one column without it."""
    match words.get("over") or words.get("grid"):
        case Tuple((Int(rows), Int(columns))):
            return rows, columns
    return warps, 1


def read_plan(kernel: Kernel, group_warps: dict[str, int], spaces: Mapping[str, object] = MappingProxyType({})) -> Plan:
    """Read the plan off an elaborated derived kernel. `group_warps`: warps of each thread group, by name. `spaces`: the
    registered ones, of which those of tensor memory are asked for sizes."""
    roles, buffers, barriers, tensors, launch = [], {}, {}, {}, None
    for s in kernel.body:
        match s:
            case Role():
                entry = {
                    w.name: w.value.value for w in s.words.items if w.name not in ("at", "pad", "aligned") and isinstance(w.value, Int)
                }
                instances = s.instances.value if isinstance(s.instances, Int) else 1
                warps = s.count.value * group_warps[s.group]
                roles.append(
                    RolePlan(s.name, instances, warps, integer(s.words, "at"), integer(s.words, "pad"), entry, s.span, pair_rank(s.words))
                )
            case Declare(space="shared"):
                buffers |= {d.name: BufferPlan.of(d) for d in s.declarations}
            case Declare(space="barrier"):
                for d in s.declarations:
                    slots = constants(d.declared.groups[0])[0] if d.declared.groups else 1
                    barriers[d.name] = BarrierPlan(
                        d.name, d.declared.name, slots, integer(d.words, "count", 1), integer(d.words, "at"), d.span
                    )
            case Declare(space) if space in spaces and spaces[space].memory == "tensor":
                tensors |= {d.name: tensor_plan(d, spaces[space]) for d in s.declarations}
            case Op(name="launch"):
                ctas = integer(s.words, "ctas") or None
                launch = LaunchPlan(s.operands[0], s.words.flag == "persistent", ctas, s.span)
    cluster = kernel.cluster.axis.value.value if kernel.cluster and isinstance(kernel.cluster.axis.value, Int) else 1
    return Plan(tuple(roles), buffers, barriers, launch or LaunchPlan(Int(1), False, None, kernel.span), cluster, tensors, paired(kernel))


def paired(kernel: Kernel) -> bool:
    """Whether the CTAs of the cluster are a pair: `cluster m = 2 pair m`."""
    return kernel.cluster is not None and kernel.cluster.words.get("pair") is not None


def pair_rank(words: Words) -> int | None:
    """Rank in its cluster of the CTA that `on pair[r]` or `on cluster[r]` names; None for `on pair`, and without the word."""
    match words.get("on"):
        case Index(_, (Int(rank),)):
            return rank
    return None


def tensor_plan(d: Declaration, space) -> TensorPlan:
    """A declaration in tensor memory, sizes constant. Raises CakeError for a shape that has no place there."""
    *slots, shape = map(constants, d.declared.groups)
    elem = ELEMENTS[d.declared.name]
    columns = space.columns(shape, elem)
    if columns is None:
        raise fail(
            "derive/tensor-shape",
            f"'{d.name}' is {elem}{list(shape)}, which has no place in '{space.name}'",
            d.span,
            resource=d.name,
            why=space.doc or None,
        )
    return TensorPlan(
        d.name, elem, tuple(x for g in slots for x in g), shape, integer(d.words, "at"), columns, d.words.get("base") or Int(0), d.span, shared_with(d)
    )


def launch_statement(items: Expr | str, persistent: bool, ctas: int | None = None) -> Op:
    """The statement that `read_plan` reads as a LaunchPlan."""
    from cake_core.ir.build import lift, words

    return Op(
        "launch",
        (lift(items) if not isinstance(items, str) else Name(items),),
        words=words("persistent" if persistent else None, ctas=ctas),
    )
