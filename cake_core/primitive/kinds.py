"""What a plugin can add to the language, each a class with one job. One page; the host knows no other kind.

`Operation`  a statement: signature, typing, what it derives to, effects, lowering
`Function`   an expression: typing and lowering (casts, `load`, `rsqrt`, `warpsum`, the operators on floats)
`Reduction`  an operation that combines the elements of a row, for `fold`
`FragmentType` what a fragment holds for a row, where that is more than one number
`Layout`     how a fragment's elements lie in the registers of an instance
`Space`      where a declared buffer lives
`ThreadGroup` a unit of threads that a role counts in
`Protocol`, `TurnProtocol` how a pipeline's hand-offs are signalled, and how the token of a `turn` goes round
`Counter`    how numbers are drawn from global memory (`counters.py` beside this page)
`RoleWord`   a word on a role's header that acts at role entry

A primitive names the capabilities that a target must offer; a target without one is an error that names it. Life of an operation: `check` in both
forms; derivation `derive` (schedule form) and `demands`; checks read `effects`; lowering calls `lower`, the simulator `simulate` (derived form).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from enum import Flag, auto
from typing import TYPE_CHECKING

from cake_core.frozen import frozen
from cake_core.ir.nodes import Block, Call, Expr, Op, TypeExpr
from cake_core.ir.types import Elem, Type
from cake_core.primitive.distributions import joined
from cake_core.primitive.simulated import Simulated
from cake_core.primitive.special import SpecialValues

if TYPE_CHECKING:
    from cake_core.effects import Effect
    from cake_core.primitive.contexts import CheckContext, DeriveContext, Distribution, LowerContext
    from cake_core.primitive.elements import Elements
    from cake_core.ptx.builder import Operand, Reg


class Form(Flag):
    """In which forms of the language a statement or a word may stand."""

    SCHEDULE = auto()
    DERIVED = auto()
    BOTH = SCHEDULE | DERIVED


# --- signatures ------------------------------------------------------------------------------------------------


@frozen
class Parameter:
    """One operand of an operation.

    `kind`: "tile" (in one of `spaces`), "value" (register tile: fragment or computed), "scalar", "constant"
    (an integer known at compile time), "barrier", "product", "role", "pipeline", "any".
    `writable`: the operation writes it, so an `in` tensor is refused.
    """

    name: str
    kind: str
    spaces: tuple[str, ...] = ()
    writable: bool = False


@frozen
class WordSpec:
    """A word that an operation or declaration takes.

    `kind` as in `Parameter`, or "axis" (a cluster axis) or "name" (taken as it stands: a name that no scope is asked
    for, or a number, such as `by 16` or the name of an instruction) or "numbers" (constants in parentheses: `(2, 4)`).
    """

    name: str
    kind: str
    form: Form = Form.BOTH
    required: bool = False
    help: str = ""


@frozen
class Demand:
    """What an operation needs of a shared buffer that it touches.

    `swizzles`: the byte widths (0 = none) with which it can address the buffer, best first. `align`: of each slot.
    """

    buffer: str
    swizzles: tuple[int, ...]
    align: int = 16


# --- what a plugin registers -----------------------------------------------------------------------------------


@frozen(kw_only=True)
class Primitive(Simulated):
    """Base of all kinds. `doc` cites the PTX ISA section. `capabilities` are all needed; `source` is set by the host."""

    name: str
    capabilities: frozenset[str] = frozenset()
    doc: str = ""
    source: object = field(default=None, compare=False)


@frozen(kw_only=True)
class Operation(Primitive):
    """A statement. `arrows` lists the arrows it takes with a value operand (empty: none)."""

    operands: tuple[Parameter, ...] = ()
    arrows: tuple[str, ...] = ()
    value: Parameter | None = None
    words: tuple[WordSpec, ...] = ()
    flags: tuple[str, ...] = ()
    form: Form = Form.BOTH
    #: operands (by index) that must be constants in each instance: the role's code is then written once an instance, unless
    #: the role says `once`; an operation that can do without a constant takes what values the operand's range admits
    immediate: tuple[int, ...] = ()

    def check(self, op: Op, cx: CheckContext) -> None:
        """What the signature cannot say: shapes, element types. Raises CakeError."""

    def demands(self, op: Op, cx: CheckContext) -> tuple[Demand, ...]:
        """What this statement needs of the shared buffers that it touches (schedule form)."""
        return ()

    def fragments(self, op: Op, cx: CheckContext) -> dict[str, str]:
        """Layouts that this statement demands: fragment name to layout name (schedule form)."""
        return {}

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        """The explicit statements that stand for this one. Default: itself."""
        return (op,)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        """Effects of one statement, in either form (in the schedule form signals and groups are not yet known)."""
        return ()

    def lower(self, op: Op, cx: LowerContext) -> None:
        raise NotImplementedError  # a plugin that forgets this is reported as `plugin/no-lowering`


@frozen(kw_only=True)
class Function(SpecialValues, Primitive):
    """An expression `name(args, option = v)`. The operators on floats are functions named `+`, `-`, `*`, `/`."""

    options: tuple[WordSpec, ...] = ()
    #: leading arguments that are bare names, not values: the `sum` of `fold(sum, x)`
    symbols: int = 0
    #: whether the elements of register tiles among the arguments are read; otherwise the tiles only say how the result lies
    reads: bool = True
    #: how register tiles among the arguments lie over the threads, in `derive` and in `lower`: "elementwise" (as the
    #: result does), "whole" (distribution None: every thread holds all elements) or "own" (as the fragment among them
    #: lies, whatever stands around the call)
    arguments: str = "elementwise"

    def result(self, call: Call, cx: CheckContext) -> Type:
        """The type of the call, arguments being typed. Raises CakeError."""
        raise NotImplementedError

    def effects(self, call: Call) -> tuple[Effect, ...]:
        return ()

    def lies(self, call: Call, of: Callable[[Expr], Distribution | None]) -> Distribution | None:
        """How the result lies over the threads, from how the arguments do; None: as the place asks where it is used."""
        parts = call.positional if self.arguments == "elementwise" else ()
        return joined(map(of, (*parts, *call.options.values())))

    def derive(self, call: Call, cx: DeriveContext) -> Call:
        """The call of the derived form (`load` gets its access width). Default: itself."""
        return call

    def each(self, call: Call, cx: LowerContext) -> Elements | None:
        """The result as elements that are computed where they are used: masks and indices. None: `lower` computes all."""
        return None

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        """The elements of the result that this thread holds (one for a scalar)."""
        raise NotImplementedError


@frozen(kw_only=True)
class Reduction(Primitive):
    """An operation that combines the elements of a row: `fold(NAME, ..)` has its type and its instructions.

    `partial`: a fragment can be declared `part NAME`; each lane of a row then holds the combination of its own elements.
    """

    partial: bool = True

    def result(self, call: Call, cx: CheckContext) -> Type:
        """The type of `fold(NAME, ..)`, arguments being typed; the first one is the name. Raises CakeError."""
        raise NotImplementedError

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        """What this thread holds of the result. The distribution at hand is that of the folded tile."""
        raise NotImplementedError


@frozen(kw_only=True)
class FragmentType(Reduction):
    """What `frag x: NAME(args)[rows] over row part` holds for each row (S13). Element types have elements of kind `state`."""

    def check(self, args: tuple[int | Elem, ...], at: Expr | TypeExpr) -> None:
        """Whether the arguments are ones that the type takes. Raises CakeError."""

    def registers(self, args: tuple[int | Elem, ...]) -> tuple[str, ...]:
        """Classes of the registers that a thread has for one row (`f32` or `b32`)."""
        raise NotImplementedError

    def empty(self, args: tuple[int | Elem, ...]) -> tuple[Operand, ...]:
        """What `x = empty` puts into them."""
        raise NotImplementedError

    def fields(self, args: tuple[int | Elem, ...]) -> dict[str, tuple[Elem, int]]:
        """What can be read of a state that is whole, `x.NAME`: element type and number of values a row."""
        raise NotImplementedError

    def field(self, name: str, args: tuple[int | Elem, ...], row: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """The values of a field, from the registers of one row."""
        raise NotImplementedError

    def merge(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        """`merge(x)`: one state a row from those of its lanes, the same in all of them; registers of all rows in order."""
        raise NotImplementedError


@frozen(kw_only=True)
class Layout(Primitive):
    """Which (row, column) each register of each thread of an instance holds.

    Element e of a thread stands at `origin + offsets(shape, warps)[e]`, `origin` depending on the thread only.
    """

    words: tuple[WordSpec, ...] = ()

    def elements(self, shape: tuple[int, ...], warps: int, words: dict[str, int], elem: Elem) -> int | None:
        """Elements a thread, or None if the shape does not divide over the instance (or 16-bit elements do not pair up)."""
        raise NotImplementedError

    def origin(self, cx: LowerContext, words: dict[str, int]) -> tuple[Operand, ...]:
        """Coordinates of a thread's element 0, one operand a dimension."""
        raise NotImplementedError

    def corner(self, cx: LowerContext, words: dict[str, object]) -> tuple[Operand, ...] | None:
        """Coordinates of the warp's first element, where the registers are parts of matrices of 8 rows by 16 bytes: register i
        of lane l holds the 4 bytes at 4 (l mod 4) in row l / 4 of the matrix that starts at the corner plus the offset of the
        register's first element. None: another layout."""
        return None

    def places(self, words: dict[str, object]) -> str:
        """A name that two layouts share only if equal offsets in them are equal places."""
        return self.name

    def offsets(self, shape: tuple[int, ...], warps: int, words: dict[str, int]) -> tuple[tuple[int, ...], ...]:
        """Constant offset of each element from the origin."""
        raise NotImplementedError

    def lanes(self, words: dict[str, object]) -> tuple[int, ...] | None:
        """Distances of the butterfly over the lanes that a row of a tile is spread over; None: it is not inside one warp."""
        return None

    def dealt(self, count: int) -> tuple[tuple[int, ...], ...] | None:
        """Offsets of `count` elements that are dealt out one by one to the lanes of a row, from the origin of a tile along the
        columns; the last round may end beyond them. None: a layout that does not do so."""
        return None

    def owner(self, cx: LowerContext, words: dict[str, object]) -> Reg | bool:
        """Whether this thread is the one that writes its elements, where several hold the same (a tile along an axis)."""
        return True

    def run(self, words: dict[str, int]) -> int:
        """How many consecutive elements e, e+1, .. are neighbours in the last dimension.

        Runs start at multiples of this many elements, and the origin's last coordinate is a multiple of it.
        """
        return 1

    def select(self, shape: tuple[int, ...], warps: int, lo: tuple[int, ...], size: tuple[int, ...], words: dict[str, int]) -> tuple[int, ...] | None:
        """Element numbers of the slice [lo, lo+size) that each thread holds; None if the slice cuts a granule."""
        raise NotImplementedError


