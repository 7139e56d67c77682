"""How many slots of each pipeline a role holds at each point (S4), as an interval, over all trip counts (S10).

At a role's end nothing may be held.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cake_core.diagnostics import Sink
from cake_core.ir.flow import Positions, decide, over_loop
from cake_core.ir.nodes import Block, For, If, Name, Op, Role, Stmt, While
from cake_core.ir.types import Level, Scalar

#: A verb's effect on the number held: of a producer between acquire and commit, of a consumer between wait and release.
STEP = {"acquire": 1, "commit": -1, "wait": 1, "release": -1}

Held = dict[str, tuple[int, int]]


@dataclass(slots=True)
class HeldSlots:
    """The interval held before each `drain` (by identity of the statement), and the findings."""

    role: Role
    slots: dict[str, int]
    sink: Sink
    at_drain: dict[int, tuple[int, int]] = field(default_factory=dict)

    def analyse(self) -> None:
        end = self._block(self.role.body, {p: (0, 0) for p in self.slots}, {})
        for p, (lo, hi) in end.items():
            if hi > 0:
                self.sink.error(
                    "derive/held-at-end",
                    f"role '{self.role.name}' ends while it holds {_count(lo, hi)} of '{p}'",
                    self.role.span,
                    role=self.role.name,
                    resource=p,
                    fix=f"hand them back: `drain {p}` after the loop, or a `release` or `commit` on every path",
                )

    # --- abstract execution

    def _block(self, block: Block, held: Held, positions: Positions) -> Held:
        for s in block:
            held = self._stmt(s, held, positions)
        return held

    def _stmt(self, s: Stmt, held: Held, positions: Positions) -> Held:
        match s:
            case Op(name, (Name(p),)) if name in STEP and p in held:
                return held | {p: self._step(s, p, held[p])}
            case Op("drain", (Name(p),)) if p in held:
                lo, hi = held[p]
                seen = self.at_drain.get(id(s), (lo, hi))
                self.at_drain[id(s)] = (min(lo, seen[0]), max(hi, seen[1]))
                return held | {p: (0, 0)}
            case For() | While():
                return over_loop(s, held, positions, self._block, _join)
            case If(test, then, other):
                match decide(test, positions):
                    case True:
                        return self._block(then, held, positions)
                    case False:
                        return self._block(other or (), held, positions)
                after = self._block(then, held, positions)
                otherwise = self._block(other or (), held, positions)
                self._guard(s, held, after, otherwise)
                return _join(after, otherwise)
        return held

    def _step(self, s: Op, p: str, now: tuple[int, int]) -> tuple[int, int]:
        lo, hi = now[0] + STEP[s.name], now[1] + STEP[s.name]
        if lo < 0:
            what = "gives up a slot that it may not hold"
            self._error(s, p, "derive/not-held", f"`{s.name} {p}` {what}", f"it holds {_count(*now)} here", f"`{_OPENS[s.name]} {p}` must come first on every path")
            return 0, max(hi, 0)
        if hi > self.slots[p]:
            self._error(s, p, "derive/held-too-many", f"`{s.name} {p}` would hold {hi} of {self.slots[p]} slots", "the role would wait for itself", "give a slot up first, or add slots")
            return min(lo, self.slots[p]), self.slots[p]
        return lo, hi

    def _guard(self, s: If, before: Held, then: Held, other: Held) -> None:
        """S10: verbs stand only under conditions that all warps of all roles decide alike."""
        if isinstance(s.test.type, Scalar) and s.test.type.level > Level.CTA:
            for p in before:
                if then[p] != other[p]:
                    self._error(s, p, "derive/verb-guard", f"a verb of '{p}' stands under a condition that differs among threads", "every role of a pipeline must take the same path (S10)", "guard it by constants, loop positions or values of the item")

    def _error(self, s: Stmt, p: str, code: str, message: str, why: str, fix: str) -> None:
        self.sink.error(code, message, s.span, role=self.role.name, resource=p, why=why, fix=fix)


_OPENS = {"commit": "acquire", "release": "wait"}


def _join(a: Held, b: Held) -> Held:
    return {p: (min(a[p][0], b[p][0]), max(a[p][1], b[p][1])) for p in a}


def _count(lo: int, hi: int) -> str:
    many = f"{hi} slot{'s' if hi != 1 else ''}"
    return many if lo == hi else f"between {lo} and {many}"
