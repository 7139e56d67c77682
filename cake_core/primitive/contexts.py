"""What the rooms of the core offer a primitive while it checks, derives and lowers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING
from typing import Protocol as TypingProtocol

from cake_core.frozen import frozen
from cake_core.ir.nodes import Declaration, Expr, Stmt

if TYPE_CHECKING:
    from cake_core.architecture import Architecture
    from cake_core.ir.places import Place
    from cake_core.primitive.elements import Elements
    from cake_core.primitive.kinds import Form, Layout, Reduction
    from cake_core.ptx.builder import Builder, Operand, Reg


class CheckContext(TypingProtocol):
    """Elaboration, for `check`: errors are raised with `diagnostics.fail`."""

    form: Form
    arch: Architecture | None
    cluster_axis: str | None
    cluster_size: int
    warps: int  # of one instance of the role at hand; 0 outside roles
    group: str | None  # thread group in which that role counts; None outside roles
    grid: tuple[int, int]  # rows and columns of those warps (`over (r, c)`, schedule form); one column without the word
    pair: bool  # the cluster's CTAs are paired: they share the statements of the tensor engine
    on: int | None  # rank in its pair of the one CTA that has the role at hand; None: every CTA has it
    aligned: int  # the role's first warp is surely at a multiple of this many warps of the CTA

    def declaration(self, name: str) -> Declaration | None:
        """The declaration of a buffer, fragment or barrier by name."""

    def mode(self, tensor: str) -> str | None:
        """"in", "out", "inout" or "workspace": how a tensor parameter is declared; None for another name."""

    def reduction(self, name: str) -> Reduction | None:
        """The reduction, or fragment type, of that name."""


@frozen
class HandOff:
    """Where a slot stands in its pipeline: the barrier that its fill completes, for `signal`. `at`: rank of the CTA whose
    barrier it is; None: the own."""

    pipeline: str
    full: Expr
    slot: Expr
    at: int | None = None


class DeriveContext(TypingProtocol):
    """Derivation, for `derive`. Statements returned keep the span of the statement that they come from."""

    arch: Architecture
    cluster_axis: str | None
    cluster_size: int
    pair: bool
    role: str
    warps: int  # of one instance
    instances: int

    def hand_off(self, place: Expr) -> HandOff | None:
        """The pipeline hand-off that a fill of this slot belongs to, if its buffer is in a pipeline."""

    def swizzle(self, buffer: str) -> int:
        """Bytes of the swizzle that all users of `buffer` agreed on; 0 is none."""

    def named_barrier(self, scope: str) -> tuple[Expr, int]:
        """Identity expression and thread count of the barrier of this instance ("instance") or of all ("role")."""

    def pending_fences(self) -> tuple[Stmt, ...]:
        """Fences that this thread's earlier writes need before another proxy reads them; asked for by a rendezvous."""

    distribution: Distribution | None
    """How the value of the statement at hand lies over the threads (see `LowerContext.distribution`)."""

    def layout(self, fragment: str) -> Layout | None:
        """The layout chosen for a fragment."""

    def declaration(self, name: str) -> Declaration | None:
        """The declaration of a buffer, fragment or barrier by name, with the words chosen so far."""

    def alignment(self, expr: Expr) -> int:
        """Bytes that the address of a tensor tile's first element is surely a multiple of, for every admitted shape.

        From the base address contract (16 bytes), the congruences of the extents and of the start coordinates."""


