"""Delta debugging: a text is made smaller step by step, as long as the oracle says that it still goes wrong.

Blocks and statements are taken out in ever smaller groups, outer ones first and from the end, since what is used stands in front of what uses it
(hierarchical delta debugging, Misherghi and Su 2006, on ddmin, Zeller and Hildebrandt 2002). The same text and oracle give the same result: nothing
is drawn and no clock is asked; `tries` bounds the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cake_core.frozen import frozen
from cake_core.reduce.edits import fixed, forgotten, shortened, smaller, unwrapped
from cake_core.reduce.oracles import Oracle
from cake_core.reduce.pair import Pair

#: Oracle calls without an end of one's own.
TRIES = 600


@frozen
class Reduced:
    """`tries`: how often the oracle was asked; `complete`: nothing smaller is left to try, else the bound ended it."""

    pair: Pair
    tries: int
    complete: bool


def minimise(pair: Pair, oracle: Oracle, tries: int = TRIES, on_step: Callable[[str], None] = lambda step: None) -> Reduced:
    """The smallest text that is found. `oracle(bad, good)`: whether a text, and its twin where there is one, still are what they are taken for; it
    says so of `pair` itself, or nothing is done. `on_step` is told how far it is."""
    run = _Run(oracle, tries, on_step)
    try:
        if not run.holds(pair):
            return Reduced(pair, run.asked, False)
        while True:
            before = pair
            pair = run.taken_out(pair)
            for edits in (forgotten, unwrapped, fixed, shortened, smaller):
                pair = run.each(pair, edits)
            if pair == before:
                return Reduced(pair, run.asked, True)
    except _Spent:
        return Reduced(run.best or pair, run.asked, False)


class _Spent(Exception):
    """The oracle was asked as often as it may be."""


@dataclass(slots=True)
class _Run:
    oracle: Oracle
    tries: int
    on_step: Callable[[str], None]
    asked: int = 0
    best: Pair | None = None
    known: set[tuple[str, str | None]] = field(default_factory=set)

    def holds(self, pair: Pair) -> bool:
        key = pair.bad, pair.good
        if key in self.known:
            return False
        if self.asked >= self.tries:
            raise _Spent
        self.known.add(key)
        self.asked += 1
        self.on_step(f"{len(pair.lines)} lines, try {self.asked}")
        if self.oracle(*key):
            self.best = pair
            return True
        return False

    def taken_out(self, pair: Pair) -> Pair:
        """Units of each depth in groups of all of them, half of them and so on down to one."""
        depth = 0
        while depth <= max((d for d, _ in pair.units()), default=-1):
            units = [u for d, u in pair.units() if d == depth]
            size = len(units)
            while size:
                at = len(units)
                while at > 0:
                    group = units[max(at - size, 0) : at]
                    rest = pair.without(set().union(*group))
                    if self.holds(rest):
                        pair = rest
                        units = [u for d, u in pair.units() if d == depth]
                    at = min(at - size, len(units))
                size //= 2
            depth += 1
        return pair

    def each(self, pair: Pair, edits: Callable[[Pair], Iterator[Pair]]) -> Pair:
        """Edits one after the other; behind one that holds, those that the smaller text still has, from where it stood."""
        passed = 0
        while True:
            for n, edited in enumerate(edits(pair)):
                if n >= passed and self.holds(edited):
                    pair, passed = edited, n
                    break
            else:
                return pair