@frozen(kw_only=True)
class Space(Primitive):
    """Where a declared buffer lives. `memory`: "shared" (planned into the block's shared memory), "tensor" (columns of
    tensor memory, planned and allocated for the CTA), "registers", "barriers".

    `words` are the words that a declaration in this space takes; in tensor memory `at` (first column) and `base` (the
    address of what was allocated) of the derived form are among them. The methods are asked of tensor memory alone.
    """

    memory: str
    words: tuple[WordSpec, ...] = ()
    element_types: tuple[str, ...] | None = None  # None: any element type

    def columns(self, shape: tuple[int, ...], elem: Elem) -> int | None:
        """Columns that a slot of this shape takes; None if it has no place in this memory."""
        raise NotImplementedError

    def allocate(self, where: Expr, columns: int) -> Block:
        """Statements of one whole warp of each CTA: take `columns`, a legal amount, and write their address to `where`, an
        element u32 of shared memory."""
        raise NotImplementedError

    def address(self, where: Expr) -> Expr:
        """The address, read from `where` by every thread once the CTA has met."""
        raise NotImplementedError

    def release(self, address: Expr, columns: int) -> Block:
        """Statements of the warp that allocated, when nothing uses the memory any more: give it back."""
        raise NotImplementedError


@frozen(kw_only=True)
class ThreadGroup(Primitive):
    """A unit that a role counts in: `warps` of them, the first at a multiple of `aligned` warps."""

    warps: int
    aligned: int = 1


