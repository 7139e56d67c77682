"""How many slots of each pipeline a role holds at each point (S4), as an interval, over all trip counts (S10).

At a role's end nothing may be held.
"""

from __future__ import annotations

from dataclasses import field
from functools import reduce
from itertools import product

from cake_core.derive.guards import item_guards
from cake_core.diagnostics import Sink
from cake_core.frozen import thawed
from cake_core.ir.flow import Loops, Positions, decide, walk
from cake_core.ir.nodes import Block, Expr, For, Group, If, Name, Op, Role, Stmt, While
from cake_core.ir.types import Level, Scalar
from cake_core.ir.visit import nested
from cake_core.source import Span

#: A verb's effect on the number held: of a producer between acquire and commit, of a consumer between wait and release.
STEP = {"acquire": 1, "commit": -1, "wait": 1, "release": -1, "take": 1, "pass": -1}
OPENS = {"commit": "acquire", "release": "wait", "pass": "take"}
ENDS = {"acquire": "commit", "wait": "release", "take": "pass"}
TOKEN = ("take", "pass")  # the one token of a turn counts as a slot

Held = dict[str, tuple[int, int]]


@thawed
class HeldSlots:
    """The interval held before each `drain` and each statement that is `watched` (by identity of the statement), and the findings."""

    role: Role
    slots: dict[str, int]
    sink: Sink
    watched: frozenset[int] = frozenset()
    at_drain: dict[int, tuple[int, int]] = field(default_factory=dict)
    agreed: frozenset[int] = frozenset()  # statements, by identity, whose condition is made of messages: all roles decide alike
    at: dict[int, Held] = field(default_factory=dict)
    loops: Loops[Held] = field(init=False)
    faults: dict[str, str] = field(default_factory=dict)  # pipeline to the kind of its first fault
    reported: set[tuple[int, str]] = field(default_factory=set)  # statement, code: one finding each, the first

    splits: dict[int, tuple[Expr, ...]] = field(init=False)  # block, by identity: conditions that keep their values in it

    def __post_init__(self) -> None:
        self.loops = Loops(self._block, _join, self._widen)
        self.splits = item_guards(self.role.body, lambda op: isinstance(op.operands[0], Name) and op.operands[0].id in self.slots)

    def analyse(self) -> None:
        end = self._block(self.role.body, {p: (0, 0) for p in self.slots}, {})
        for p, (lo, hi) in end.items():
            if hi > 0 and p not in self.faults:
                verb, span = self._last_opening(p)
                what = f"the token of '{p}'" if verb in TOKEN else f"{_count(lo, hi)} of '{p}'"
                self.sink.error(
                    "derive/held-at-end",
                    f"role '{self.role.name}' ends while it holds {what}",
                    span,
                    role=self.role.name,
                    resource=p,
                    why=f"what is not handed {'on is lost to the other instances, which then wait' if verb in TOKEN else 'back is lost to the other side, which then waits'} for ever",
                    fix=f"`{ENDS[verb]} {p}` on every path" + (f", or `drain {p}` after the loop" if verb == "wait" else ""),
                )

    def touched(self, p: str, statement: Stmt, buffer: str) -> None:
        """A watched statement touches a slot of `p`: an error where none is held, whatever the path."""
        if p in self.faults or self.at.get(id(statement), {}).get(p, (0, 1))[1] > 0:
            return
        verbs = {s.name for s in walk(self.role.body) if isinstance(s, Op) and s.operands == (Name(p),)}
        opens = "acquire" if "acquire" in verbs else "wait"
        self._error(
            statement,
            p,
            "derive/not-held",
            f"'{buffer}' is touched while the role holds no slot of '{p}'",
            f"the slot is another role's before `{opens} {p}` and after `{ENDS[opens]} {p}`",
            f"touch it between `{opens} {p}` and `{ENDS[opens]} {p}`",
        )

    def _last_opening(self, p: str) -> tuple[str, Span]:
        opening = [s for s in walk(self.role.body) if isinstance(s, Op) and s.name in ENDS and s.operands == (Name(p),)]
        return opening[-1].name, opening[-1].span

    # --- abstract execution

    def _block(self, block: Block, held: Held, positions: Positions) -> Held:
        """Guards of the item are followed both ways, each the same way all through the item (S10c)."""
        guards = () if self.loops.spent else self.splits.get(id(block), ())
        ways = [self._straight(block, held, positions | dict(zip(guards, way, strict=True))) for way in product((True, False), repeat=len(guards))]
        return reduce(_join, ways)

    def _straight(self, block: Block, held: Held, positions: Positions) -> Held:
        for s in block:
            held = self._stmt(s, held, positions)
        return held

    def _stmt(self, s: Stmt, held: Held, positions: Positions) -> Held:
        if id(s) in self.watched:
            self.at[id(s)] = _join(held, self.at.get(id(s), held))
        match s:
            case Op(name, (Name(p),)) if name in STEP and p in held:
                return held | {p: self._step(s, p, held[p])}
            case Op("drain", (Name(p),)) if p in held:
                lo, hi = held[p]
                seen = self.at_drain.get(id(s), (lo, hi))
                self.at_drain[id(s)] = (min(lo, seen[0]), max(hi, seen[1]))
                return held | {p: (0, 0)}
            case Group(body):
                return self._block(body, held, positions)
            case For() | While():
                if isinstance(s, For) and s.hi is not None:
                    self._guard(s, "in a loop whose trip count differs among threads", s.lo, s.hi)
                return self.loops.over(s, held, positions)
            case If(test, then, other):
                self._guard(s, "under a condition that differs among threads", test)
                match decide(test, positions):
                    case True:
                        return self._block(then, held, positions)
                    case False:
                        return self._block(other or (), held, positions)
                return _join(self._block(then, held, positions), self._block(other or (), held, positions))
        return held

    def _step(self, s: Op, p: str, now: tuple[int, int]) -> tuple[int, int]:
        lo, hi = now[0] + STEP[s.name], now[1] + STEP[s.name]
        if lo < 0:
            token = s.name in TOKEN
            holds = "nothing" if now == (0, 0) else "the token on some paths only" if token else _count(*now)
            self._error(
                s,
                p,
                "derive/not-held",
                f"`{s.name} {p}` gives up {'the token' if token else 'a slot'} that the role may not hold",
                f"it holds {holds} here",
                f"`{OPENS[s.name]} {p}` must come first on every path",
            )
            return 0, max(hi, 0)
        if hi > 1 and s.name in TOKEN:
            self._error(s, p, "derive/held-too-many", f"`take {p}` may ask for the token that the instance has", "it would wait for itself", f"`pass {p}` first")
            return min(lo, 1), 1
        if hi > self.slots[p]:
            self._error(
                s,
                p,
                "derive/held-too-many",
                f"`{s.name} {p}` may ask for slot {self.slots[p] + 1} of {self.slots[p]}",
                f"the role may hold {_count(self.slots[p], self.slots[p])} here, and would wait for itself",
                f"`{ENDS[s.name]} {p}` on every path{f', `drain {p}` behind the loop,' if s.name == 'wait' else ''} or more slots",
            )
            return min(lo, self.slots[p]), self.slots[p]
        return lo, hi

    def _guard(self, s: Stmt, how: str, *deciders: Expr) -> None:
        """S10: verbs stand only where all warps of all roles take the same path."""
        if id(s) in self.agreed or all(not isinstance(e.type, Scalar) or e.type.level <= Level.CTA for e in deciders):
            return
        verbs = [v for block in nested(s) for v in walk(block) if isinstance(v, Op) and (v.name in STEP or v.name == "drain")]
        for v in verbs:
            if isinstance(v.operands[0], Name) and v.operands[0].id in self.slots:
                self._error(
                    v,
                    v.operands[0].id,
                    "derive/verb-guard",
                    f"`{v.name} {v.operands[0].id}` stands {how}",
                    "every instance takes a turn equally often (S8)" if v.name in ("take", "pass") else "every role of a pipeline must take the same path (S10)",
                    "guard it by constants, loop positions, values of the item or what was received",
                )

    def _widen(self, old: Held, new: Held) -> Held:
        """What still grows goes to its end at once."""
        return {p: (0 if new[p][0] < old[p][0] else new[p][0], self.slots[p] if new[p][1] > old[p][1] else new[p][1]) for p in new}

    def _error(self, s: Stmt, p: str, code: str, message: str, why: str, fix: str) -> None:
        # what follows from one kind of fault is not said of the same pipeline again
        if self.faults.setdefault(p, code) == code and (id(s), code) not in self.reported:
            self.reported.add((id(s), code))
            self.sink.error(code, message, s.span, role=self.role.name, resource=p, why=why, fix=fix)


def _join(a: Held, b: Held) -> Held:
    return {p: (min(a[p][0], b[p][0]), max(a[p][1], b[p][1])) for p in a}


def _count(lo: int, hi: int) -> str:
    many = f"{hi} slot{'s' if hi != 1 else ''}"
    return many if lo == hi else f"{lo} to {many}"
