"""What the proof knows of a kernel, on one page: who runs which events, and what each does to memory, barriers and groups.

Facts are read off an elaborated derived form and the effects that primitives declare; nothing here names an instruction. The
event machine executes them, the prover reasons about them, rules match on them, and `cake facts` prints them as rows (`rows.py`).

Expressions are integers and conditions over the kernel's scalar parameters, `cluster.id`, `cluster.count`, `cluster.AXIS`,
`ROLE.i`, `warp`, indices of the loops around, and names that events of the role set. A `let` is written out where it depends on no
variable; otherwise it is set like one, for the variable may change behind it. A `load` of an `in` tensor stands as the call it
is: a function of its indices, for no one writes that tensor while the kernel runs. Any other value that comes from memory
is set to `None`: nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from cake_core.effects import Attribute, Fence, Free, GridOrder, Issuer, Mode, Proxy, Reserve
from cake_core.facts.special import Made, Masked
from cake_core.frozen import frozen
from cake_core.ir.nodes import Expr
from cake_core.ir.plan import BarrierPlan, BufferPlan, LaunchPlan, RolePlan, TensorPlan
from cake_core.ir.ranges import ANY, Range
from cake_core.source import Span

#: Raised when a relation changes its meaning or loses a column; a new relation or column does not raise it.
SCHEMA = 1


class By(StrEnum):
    """Which threads of an instance (outside of roles: of the CTA) execute an event."""

    ALL = "all"
    WARP_LEADERS = "warp leaders"  # one lane of each warp
    LEADER = "leader"  # one lane of the instance, in its first warp


# --- places ------------------------------------------------------------------------------------------------------

#: Parts of the lanes of tensor memory, one for each warp of four.
QUARTERS = 4


@frozen
class Extent:
    """Elements `lo .. lo + size` of one dimension. `single`: an index stands there, and no tile, which would be clipped."""

    lo: Expr
    size: Expr
    single: bool = False


@frozen
class Region:
    """A part of a buffer. `memory`: "shared", "tensor" (tensor memory), "global" (a parameter) or "registers". `slot`: one index
    a slot dimension; `box`: one extent a dimension of the shape, whole where the text does not slice it."""

    memory: str
    name: str
    slot: tuple[Expr, ...]
    box: tuple[Extent, ...]


@frozen
class BarrierRef:
    """One barrier of a declared array."""

    name: str
    index: Expr


# --- when an access is complete ----------------------------------------------------------------------------------


@frozen
class AtOnce:
    """When its event is."""


@frozen
class WithGroup:
    """When the group of the issuing thread's FIFO `queue` that holds it has been waited for."""

    queue: str


@frozen
class WithBytes:
    """When `barrier` has received `bytes`. `mask`: ranks of the cluster whose memory the data reach and whose barriers count
    them, at the same places; None: the own CTA. `cta`: the bytes count at the barrier of that rank instead."""

    barrier: BarrierRef
    bytes: int
    mask: int | None = None
    cta: Expr | None = None


@frozen
class WithCommit:
    """When a barrier has received the arrival of a later `EngineArrive` of the same thread to `engine`."""

    engine: str


Completion = AtOnce | WithGroup | WithBytes | WithCommit


# --- what an event does ------------------------------------------------------------------------------------------


@frozen
class Division:
    """Which elements of a tile each thread, or each warp, of an instance touches: those of equal `map` are the same ones of equal tiles."""

    among: str  # "thread" or "warp"
    map: str


@frozen
class Moved:
    """`sectors` of 32 bytes that the instruction of a warp that wastes most touches, and the bytes of them that it asks for; the widest `piece`, in
    bytes, that a thread's elements lie side by side in."""

    sectors: int
    useful: int
    piece: int


@frozen
class Access:
    """A read or write of a region; `cta`: rank in the cluster of the CTA whose memory it is, None: the own. `value`: what a write of one
    element of shared memory leaves there, where that is an integer and known. `clips`, `front`, `width`, `order`, `scope`, `adds`: as of `effects.Access`. `when`:
    the condition under which its statement does it, where one of its expressions chooses. `division`: how the executing threads share the
    tile, if known; `turns`: at the banks of shared memory, of the instruction that takes most (`banks.py`);
    `moved`: of global memory (`sectors.py`)."""

    region: Region
    mode: Mode
    proxy: Proxy
    completion: Completion
    issuer: Issuer
    cta: Expr | None = None
    atomic: bool = False
    value: Expr | None = None
    clips: bool = True
    width: int | None = None
    when: Expr | None = None
    order: str | None = None
    scope: str | None = None
    adds: Expr | None = None
    front: bool = True
    division: Division | None = None
    turns: int | None = None
    moved: Moved | None = None


