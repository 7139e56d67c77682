"""A bad cut in words: parameters, and where each role stands in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cake_core import smt
from cake_core.facts.schema import Access, Arrive, BarrierRef, EngineArrive, Event, Meet, Wait
from cake_core.frozen import frozen, thawed
from cake_core.prove.cut import Moment
from cake_core.prove.numbers import literal
from cake_core.prove.protocol import Barrier, Stream, meeting_name
from cake_core.prove.solve import Cuts
from cake_core.prove.text import Key
from cake_core.prove.uses import Use
from cake_core.prove.walk import Frame, Run, Site
from cake_core.rules.predicates import Answer, Standing
from cake_core.source import Span


@thawed
class Telling:
    """`starved`: the wait of the deadlock that was told last which no one serves, how long ever he runs."""

    cuts: Cuts
    starved: Event | None = None

    # --- kinds of findings -----------------------------------------------------------------------------------------

    def deadlock(self, model: smt.Model) -> Answer:
        """Who waits for what, one line an agent that is not at its end, and what is missing there."""
        stuck = []
        for key, stops in self.cuts.cut.stops().items():
            run = self.cuts.protocol.runs[key]
            if (site := self._place(model, run, stops)) is not None and site.event is not None:
                stuck.append((run, site, self._missing(model, run, site)))
        lines = [(f"{self._who(r)}: waits {self._where(model, r, s)}{_needs(m)}", s.event.span) for r, s, m in stuck]
        waiting = [r.agent.text for r, _, _ in stuck]
        answer = self._answer(model, f"{_listed(waiting)} wait{'s' if len(set(waiting)) == 1 else ''} for what never comes", lines)
        if not stuck:
            return answer
        places = [(s.event.span, f"{r.agent.text} waits here{_needs(m)}") for r, s, m in stuck if s.event.span.line]
        worst = [x for x in stuck if any(m.never for m in x[2])] or stuck
        run, site, missing = next((x for x in worst if x[1].frames), worst[0])  # in a loop, where there is an iteration to tell
        starved = site.event if any(m.never for m in missing) else None
        if starved is not None:
            answer = replace(answer, reason=f"{run.agent.text} waits{_needs([m for m in missing if m.never])}")
        self.starved = starved
        return replace(answer, places=tuple(dict(places).items()), **self._of(run, site), **self._at_sync(model, run, site))

    def race(self, model: smt.Model, late: Use, first: Use) -> Answer:
        then = f"may still run, {_done(first)}" if first.asynchronous else "runs at the same time"
        reason = f"{_verb(late)} of '{late.access.region.name}' by {late.agent.text} (line {late.site.event.span.line}) can begin while {_verb(first)} by {first.agent.text} (line {first.site.event.span.line}) {then}"
        answer = self._answer(model, reason, self._story(model, (late.run, first.run), first if first.asynchronous else None))
        return replace(answer, **self._at_place(model, late))

    def unwritten(self, model: smt.Model, read: Use) -> Answer:
        reason = f"{read.agent.text} can read '{read.access.region.name}' (line {read.site.event.span.line}) before anyone has written what it reads"
        return replace(self._answer(model, reason, self._story(model, (read.run,))), **self._at_place(model, read))

    def stale(self, model: smt.Model, site: Site, use: Use) -> Answer:
        reason = f"{site.agent.text} can read what {use.agent.text} sent in another trip (line {site.event.span.line} of '{use.access.region.name}'): they go round unequally often, and one waits for what never comes"
        return self._answer(model, reason, self._story(model, (self.cuts.protocol.runs[site.agent.key], use.run)))

    def started(self, model: smt.Model, use: Use, site: Site) -> Answer:
        reason = f"{_verb(use)} of '{use.access.region.name}' by {use.agent.text} may still run, {_done(use)}"
        return self._answer(model, reason, self._story(model, (use.run, self.cuts.protocol.runs[site.agent.key]), use))

    def left(self, model: smt.Model, use: Use) -> Answer:
        reason = f"{_verb(use)} of '{use.access.region.name}' (line {use.site.event.span.line}) may still run when {use.agent.text} has ended, {_done(use)}"
        answer = self._answer(model, reason, self._story(model, (use.run,), use))
        span = use.site.event.span if use.site.event.span.line else None
        return replace(answer, span=span, role=use.agent.role.plan.name, resource=use.access.region.name)

    def arriving(self, model: smt.Model, b: Barrier, a: Stream) -> Answer:
        reason = f"the last arrival that an engine brings to {b.text} for {a.agent.text} may still be on its way when the CTA has ended: no one has waited for it"
        run = self.cuts.protocol.runs[a.agent.key]
        return replace(self._answer(model, reason, self._story(model, (run,))), **self._of(run, a.sites[-1]))

    def phase(self, model: smt.Model, b: Barrier, w: Stream, s: Stream | None) -> Answer:
        if s is None:
            reason = f"{w.agent.text} can wait for a phase of {b.text} while the one behind it is complete too: the parity lies, and the wait hangs or passes late"
        else:
            reason = f"{w.agent.text} can wait for a phase of {b.text} while {s.agent.text} has not finished the one before it: the parity of an older phase lets it pass"
        runs = (self.cuts.protocol.runs[w.agent.key], *((self.cuts.protocol.runs[s.agent.key],) if s is not None else ()))
        return replace(self._answer(model, reason, self._story(model, runs)), **self._about(model, w))

    def early(self, model: smt.Model, b: Barrier, a: Stream, s: Stream) -> Answer:
        what = "the bytes of a copy" if a.key[0] == "issue" else "an arrival"
        reason = f"{what} of {a.agent.text} can come to {b.text} while {s.agent.text} is still missing in the phase before: it is counted there"
        runs = (self.cuts.protocol.runs[a.agent.key], self.cuts.protocol.runs[s.agent.key])
        return replace(self._answer(model, reason, self._story(model, runs)), **self._about(model, a))

    def landing(self, model: smt.Model, b: Barrier, a: Stream) -> Answer:
        what = "the bytes of a copy" if a.key[0] == "issue" else "an arrival"
        reason = (
            f"{what} of {a.agent.text} can come to {b.text} while bytes of the phase before may still be on their way: no one has waited for them"
        )
        return replace(self._answer(model, reason, self._story(model, (self.cuts.protocol.runs[a.agent.key],))), **self._about(model, a))

    def _about(self, model: smt.Model, s: Stream) -> dict[str, str | None]:
        """Stage and iteration of what a stream is about to do."""
        run = self.cuts.protocol.runs[s.agent.key]
        site = self._place(model, run)
        return self._at_sync(model, run, site) if site is not None and site.event is not None else {}

    def _at_place(self, model: smt.Model, use: Use) -> dict[str, str | None]:
        """Which stage and which iteration an access is of."""

        def here(t: smt.Term) -> smt.Term:
            return self.cuts.cut.here(use.key, t)

        slots = [str(model.number(here(self.cuts.sums.numbers.number(e, use.site.env).term))) for e in use.access.region.slot]
        turns = [f"{f.name}: {self._iteration(model, f, here)}" for f in use.site.frames]
        return {"stage": ", ".join(slots) or None, "iteration": ", ".join(turns) or None}

    def _at_sync(self, model: smt.Model, run: Run, site: Site) -> dict[str, str | None]:
        """Which stage and which iteration a wait or an arrival is of."""

        def here(t: smt.Term) -> smt.Term:
            return self.cuts.cut.here(run.agent.key, t)

        turns = [f"{f.name}: {self._iteration(model, f, here)}" for f in site.frames]
        named = next(((ref, key) for ref, key in self._refs(site)), None)
        stage = None
        if named is not None and self.cuts.facts.barriers[named[0].name].slots > 1:
            ordinal = model.eval(here(site.count(named[1])), True)
            stage = str(ordinal.value % self.cuts.facts.barriers[named[0].name].slots) if ordinal.value is not None else None
        return {"stage": stage, "iteration": ", ".join(turns) or None}

    @staticmethod
    def _of(run: Run, site: Site) -> dict[str, object]:
        """Where, whose and what a place is."""
        names = [a.barrier.name for a in site.acts if isinstance(a, Wait | Arrive | EngineArrive)]
        names += [meeting_name(a, run.agent) for a in site.acts if isinstance(a, Meet)]
        span = site.event.span if site.event.span.line else None
        return {"span": span, "role": run.agent.role.plan.name, "resource": next(iter(names), None)}

    @staticmethod
    def _refs(site: Site) -> Iterator[tuple[BarrierRef, Key]]:
        """The barriers that a place names, and how what it does there is counted."""
        for act in site.acts:
            match act:
                case Wait(ref):
                    yield ref, ("wait", ref.name)
                case Arrive(ref) | EngineArrive(ref):
                    yield ref, next((k for k in site.state if k[:2] == ("arrive", ref.name)), ("arrive", ref.name))

    # --- parts -----------------------------------------------------------------------------------------------------

    def _answer(self, model: smt.Model, reason: str, story: list[tuple[str, Span | None]]) -> Answer:
        """`story`: lines, and where they stand."""
        names = [*self.cuts.facts.scalars, *(n for n in ("cluster.count", "cluster.id") if model.number(smt.Int("cluster.count")) > 1)]
        values = [(n, model.number(smt.Int(n))) for n in names]
        places = tuple(s if s is not None and s.line else None for _, s in story)
        return Answer(Standing.VIOLATED, reason, tuple(values), tuple(line for line, _ in story), places)

    def _story(self, model: smt.Model, concerned: tuple[Run, ...], running: Use | None = None) -> list[tuple[str, Span | None]]:
        """What was started, then where the agents stand that a state is about."""
        out = []
        if running is not None:
            then = Moment(running.site, "~", running.run)
            line = f"{self._who(running.run)}: has started {_verb(running)}{self._at(model, running.site, then.here)}, {_done(running)}"
            out.append((line, running.site.event.span))
        for key in dict.fromkeys(r.agent.key for r in concerned):
            run = self.cuts.protocol.runs[key]
            if (site := self._place(model, run)) is not None:
                where = "has ended" if site.event is None else f"is {self._where(model, run, site)}"
                out.append((f"{self._who(run)}: {where}", site.event.span if site.event is not None else None))
        return out

    def _who(self, run: Run) -> str:
        return run.agent.text + (f" in CTA {run.agent.cta}" if self.cuts.facts.cluster > 1 else "")

    def _place(self, model: smt.Model, run: Run, among: Sequence[Site] | None = None) -> Site | None:
        """Where the model has an agent. `among`: the places that the question was about; it says nothing of others."""
        at = self.cuts.cut.at[run.agent.key]
        return next((s for s in (run.sites if among is None else among) if model.holds(at[s.number])), None)

    def _where(self, model: smt.Model, run: Run, site: Site) -> str:
        def here(t: smt.Term) -> smt.Term:
            return self.cuts.cut.here(run.agent.key, t)

        return f"at {site.event.op}{self._barriers(model, site, here)}{self._at(model, site, here)}"

    def _barriers(self, model: smt.Model, site: Site, here) -> str:
        """Which stage of which barrier the place is about, and the phase that its count means."""
        for ref, key in self._refs(site):
            ordinal = model.eval(here(site.count(key)), True)
            stages = self.cuts.facts.barriers[ref.name].slots
            if ordinal.value is not None:
                n = ordinal.value
                return f" {ref.name}[{n % stages}], its number {n}, phase {n // stages}"
            return f" {ref.name}"
        for act in site.acts:
            match act:
                case Meet(id=id) if id is not None and hasattr(id, "value"):
                    return f" {id.value}"
                case Access() if act.region.memory in ("shared", "tensor"):
                    slots = [model.number(here(self.cuts.sums.numbers.number(e, site.env).term)) for e in act.region.slot]
                    return f" {act.region.name}{''.join(f'[{s}]' for s in slots)}"
        return ""

    def _at(self, model: smt.Model, site: Site, here) -> str:
        line = f" (line {site.event.span.line})" if site.event is not None and site.event.span.line else ""
        turns = [f"{f.name}: {self._iteration(model, f, here)}" for f in site.frames]
        return line + (f", iteration {', '.join(turns)}" if turns else "")

    def _iteration(self, model: smt.Model, f: Frame, here) -> str:
        return str(model.number(here(f.index)))

    def _missing(self, model: smt.Model, run: Run, site: Site) -> list[Missing]:
        """Who has not done its part of the phase that is waited for."""
        out = []
        for b in self.cuts.protocol.barriers.values():
            for w in b.waits:
                if w.agent is not run.agent or all(x.number != site.number for x in w.sites):
                    continue
                goal = self.cuts.cut.awaited(b, w, self.cuts.cut.count(w.agent.key, w.key))
                if b.short or not b.arrivals:
                    out.append(Missing(SHORT if b.arrivals else NO_ONE, model.number(goal), 0, None if b.arrivals else 0))
                    continue
                for s in (*b.arrivals, *b.copies):
                    if s.agent.key in self.cuts.protocol.followers:
                        continue
                    if model.holds(smt.And(goal >= 0, smt.Not(self.cuts.cut.done(b, s, goal))), True):
                        done = model.eval(self.cuts.cut.count(s.agent.key, s.key), True)
                        whole = self._in_all(model, self.cuts.protocol.runs[s.agent.key].end.count(s.key))
                        number = model.number(goal)
                        never = whole if whole is not None and whole <= number else None
                        out.append(Missing(self._who(self.cuts.protocol.runs[s.agent.key]), number, done.value, never))
        return list(dict.fromkeys(out))

    def _in_all(self, model: smt.Model, count: smt.Term) -> int | None:
        """How often something is done in all, as far as the example's sizes say it: the model may say anything of what the cut does not name."""
        numbers, sums = self.cuts.sums.numbers, self.cuts.sums
        known = [(p.term, model.eval(p.term, True)) for p in numbers.parameters.values()]
        for term, exact in numbers.exact:
            if literal(value := smt.simplify(smt.substitute(exact, *known))) is not None:
                known.append((term, value))
        count = smt.simplify(smt.substitute(count, *known))
        for app in sums.applications.of([count]):
            family = sums.families.get(app.name)
            if family is None or not family.invariant or literal(n := app.args[0]) is None:
                return None
            if literal(step := smt.simplify(smt.substitute(family.step_at(n, [app.args[i] for i in range(1, len(app.args))]), *known))) is None:
                return None
            known.append((app, smt.IntVal(literal(step) * literal(n))))
        return literal(smt.simplify(smt.substitute(count, *known)))


