"""What an operation does to memory, barriers and groups: all that derivation and proof know of a primitive.

A primitive declares its effects for one derived statement. Everything names places by expression, so that the
slot and the byte range are known; no effect names an instruction.
"""

from __future__ import annotations

from enum import StrEnum

from cake_core.frozen import frozen
from cake_core.ir.nodes import Expr


class Mode(StrEnum):
    READ = "read"
    WRITE = "write"


class Proxy(StrEnum):
    """The path by which an access reaches memory (PTX ISA, memory consistency model, proxies)."""

    GENERIC = "generic"
    ASYNC = "async"
    TENSOR = "tensor"


class Issuer(StrEnum):
    """Who performs a statement: one fixed lane of the instance, each warp, or a warpgroup together."""

    LEADER = "leader"
    WARP = "warp"
    WARPGROUP = "warpgroup"


@frozen
class Now:
    """Complete when the statement is."""


@frozen
class InGroup:
    """Complete when the group that holds it, in the issuer's FIFO `queue`, has been waited for."""

    queue: str


@frozen
class BySignal:
    """Complete when `barrier` has received the transaction bytes of this access (`bytes` a destination CTA).

    `barrier` is None in the schedule form, where the hand-off is not yet known. `multicast`: the data reach, and the
    bytes count in, every CTA of the cluster, so the slot's readers in all of them must have released it."""

    barrier: Expr | None
    bytes: int
    multicast: bool = False
    mask: int | None = None  # bit i: CTA i of the cluster receives the data; None in the schedule form, and without multicast
    cta: Expr | None = None  # rank in the cluster of the CTA whose barrier receives them; None: the destination's own


@frozen
class ByCommit:
    """Complete when a barrier has received the arrival of a later commit by the same issuer.

    `engine` names the operation that commits (an `EngineCommit`): it speaks for all that the issuer gave to that engine before."""

    engine: str


Completion = Now | InGroup | BySignal | ByCommit


@frozen
class Access:
    """A read or write of `place` (a tile expression: buffer, tensor or fragment). `cta`: rank in the cluster of the CTA whose
    shared memory it is; None: the own. `atomic`: a read and a write in one step, which other such accesses do not disturb.

    `clips`: of a tile of a tensor, what lies past the extents is left alone (S12); False: all of it is touched. `front`: so is
    what lies in front of the first element; False: no tile that is clipped may start there. `width`: the address of
    each piece that is accessed at once must be a multiple of so many bytes; None: the primitive answers for it. `divided`: "thread" if each
    thread touches those elements of the tile that its registers of the statement's fragment stand for, "warp" if each warp does; None: not said.

    `order`: what else an access orders, "acquire", "release" or "acq_rel"; None: nothing. `scope`: among which threads it does, and is atomic: "cta",
    "cluster", "gpu" or "sys" (PTX ISA, memory consistency model); None: of an access that is neither. `adds`: the integer that an atomic write of one
    element adds to it, by one thread; None: it does something else, or more than one thread does it. `when`: the statement does it only under this
    condition."""

    place: Expr
    mode: Mode
    proxy: Proxy = Proxy.GENERIC
    completion: Completion = Now()
    issuer: Issuer = Issuer.WARP
    cta: Expr | None = None
    atomic: bool = False
    clips: bool = True
    front: bool = True
    width: int | None = None
    order: str | None = None
    scope: str | None = None
    divided: str | None = None
    adds: Expr | None = None
    when: Expr | None = None


@frozen
class CommitGroup:
    """Closes the issuer's open group in `queue`."""

    queue: str


@frozen
class WaitGroup:
    """At most `pending` groups of `queue` stay in flight. `reads_only`: their source may be reused, their writes may be pending."""

    queue: str
    pending: int
    reads_only: bool = False


@frozen
class BarrierInit:
    """`count` None: the arrivals that the barrier's declaration states."""

    barrier: Expr
    count: int | None = None


@frozen
class BarrierWait:
    """Waits for the phase of `parity` of a barrier with arrival counts."""

    barrier: Expr
    parity: Expr


@frozen
class BarrierArrive:
    """One arrival by each executing thread, at the barrier of CTA `cta` of the cluster (None: the own one)."""

    barrier: Expr
    cta: Expr | None = None
    expect_bytes: int = 0


@frozen
class EngineCommit:
    """One arrival at `barrier` by each executing thread, when all that it gave to `engine` before is complete: at the own
    CTA's barrier, or at those of the cluster's CTAs in `mask` (bit i: rank i)."""

    barrier: Expr
    engine: str
    mask: int | None = None


@frozen
class Reserve:
    """Takes `amount` columns of tensor memory for the CTA."""

    amount: int


@frozen
class Free:
    """Gives `amount` columns of tensor memory back."""

    amount: int


@frozen
class Rendezvous:
    """All `threads` meet: a named barrier `id`, a whole CTA (`id` None) or a cluster. `waits` False: who executes this
    arrives there and goes on."""

    scope: str  # "instance" | "role" | "cta" | "cluster" | "warp"
    threads: int | None = None
    id: Expr | None = None
    waits: bool = True


@frozen
class Fence:
    """Orders the issuer's earlier accesses of one proxy (or scope) before later ones of another."""

    kind: str  # "proxy_async", "barrier_init", "registers", "tensor_before" and "tensor_after" a hand-off, ...
    scope: str = "cta"


@frozen
class GridOrder:
    """Orders this grid and its neighbours in the stream. `waits` True: until the grids before have ended, and what they
    wrote is seen; a kernel that has it is launched so that it may start earlier. False: the grid behind may start."""

    waits: bool


@frozen
class Attribute:
    """Says something of the statement that rules match on, and that nothing else reads: a word or a number of a plugin's own."""

    name: str
    value: int | str


#: Of a statement whose instructions all threads of a warp, or of a warpgroup, execute together: what some of them execute is
#: undefined (PTX ISA, `.aligned` and `.sync`).
OF_WARP = Attribute("collective", "warp")
OF_WARPGROUP = Attribute("collective", "warpgroup")

Effect = (
    Access
    | CommitGroup
    | WaitGroup
    | BarrierInit
    | BarrierWait
    | BarrierArrive
    | EngineCommit
    | Reserve
    | Free
    | Rendezvous
    | Fence
    | GridOrder
    | Attribute
)