class LowerContext(TypingProtocol):
    """Lowering, for `lower`. Every method emits what it needs through `b`."""

    b: Builder
    arch: Architecture
    cluster_size: int
    pair: bool
    warps: int  # of one instance of the role at hand
    lane: Operand  # lane in the warp
    warp: Operand  # warp in the instance
    thread: Operand  # thread in the instance

    def value(self, expr: Expr) -> Operand:
        """An integer, float or address-like scalar: a register, or an immediate where it is known."""

    def predicate(self, expr: Expr) -> Reg | bool:
        """A condition: a predicate register, or a bool where it is known."""

    def constant(self, expr: Expr) -> int:
        """An integer that must be known; a diagnostic otherwise."""

    def zero(self) -> Reg:
        """A b32 register that is 0, which the assembler does not know: arithmetic with it stays the instruction that is written."""

    def barrier(self, expr: Expr) -> Operand:
        """The shared address (b32) of one barrier of an array."""

    def place(self, expr: Expr) -> Place:
        """A tile expression taken apart: declaration, slots, one (lo, size) a dimension."""

    def shared_address(self, expr: Expr) -> Operand:
        """The shared address (b32) of the first element of a tile, its slot and its dimension offsets included.

        With a swizzle only offsets of whole swizzle atoms are legal (8 rows; columns inside a panel in whole panels):
        the address is that of the unswizzled position.
        """

    def tensor_address(self, expr: Expr) -> tuple[Operand, int]:
        """Where a tile in tensor memory starts: a register (or number) that is the same for the warp, and columns to add.

        The address of the allocation and of the slot are in the first, constant columns in the second. Rows are left out."""

    def element_address(self, expr: Expr, coordinates: Sequence[Operand]) -> Operand:
        """The shared address (b32) of one element of a tile, swizzle applied. `coordinates` count inside the tile."""

    def mode(self, tensor: str) -> str:
        """"in", "out", "inout" or "workspace": how a tensor parameter was declared. Only `in` tensors are read-only for the whole kernel."""

    def panel(self, expr: Expr) -> tuple[int, int]:
        """(columns a panel, bytes from one panel to the next) of a shared tile; one panel of all columns without swizzle."""

    def declaration(self, name: str) -> Declaration | None:
        """The declaration of a buffer, fragment or barrier by name, with the words of the derived form."""

    def tensor_map(self, tensor: Expr, box: tuple[int, ...], swizzle: int) -> Reg:
        """A b64 register with the address of a tensor map for `box` (dimensions as declared, outermost first)."""

    def coordinates(self, expr: Expr) -> tuple[Operand, ...]:
        """Start coordinates of a tensor tile, one a declared dimension, outermost first."""

    def global_pointer(self, tensor: str) -> Reg:
        """The b64 global pointer of a tensor parameter."""

    def global_address(self, expr: Expr) -> Operand:
        """The b64 global address of the first element of a tensor tile. Products are 64 bits wide."""

    def extents(self, tensor: str) -> tuple[Operand, ...]:
        """A tensor parameter's extents."""

    def reduction(self, name: str) -> Reduction | None:
        """The reduction, or fragment type, of that name."""

    distribution: Distribution | None
    """How the value at hand lies over the threads: set by the fragment that an assignment fills or a store reads.
    None: every thread holds all elements (`sum(load(part[s]))`)."""

    def distributed(self, distribution: Distribution | None) -> AbstractContextManager[None]:
        """Another distribution at hand, inside a `with`."""

    def registers(self, expr: Expr) -> tuple[Operand, ...]:
        """What this thread holds of a register tile or value under the `distribution` at hand, in the layout's order.

        One operand is 32 bits: one element of 32 bits (f32: class f32, integers: b32) or two neighbours of 16 bits
        packed into a b32, the first in the lower half. A scalar is one operand. Where nothing is known about a
        fragment's place (a whole fragment, a constant slice of it) its own distribution decides.
        """

    def broadcast(self, *exprs: Expr) -> tuple[tuple[Operand, ...], ...]:
        """`registers` of each, scalars repeated to the length of the others."""

    def elements(self, *exprs: Expr) -> tuple[Elements, ...]:
        """As `broadcast`; what can be computed where it is used is not computed yet (`Function.each`)."""

    def distribution_of(self, expr: Expr) -> Distribution | None:
        """How the register tile that `expr` computes lies, where something in it says so."""


@frozen
class Distribution:
    """A register tile's layout, with what it needs to be evaluated: `words` of the declaration (`vec`), `warps` of the
    instance, and the element numbers held, in order (a slice holds some of `layout.elements`)."""

    layout: Layout
    shape: tuple[int, ...]
    warps: int
    words: dict[str, int]
    offsets: tuple[tuple[int, ...], ...]  # of each element held, from the thread's origin; relative to the slice
