"""What a primitive is given when its data move (`primitive.simulated.SimulateContext`), and who moves them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cake_core.facts.schema import By
from cake_core.frozen import thawed
from cake_core.ir.elementwise import meet
from cake_core.ir.nodes import Expr
from cake_core.ir.types import Scalar
from cake_core.machine import Fault, Kind, MachineError
from cake_core.machine import Site as FaultSite
from cake_core.machine.steps import Do, Step
from cake_core.primitive import Reduction
from cake_core.primitive.simulated import dtype_of
from cake_core.simulate import places
from cake_core.simulate.expressions import ACTOR, Env, on_registers
from cake_core.simulate.ledger import Ledger, When
from cake_core.simulate.memory import Block, Memory

if TYPE_CHECKING:
    from cake_core.machine.threads import Agent
    from cake_core.simulate.site import Site


@thawed(eq=False)
class Actor:
    """Warps `lo` to `lo + warps` of the `of` of an instance, or of the CTA outside of roles. `tensors`: blocks by name."""

    cta: int
    lo: int
    warps: int
    of: int
    memory: Memory
    tensors: dict[str, Block]
    pair: bool
    ledger: Ledger | None = None
    agent: Agent = None


class Context:
    """See `SimulateContext`. `to`: the CTA that a delivery of a copy goes to; `later`: where writes are kept that are to be done at another time;
    `over`: of an asynchronous operation, when its reads and its writes are over."""

    __slots__ = ("actor", "env", "later", "over", "site", "to", "writing")

    def __init__(self, site: Site, env: Env, to: int | None = None, later: list | None = None, over: tuple[When, When] | None = None) -> None:
        self.site, self.env, self.actor, self.to, self.later, self.over = site, env, env[ACTOR], to, later, over
        self.writing = False

    @property
    def warps(self) -> int:
        return self.actor.warps

    @property
    def cta(self) -> int:
        return self.actor.cta

    @property
    def pair(self) -> bool:
        return self.actor.pair

    @property
    def memory(self) -> Memory:
        return self.actor.memory

    def reduction(self, name: str) -> Reduction | None:
        return self.site.room.registry.reductions.get(name)

    # --- values ----------------------------------------------------------------------------------------------------

    def value(self, expr: Expr) -> Any:
        try:
            return self.site.expressions.of(expr)(self.env)
        except ZeroDivisionError:  # the text's: what a plugin divides is told where it is asked
            raise MachineError("a division by zero") from None

    def operands(self, *exprs: Expr) -> tuple[Any, ...]:
        found = tuple([self.value(e) for e in exprs])
        met = meet(*(e.type for e in exprs))
        if isinstance(met, str) or met.shape is None:
            return found
        return tuple([self._aligned(e, x, met.shape, exprs) for e, x in zip(exprs, found, strict=True)])

    def _aligned(self, e: Expr, x: Any, shape: tuple[int, ...], exprs: tuple[Expr, ...]) -> Any:
        axis = getattr(e.type, "axis", None)
        if len(shape) == 2 and axis is not None:
            return x[:, None] if axis == "row" else x[None, :]
        if isinstance(e.type, Scalar) and isinstance(x, np.ndarray) and x.ndim:
            return x.reshape(())[()] if x.size == 1 else self._spread(x, shape, exprs)
        return x

    def _spread(self, x: np.ndarray, shape: tuple[int, ...], exprs: tuple[Expr, ...]) -> np.ndarray:
        """What differs among warps or lanes, for each element that they hold."""
        for d in (self.site.lies, *(self.site.how(e) for e in exprs)):
            if d is not None and d.shape == tuple(shape):
                held, lo = self.site.holding(d), self.actor.lo
                warp = np.clip(held.warp - lo, 0, self.actor.warps - 1)
                return x[warp, held.lane if x.shape[-1] > 1 else 0]
        raise NotImplementedError("a scalar that differs among warps beside a tile that every thread holds")

    def lanes(self, expr: Expr) -> np.ndarray:
        x = np.asarray(self.value(expr))
        if isinstance(expr.type, Scalar):
            return np.broadcast_to(x, (self.actor.warps, 32)).reshape(self.actor.warps, 32, 1)
        d = self.site.how(expr)
        if d is None or x.shape != d.shape:
            raise NotImplementedError("a tile of which nothing says how it lies over the lanes")
        return x.reshape(-1)[self.site.holding(d).elements[self.actor.lo : self.actor.lo + self.actor.warps]]

    # --- places ----------------------------------------------------------------------------------------------------

    def read(self, place: Expr, fill: float = 0, cta: int | None = None) -> Any:
        if on_registers(place):
            return self.value(place)
        return places.read(self.site.spot(place).index(self), self, fill, self.cta if cta is None else int(cta))

    def write(
        self, place: Expr, value: Any, *, clip: int | None = None, cta: int | None = None, combine: Callable | None = None, front: bool = True
    ) -> Any:
        spot = self.site.spot(place)
        if spot.memory == "registers":
            return spot.assign(self.env, value)
        at = spot.index(self)
        if not front and (told := at.in_front()) is not None:
            self.tell(Kind.BOUNDS, told, spot.name)
            return None
        rank = self.to if self.to is not None else self.cta if cta is None else int(cta)
        mask = self._mask(at.shape)
        if self.later is None:
            return places.write(at, self, value, clip, rank, mask, combine)
        self.later.append(lambda: places.write(at, self, value, clip, rank, mask, combine))
        return None

    def _mask(self, shape: tuple[int, ...]) -> np.ndarray | None:
        """Which elements of a tile the executing warps hold; None: all, or every thread holds all of them."""
        d, a = self.site.lies, self.actor
        if d is None or a.warps == a.of or d.shape != shape:
            return None
        return self.site.holding(d).of(a.lo, a.lo + a.warps)

    def block(self, spot: places.Spot, cta: int) -> Block:
        if spot.memory == "global":
            return self.actor.tensors[spot.name]
        return self.actor.memory.blocks[cta, spot.name]

    # --- races in global memory ------------------------------------------------------------------------------------

    def touch(self, at: places.Index, there: tuple, here: tuple, write: bool, atomic: bool = False) -> None:
        """Note an access of a tensor that the launch changes. Of a tile that several agents read those elements count that are known to be of the
        executing warps; where nothing says which these are, none."""
        ledger, a = self.actor.ledger, self.actor
        if ledger is None or at.spot.name not in ledger.tensors:
            return
        mask = self._mask(at.shape) if at.shape else None
        if mask is None and at.shape and not write and self.over is None and a.warps < a.of:
            return
        self.writing = write
        ledger.access(self, at.spot.name, a.tensors[at.spot.name].data.shape, there, mask[here] if mask is not None else None, write, atomic)

    def when(self) -> When:
        """When the access at hand is over, and what is known at it."""
        if self.over is not None:
            return self.over[self.writing]
        agent = self.actor.agent
        lane = 2 * agent.id + (self.site.event.by is By.ALL and not self.site.leads)
        clock = agent.run.clocks[lane]
        return When(lane, clock[lane], clock)

    def place(self) -> FaultSite:
        """Where the statement at hand stands, and in which iteration."""
        site = self.site
        step = Step(Do.ACCESS, True, None, None, None, site.event, tuple(self.env[s] for _, s in site.loops), tuple(n for n, _ in site.loops))
        return self.actor.agent.site(step)

    def race(self, name: str, message: str, first: FaultSite, same: bool) -> None:
        a = self.actor
        a.agent.run.report(Fault(Kind.RACE, message, name, cta=a.cta if same else None, first=first, second=self.place()), a.agent, None)

    # --- findings --------------------------------------------------------------------------------------------------

    def check_written(self, at: places.Index, flags: np.ndarray) -> None:
        """Tell of a read of what no one has written. What other warps of the instance read of the tile is theirs to have written."""
        if flags.all():
            return
        a = self.actor
        if a.warps < a.of and at.shape:
            mask = self._mask(at.shape)
            ok = flags.all(axis=-1) if flags.ndim > len(at.shape) else flags
            if mask is not None and ok.shape == mask.shape:
                if ok[mask].all():
                    return
            elif ok.any():
                return
        x = at.spot
        which = f"{list(at.slots)}" if at.slots else ""
        self.tell(Kind.UNWRITTEN, f"read of '{x.name}'{which}, parts of which no one has written", x.name, at.slots)

    def tell(self, kind: Kind, message: str, resource: str, slot: tuple = ()) -> None:
        a = self.actor
        place = tuple(int(i) for i in slot if not isinstance(i, np.ndarray))
        a.agent.run.report(Fault(kind, message, resource, place, cta=a.cta, second=self.place()), a.agent, None)


def converted(x: Any, elem: Any) -> Any:
    """A value as an element type has it."""
    return np.asarray(x).astype(dtype_of(elem), copy=False)