@frozen
class Missing:
    """The `number`-th time, from 0, that somebody has to do something, who has done it `done` times; `in_all`: how often he ever does, if
    that is too few."""

    who: str
    number: int
    done: int
    in_all: int | None

    @property
    def never(self) -> bool:
        return self.in_all is not None

    def __str__(self) -> str:
        done = f"does it {self.in_all} times in all" if self.never else f"has done {self.done}"
        return f"number {self.number} of {self.who}, which {done}"


#: Who is missing where no one arrives, or where all that arrive are too few.
NO_ONE, SHORT = "no one", "all of them"


def _needs(missing: list[Missing]) -> str:
    if any(m.who == NO_ONE for m in missing):
        return "; no one arrives there"
    if any(m.who == SHORT for m in missing):
        return "; each of its phases counts more arrivals, or bytes, than it gets"
    return f"; needs {' and '.join(map(str, missing))}" if missing else ""


def _verb(use: Use) -> str:
    return f"{'the write' if use.writes else 'the read'} by {use.site.event.op}"


def _done(use: Use) -> str:
    match type(use.access.completion).__name__:
        case "WithGroup":
            return "its group is not waited for"
        case "WithBytes":
            return f"no one has waited for '{use.access.completion.barrier.name}' behind it"
        case "WithCommit":
            return "no one has waited for a commit behind it"
    return ""


def _listed(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    return unique[0] if len(unique) == 1 else ", ".join(unique[:-1]) + " and " + unique[-1] if unique else "no one"
