"""What rules ask about order, as questions about cuts, and the answers told. `prover.py` asks here what it does not know yet."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from typing import TYPE_CHECKING

from cake_core import smt
from cake_core.effects import Mode
from cake_core.facts import Row, Rows
from cake_core.facts.schema import Access, While
from cake_core.frozen import thawed
from cake_core.prove import setup
from cake_core.prove.beside import Beside
from cake_core.prove.effort import SOLVER, asked
from cake_core.prove.protocol import Barrier, Stream
from cake_core.prove.solve import Cuts, Found, Result, TooMany
from cake_core.prove.states import (
    ahead,
    arriving,
    behind,
    early,
    in_flight,
    in_order,
    incomplete,
    lagging,
    landing,
    may_lag,
    orders,
    received,
    stale,
    together,
)
from cake_core.prove.sweep import Asked, sweep
from cake_core.prove.text import Unanalysed
from cake_core.prove.uses import Use, apart, may_share, meeting_form, uses_of
from cake_core.prove.walk import Site
from cake_core.prove.within import traced
from cake_core.prove.witness import Telling
from cake_core.prove.written import ask, first_read, unwritten
from cake_core.rules.predicates import PROVED, Answer, Conditions, Given, Standing, unknown

if TYPE_CHECKING:
    from cake_core.prove.executed import Executed
    from cake_core.prove.replay import Replays
from cake_core.source import Span

#: In the place of a row: what is asked of the ends of all runs.
END = "end"


@thawed
class Answers:
    """Answers for one kernel. Its cuts are made when the first question comes; a text that is outside of the method is unknown, with the reason."""

    rows: Rows
    beside: Beside | None = None
    examples: bool = True  # of what is violated, with a run; else it is no more than not proved
    runs: bool = True  # the event machine executes what is asked about
    _cuts: Cuts | Unanalysed | None = None
    _hangs: Answer | None = None
    _telling: Telling | None = None
    _questions: tuple[dict[tuple[str, ...], range], list[Asked]] | None = None  # commonly asked, by what they are about
    _swept: set[tuple[str, ...]] | None = None
    _many: TooMany | None = None  # what is asked after a deadlock is more than is asked of one kernel
    _replays: Replays | None = None
    _executed: Executed | None = None
    _traced: dict[str, Answers] = field(default_factory=dict)  # by tensor whose accesses are followed

    def deadlock_free(self, given: Conditions = ()) -> Answer:
        if given:
            return unknown("that a kernel does not hang is proved for all its runs or not at all")
        if self._hangs is None:
            self._hangs = self._asked(self._hang)
            if self._hangs.outside and self._executed is not None:
                self._hangs = self._executed.deadlock() or self._hangs
        return self._hangs

    def served(self, given: Conditions = ()) -> Answer:
        """A wait that is not served in all is one way to hang, so where nothing hangs each is."""
        if given:
            return unknown("whether waits are served under conditions")
        hangs = self.deadlock_free()
        starved = self._telling is not None and self._telling.starved is not None
        if hangs.standing is not Standing.PROVED and not hangs.outside and not (starved and hangs.standing is Standing.VIOLATED):
            return _outside("the kernel can hang in another way, and what else it does is not decided before that is mended")
        return hangs

    def ordered(self, a: Row, b: Row, given: Conditions) -> Answer:
        conditions = _named(given)
        if not _accesses(a, b):
            return unknown("the order of what touches no memory")
        if conditions == {"same_slot", "overlap"} and self._known_at_once(a, b):
            return PROVED
        if conditions is None or "overlap" in conditions and "same_slot" not in conditions:
            return unknown("order under these conditions")
        if "before" in (a.site.part, b.site.part):
            apart = bool(conditions) and not may_share(self.rows.facts, a.site.act.region, b.site.act.region)
            return PROVED if apart else setup.ordered(self.rows.facts, a, b)
        return self._after_deadlock(lambda cuts: self._pairs(cuts, a, b, bool(conditions), orders))

    def completes(self, access: Row, before: Row, given: Conditions = ()) -> Answer:
        conditions = _named(given)
        if conditions and not _accesses(access, before):
            return unknown("common bytes with what touches no memory")
        if "before" in (access.site.part, before.site.part):
            return _outside("what is complete in front of the roles")
        if conditions == {"same_slot", "overlap"} and self._known_at_once(access, before):
            return PROVED
        if conditions is None or bool(conditions) != (conditions == {"same_slot", "overlap"}):
            return unknown("completion under these conditions")
        if not conditions:
            return self._after_deadlock(lambda cuts: self._worst(self._over(cuts, access, before)))
        return self._after_deadlock(lambda cuts: self._pairs(cuts, access, before, True, lambda x, y: [(y, x)]))

    def phase_safe(self, sync: Row, given: Conditions) -> Answer:
        if given:
            return unknown("phases under conditions")
        if sync.site.part != "role":
            return _outside("a wait or an arrival outside of the roles")
        if self._known_at_once(sync):
            return PROVED
        answer = self._after_deadlock(lambda cuts: self._worst(self._phases(cuts, sync)))
        if answer.outside and self._executed is not None:
            return self._executed.phase(sync) or answer
        return answer

    def drained(self, given: Conditions) -> Answer:
        if given:
            return unknown("ends under conditions")

        if self._known_at_once(END):
            return PROVED
        answer = self._after_deadlock(lambda cuts: self._worst(self._ends(cuts)))
        if answer.outside and self._executed is not None:
            return self._executed.drained() or answer
        return answer

    def written(self, access: Row, given: Conditions) -> Answer:
        if given:
            return unknown("what was written, under conditions")
        if not _accesses(access) or access["space"] not in ("shared", "tensor"):
            return unknown("what was written to other memory than a CTA's")
        if access.site.part == "before":
            return first_read(self.rows.facts, access)
        if self._known_at_once(access):
            return PROVED
        return self._after_deadlock(lambda cuts: self._worst(self._unwritten(cuts, access)))

    def ordered_beside(self, a: Row, b: Row) -> Answer:
        """The order of two accesses of one tensor by agents of one CTA, where they touch a common element. No machine executes that."""

        def ask(cuts: Cuts) -> Answer:
            name = a.site.act.region.name
            if name not in self._traced:
                own = Cuts(traced(cuts.facts, name), examples=self.examples)
                self._traced[name] = Answers(self.rows, None, self.examples, False, own, PROVED, Telling(own), _swept=set())
            mine = self._traced[name]
            smt.use(mine._cuts.context)  # its terms are no others'
            try:
                return mine._pairs(mine._cuts, a, b, True, orders)
            finally:
                smt.use(cuts.context)

        return self._after_deadlock(ask)

    def _hang(self, cuts: Cuts) -> Answer:
        """The counts first: what is said of phases is so only where each gets what it counts. Then whether one waits for ever, and last whether
        those who go on by what they receive receive what was meant for them: loops are taken to go round equally often because they do."""
        for run in cuts.protocol.runs.values():
            for w in run.endless:
                return Answer(Standing.VIOLATED, f"the `while` in line {w.span.line} never ends: whatever {run.agent.text} sends lets it go on")
        for b, what in cuts.protocol.uncovered():
            return _outside(f"{b.text} {what}")
        answer = self._told(cuts.blocked(), self._telling.deadlock)
        if answer.standing is not Standing.PROVED:
            return answer
        return self._worst(self._told(stale(cuts, site, use), self._telling.stale, site, use) for site, use in received(cuts))

    # --- all at once -----------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Walk the roles, put up their cuts and collect what is commonly asked of them: what both processes start from."""
        self._asked(self._collect)

    def settle(self) -> None:
        """Ask at once what is commonly asked, if that was not done."""
        self._known_at_once()

    def sweep(self) -> None:
        """The same where another process asks whether the kernel can hang."""
        self._asked(self._sweep)

    def _known_at_once(self, *rows: Row | str) -> bool:
        """Whether the first sweep over all that is commonly asked settled this."""
        if self._swept is None:
            self._swept = set()
            self._after_deadlock(self._sweep)
        known = tuple(sorted(r if isinstance(r, str) else r.id for r in rows)) in self._swept
        if known and (effort := asked()) is not None:
            effort.by(SOLVER)
        return known

    def _sweep(self, cuts: Cuts) -> Answer:
        """Ask what is commonly asked together, and note whose questions have no answer."""
        if self._questions is None:
            self._collect(cuts)
        safe = sweep(cuts, self._questions[1], self.beside)
        self._swept = {about for about, span in self._questions[0].items() if all(n in safe for n in span)}
        return PROVED

    def _collect(self, cuts: Cuts) -> Answer:
        """What phases and races ask. What is outside of the method is left to be asked alone."""
        spans: dict[tuple[str, ...], range] = {}
        cuts.collecting = collected = []
        try:
            for about, ask in self._common(cuts):
                start = len(collected)
                try:
                    ask()
                except TooMany:
                    raise
                except Unanalysed:
                    continue
                spans[about] = range(start, len(collected))
        finally:  # whatever ends this, no later question is answered by noting it
            cuts.collecting = None
        self._questions = spans, [Asked(*q) for q in collected]
        return PROVED

    def _common(self, cuts: Cuts) -> Iterator[tuple[tuple[str, ...], Callable[[], object]]]:
        for sync in (*self.rows["wait"], *self.rows["arrive"], *self.rows["engine_arrive"], *self.rows["meet"]):
            if sync.site.part == "role":
                yield (sync.id,), lambda sync=sync: list(self._phases(cuts, sync))
        touching = [r for r in self.rows["access"] if r.site.part == "role" and r.site.act.region.memory in ("shared", "tensor")]
        for a, b in itertools.combinations_with_replacement(touching, 2):
            if Mode.WRITE in (a.site.act.mode, b.site.act.mode) and may_share(cuts.facts, a.site.act.region, b.site.act.region):
                yield tuple(sorted((a.id, b.id))), lambda a=a, b=b: self._pairs(cuts, a, b, True, orders)
        for r in touching:
            if r.site.act.mode is Mode.READ or r.site.act.atomic:
                yield (r.id,), lambda r=r: list(self._unwritten(cuts, r))
        yield (END,), lambda: list(self._ends(cuts))

    # --- questions -------------------------------------------------------------------------------------------------

    def _over(self, cuts: Cuts, access: Row, before: Row) -> Iterator[Answer]:
        """Whether what an access started is over where another statement stands."""
        asked = set()
        for use in self._uses(cuts, access):
            for site in self._sites(cuts, before):
                if use.asynchronous and _new(asked, cuts, (use.key, site.agent.key), (use.cta,), use.site.number, site.number):
                    yield self._told(incomplete(cuts, use, site), self._telling.started, use, site)

    def _ends(self, cuts: Cuts) -> Iterator[Answer]:
        asked = set()
        for row in self.rows["access"]:
            if row.site.part != "before":
                for use in self._uses(cuts, row):
                    if not _new(asked, cuts, (use.key,), (use.cta,), row.id, use.site.number):
                        continue
                    if use.asynchronous and use.access.region.memory in ("shared", "tensor"):
                        yield self._told(in_flight(cuts, use), self._telling.left, use)
        for b in cuts.protocol.barriers.values():
            for stream in b.arrivals:
                if stream.engine is not None and _new(asked, cuts, (stream.agent.key,), (b.cta,), b.name, stream.key):
                    yield self._told(arriving(cuts, b, stream), self._telling.arriving, b, stream)

    def _unwritten(self, cuts: Cuts, access: Row) -> Iterator[Answer]:
        written = [r for r in self.rows["access"] if r["buffer"] == access["buffer"] and r["mode"] == "write" and r.site.part == "role"]
        writes = [use for row in written for use in self._uses(cuts, row)]
        asked = set()
        for read in self._uses(cuts, access):
            for question in unwritten(cuts, read, [w for w in writes if w.cta == read.cta]):
                if not _new(asked, cuts, (read.key, *(w.key for w in question.writes)), (read.cta,), *question.form):
                    continue
                found = ask(cuts, question)
                if found.result is Result.SOME and any(self._races(cuts, access, row) for row in written):
                    yield _outside(f"a read of '{access['buffer']}' meets a write of it, and what it reads is not decided before that is mended")
                else:
                    yield self._told(found, self._telling.unwritten, read)

    def _races(self, cuts: Cuts, a: Row, b: Row) -> bool:
        if self._known_at_once(a, b):
            return False
        return self._pairs(cuts, a, b, True, orders).standing is Standing.VIOLATED

    def _pairs(self, cuts: Cuts, a: Row, b: Row, same_bytes: bool, orders: Callable[[Use, Use], Iterable[tuple[Use, Use]]]) -> Answer:
        if a.site.act.region.memory not in ("shared", "tensor") and a.site.act.region.name not in cuts.facts.buffers:
            return unknown(f"the order of accesses to {a.site.act.region.memory} memory")
        if same_bytes and not may_share(cuts.facts, a.site.act.region, b.site.act.region):
            return PROVED
        pairs = (
            itertools.combinations_with_replacement(self._uses(cuts, a), 2) if a is b else itertools.product(self._uses(cuts, a), self._uses(cuts, b))
        )
        asked = set()
        for x, y in pairs:
            if same_bytes and (x.cta != y.cta or apart(x, y)) or in_order(x, y):
                continue
            for late, first in orders(x, y):
                places = (late.site.number, first.site.number, late is first, meeting_form(late, first) if same_bytes else ())
                if not _new(asked, cuts, (late.key, first.key), (late.cta, first.cta), *places):
                    continue
                answers = [
                    PROVED
                    if late.agent is first.agent and not first.asynchronous
                    else self._told(together(cuts, late, first, same_bytes), self._telling.race, late, first)
                ]
                if may_lag(late, first):
                    answers.append(self._told(lagging(cuts, late, first, same_bytes), self._telling.race, late, first))
                for answer in answers:
                    if answer.standing is not Standing.PROVED:
                        return answer
        return PROVED

    def _phases(self, cuts: Cuts, sync: Row) -> Iterator[Answer]:
        event, asked = sync.site.event, set()

        def new(b: Barrier, *streams: Stream) -> bool:
            agents = tuple(s.agent.key for s in streams)
            return _new(asked, cuts, agents, (b.cta,) if b.cta >= 0 else (), b.name if b.mbarrier else "", *(s.key for s in streams))

        for b in cuts.protocol.barriers.values():
            others = (*b.arrivals, *b.copies)
            for w in b.waits if b.mbarrier else ():
                if _stands(w, event):
                    if new(b, w):
                        yield self._told(behind(cuts, b, w), self._telling.phase, b, w, None)
                    for s in others:
                        if new(b, w, s):
                            yield self._told(ahead(cuts, b, w, s), self._telling.phase, b, w, s)
            for a in others:
                if _stands(a, event) and not (b.waits_always(a.agent.key) and not b.mbarrier):
                    for s in others:
                        if s is not a and new(b, a, s):
                            yield self._told(early(cuts, b, a, s), self._telling.early, b, a, s)
                    if b.copies and new(b, a):
                        yield self._told(landing(cuts, b, a), self._telling.landing, b, a)

    # --- help ------------------------------------------------------------------------------------------------------

    def _asked(self, ask: Callable[[Cuts], Answer]) -> Answer:
        if self._cuts is None:
            try:
                self._cuts = Cuts(self.rows.facts, examples=self.examples)
                self._telling = Telling(self._cuts)
            except Unanalysed as fault:
                from cake_core.prove.executed import Executed  # which loads the event machine

                self._cuts, self._executed = fault.with_traceback(None), Executed(self.rows, fault) if self.examples else None
        if isinstance(self._cuts, Unanalysed):
            return _outside(self._cuts.what, self._cuts.span)
        smt.use(self._cuts.context)
        try:
            return ask(self._cuts)
        except Unanalysed as fault:
            self._many = fault if isinstance(fault, TooMany) else self._many
            return _outside(fault.what, fault.span)

    def _after_deadlock(self, ask: Callable[[Cuts], Answer]) -> Answer:
        """Cuts are runs only where no run hangs: while one may, that is what is to be mended."""
        hangs = self.deadlock_free()
        if hangs.standing is Standing.PROVED:
            return self._asked(ask) if self._many is None else _outside(self._many.what)
        if hangs.outside:
            return hangs
        how = "can" if hangs.standing is Standing.VIOLATED else "may"
        return _outside(f"the kernel {how} hang, and what else it does is not decided before that is mended")

    def _told(self, found: Found, tell: Callable[..., Answer], *parts) -> Answer:
        match found.result:
            case Result.NONE:
                return PROVED
            case Result.UNKNOWN:
                return unknown(found.reason)
        if not self.examples:
            return unknown("it is not so in some state")
        answer = tell(found.model, *parts)
        loose = next((w for r in self._cuts.protocol.runs.values() for w in r.loose), None)
        if not self.runs:
            return answer if loose is None else self._loose(loose)
        from cake_core.prove.replay import Replays, shown  # which loads the event machine: only what is broken needs it

        if self._replays is None:
            self._replays = Replays(self.rows.facts, self._cuts.sums.numbers.parameters)
        faults = self._replays.at(answer.values)
        doubted = found.rests_on and tell.__name__ == "deadlock"  # which every run of a launch comes to, or none: one that ends says much
        if not faults and (loose is not None or doubted):  # a cut that no run may have, or one that runs have at other sizes
            if (seen := self._replays.elsewhere()) is not None:
                answer, faults = replace(answer, values=seen, story=(), story_places=()), self._replays.at(seen)
            elif loose is not None:
                return self._loose(loose)
        if faults is None:
            return answer
        if doubted and not faults and self._replays.silent():
            why = f"{answer.reason}, if what is not known of '{found.rests_on}' lets it; the event machine finds nothing wrong at small sizes"
            return replace(answer, standing=Standing.UNKNOWN, reason=why, confirmed=False)
        of = next((p.access.region.name if isinstance(p, Use) else p.name for p in parts if isinstance(p, Use | Barrier)), None)
        confirmed, fault = shown(faults, tell.__name__, of)
        return replace(answer, confirmed=confirmed, fault=fault)

    @staticmethod
    def _loose(loop: While) -> Answer:
        return _outside(f"how often the `while` in line {loop.span.line} goes round beside other loops")

    def _worst(self, answers: Iterator[Answer]) -> Answer:
        undecided = PROVED
        for a in answers:
            if a.standing is Standing.VIOLATED:
                return a
            if a.standing is Standing.UNKNOWN:
                undecided = a
        return undecided

    def _uses(self, cuts: Cuts, row: Row):
        return uses_of(cuts, row.site.event, next(n for n, x in enumerate(row.site.event.acts) if x is row.site.act))

    def _sites(self, cuts: Cuts, row: Row) -> list[Site]:
        return [s for run in cuts.protocol.runs.values() for s in run.sites if s.event is row.site.event]


def _accesses(*rows: Row) -> bool:
    return all(isinstance(r.site.act, Access) for r in rows)


def _outside(why: str, at: Span | None = None) -> Answer:
    """The method does not speak of this, or not yet; `at`: which statement."""
    return replace(unknown(why), outside=True, at=at)


def _stands(s: Stream, event) -> bool:
    return any(x.event is event for x in s.sites)


def _new(asked: set, cuts: Cuts, agents: tuple[str, ...], ctas: tuple[int, ...], *what) -> bool:
    """Whether a question is the first of those that symmetries of the kernel make equal (`alike.py`). `what`: all of it but who and where."""
    form = (cuts.alike.form(agents, ctas), what)
    return form not in asked and not asked.add(form)


def _named(given: Conditions) -> set[str] | None:
    """The predicates among conditions; None where one is something else."""
    if any(not isinstance(g, Given) or g.name not in ("same_slot", "overlap") for g in given):
        return None
    return {g.name for g in given}