@frozen(kw_only=True)
class RoleWord(Primitive):
    """A word on a role's header that acts at role entry (`regs 40`). Executed by all warps of the role and its pads."""

    groups_of: int = 1  # the role is padded to whole groups of this many warps
    sets_registers: bool = False  # the value is the number of registers a thread owns from there on

    def check(self, value: int, cx: CheckContext) -> None:
        """Raises CakeError if the value is not one that the target takes."""

    def lower(self, value: int, entry_registers: int, cx: LowerContext) -> None:
        raise NotImplementedError


class Signal(Flag):
    """How one side of a pipeline hands a slot over."""

    BYTES = auto()  # transaction bytes of asynchronous copies
    WARPS = auto()  # one arrival a warp, after reconvergence
    COLLECTIVE = auto()  # one arrival a warpgroup, after its matrix operations have retired
    ENGINE = auto()  # one arrival by the engine itself, when it has done what the leader gave it


@frozen
class PipelinePlan:
    """All that is known of a pipeline when its statements are written.

    `full_count`, `empty_count`: arrivals a phase. `commits`: producer role to how it signals that its part of a
    fill is done. `bytes`: producer role to the transaction bytes that its part brings (none: no entry). `releases`: consumer role to how it releases. `engines`: role to the operation that commits its
    engine's work, where its signal is ENGINE. `full_at`, `empty_at`: ranks of the CTAs whose barriers a fill or a release
    must reach; empty: the own CTA's.
    """

    name: str
    slots: int
    buffers: tuple[str, ...]
    commits: dict[str, Signal]
    releases: dict[str, Signal]
    full_count: int
    empty_count: int
    bytes: dict[str, int] = field(default_factory=dict)
    full_at: tuple[int, ...] = ()
    empty_at: tuple[int, ...] = ()
    engines: dict[str, str] = field(default_factory=dict)