@frozen
class Init:
    """All barriers of the array `barrier` start their phase 0, with the arrival count of its declaration."""

    barrier: str


@frozen
class Wait:
    """Until the phase of `parity` of the barrier is complete."""

    barrier: BarrierRef
    parity: Expr


@frozen
class Arrive:
    """One arrival by each executing thread at the own CTA's barrier, or that of rank `cta`; `expect`: transaction bytes announced with it."""

    barrier: BarrierRef
    cta: Expr | None = None
    expect: int = 0


@frozen
class EngineArrive:
    """One arrival when all that the executing thread gave to `engine` before is complete; at the own CTA's barrier or those of the ranks in `mask`."""

    barrier: BarrierRef
    engine: str
    mask: int | None = None


@frozen
class Commit:
    """Closes the executing thread's open group in `queue`."""

    queue: str


@frozen
class Drain:
    """At most `pending` groups of `queue` stay in flight; `reads_only`: their reads are done, their writes may be pending."""

    queue: str
    pending: int
    reads_only: bool


@frozen
class Meet:
    """Threads meet. `scope`: "warp"; "named" with an `id` and how many `threads`; "cta" or "cluster": all threads of it.
    `waits` False: arrives and goes on."""

    scope: str
    id: Expr | None
    threads: int | None
    waits: bool


Act = Access | Init | Wait | Arrive | EngineArrive | Commit | Drain | Meet | Fence | Reserve | Free | GridOrder


@frozen
class Set:
    """The event gives a variable of its role a value; None: one that nothing is known of, but that it is what the one element
    `source` of shared memory holds, where that is given. `range`: of a value by its type. `each`: the warps of an instance may have different ones."""

    name: str
    value: Expr | None
    source: Region | None = None
    range: Range = ANY
    each: bool = False


# --- programs ----------------------------------------------------------------------------------------------------


@frozen
class Event:
    """One statement. `id` numbers the nodes of a kernel in text order. `op`: its verb. `warp`: the one warp of the instance that
    executes it, where the text says so. Acts happen in their order, sets behind them. `attributes` and `specials` are for rules alone."""

    id: int
    op: str
    by: By
    warp: int | None
    acts: tuple[Act, ...]
    sets: tuple[Set, ...]
    span: Span
    attributes: tuple[Attribute, ...] = ()
    specials: tuple[Made | Masked, ...] = ()


@frozen
class Loop:
    """`var` takes `lo, lo + step, ..` below `hi`; bounds are read once, in front."""

    id: int
    var: str
    lo: Expr
    hi: Expr
    step: Expr
    body: Block
    span: Span


@frozen
class While:
    id: int
    test: Expr
    body: Block
    span: Span


@frozen
class Branch:
    id: int
    test: Expr
    then: Block
    other: Block
    span: Span


Node = Event | Loop | While | Branch
Block = tuple[Node, ...]


@frozen
class RoleFacts:
    plan: RolePlan
    body: Block

    @property
    def name(self) -> str:
        return self.plan.name


@frozen
class Tensor:
    """A parameter in global memory; `shape`: one expression a dimension; `bits` an element."""

    name: str
    mode: str
    bits: int
    shape: tuple[Expr, ...]
    span: Span


@frozen
class Facts:
    """One kernel for one target. `scalars`: integer parameters. `before` and `after` the roles: every thread of the CTA runs them.
    `axis`: the name after `cluster.` by which a text asks for a CTA's rank in the cluster of `cluster` CTAs."""

    kernel: str
    arch: str
    scalars: tuple[str, ...]
    tensors: tuple[Tensor, ...]
    requires: tuple[Expr, ...]
    assumes: tuple[Expr, ...]
    cluster: int
    axis: str | None
    pair: bool
    warps: int
    launch: LaunchPlan
    roles: tuple[RoleFacts, ...]
    before: Block
    after: Block
    barriers: dict[str, BarrierPlan]
    buffers: dict[str, BufferPlan]
    columns: dict[str, TensorPlan]
    text: str = ""  # the derived text that they were read from: types, which rows and printed expressions leave out

    def role(self, name: str) -> RoleFacts:
        return next(r for r in self.roles if r.name == name)

    def ctas(self, role: RoleFacts) -> tuple[int, ...]:
        """Ranks in the cluster of the CTAs that have the role."""
        return tuple(r for r in range(self.cluster) if role.plan.on is None or r == role.plan.on)


def walk(block: Block) -> Iterator[Node]:
    """All nodes of a block, nested ones behind the node that holds them."""
    for node in block:
        yield node
        match node:
            case Loop() | While():
                yield from walk(node.body)
            case Branch():
                yield from walk(node.then)
                yield from walk(node.other)


def events(block: Block) -> Iterator[Event]:
    return (n for n in walk(block) if isinstance(n, Event))