@frozen(kw_only=True)
class Protocol(Primitive):
    """How a pipeline's two hand-offs are written in the derived form.

    `slot` is the slot index, `ordinal` the number of the use (slot = ordinal % slots): both expressions of the IR.
    """

    def declare(self, plan: PipelinePlan) -> Block:
        """Declarations of the pipeline's barriers (no offsets: the memory plan adds `at`)."""
        raise NotImplementedError

    def initialise(self, plan: PipelinePlan) -> Block:
        """Statements that one thread of the CTA runs before the roles start."""
        raise NotImplementedError

    def publish(self, cluster: int) -> Block:
        """Fences after all `initialise` statements, by the same thread."""
        raise NotImplementedError

    def full(self, plan: PipelinePlan, slot: Expr) -> Expr:
        """The barrier that a fill of `slot` completes."""
        raise NotImplementedError

    def acquire(self, plan: PipelinePlan, slot: Expr, ordinal: Expr) -> Block:
        """Wait until `slot` is empty."""
        raise NotImplementedError

    def announce(self, plan: PipelinePlan, slot: Expr, amount: int) -> Block:
        """Tell the full barrier the transaction bytes that a role brings in the fill that begins (nothing where `amount` is 0)."""
        raise NotImplementedError

    def commit(self, plan: PipelinePlan, slot: Expr, how: Signal, engine: str = "") -> Block:
        """Hand the slot over that a role has done its part of (nothing where transaction bytes do it). `engine`: the operation of `Signal.ENGINE`."""
        raise NotImplementedError

    def send(self, plan: PipelinePlan, slot: Expr, place: Expr, value: Expr, how: Signal) -> Block:
        """A scalar of 32 bits into `place` of `slot`, in each CTA whose full barrier `plan` names: part of a fill that is handed
        over by `how`."""
        raise NotImplementedError

    def wait(self, plan: PipelinePlan, slot: Expr, ordinal: Expr) -> Block:
        """Wait until `slot` is full."""
        raise NotImplementedError

    def release(self, plan: PipelinePlan, slot: Expr, how: Signal, engine: str = "") -> Block:
        """Hand the slot back. `engine`: the operation of `Signal.ENGINE`."""
        raise NotImplementedError


@frozen
class TurnPlan:
    """A `turn` whose statements are to be written. `instances` of `role`, of `threads` each, take it one after another;
    `first` is the first of the named barriers that it was given."""

    name: str
    role: str
    instances: int
    threads: int
    first: int


@frozen(kw_only=True)
class TurnProtocol(Primitive):
    """How the one token of a `turn` goes round the instances of a role, instance 0 first (S8).

    Every instance executes the statements, so where they differ among instances they depend on the name `ROLE.i`.
    """

    def barriers(self, instances: int) -> int:
        """How many named barriers a turn among so many instances takes."""
        raise NotImplementedError

    def start(self, plan: TurnPlan) -> Block:
        """Statements at the start of the role: the token that nobody passes to instance 0."""
        raise NotImplementedError

    def take(self, plan: TurnPlan) -> Block:
        """Wait for the token."""
        raise NotImplementedError

    def pass_on(self, plan: TurnPlan) -> Block:
        """Hand the token to the next instance."""
        raise NotImplementedError
