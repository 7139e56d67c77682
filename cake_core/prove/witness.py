"""A bad cut in words: parameters, and where each role stands in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import z3

from cake_core.facts.schema import Access, Arrive, EngineArrive, Meet, Wait
from cake_core.prove.cut import Moment
from cake_core.prove.protocol import Barrier, Stream
from cake_core.prove.solve import Cuts
from cake_core.prove.states import Use
from cake_core.prove.walk import Frame, Run, Site
from cake_core.rules.predicates import Answer, Standing


@dataclass(slots=True)
class Telling:
    cuts: Cuts

    # --- kinds of findings -----------------------------------------------------------------------------------------

    def deadlock(self, model: z3.ModelRef) -> Answer:
        """Who waits for what, one line an agent that is not at its end, and what is missing there."""
        lines, waiting = [], []
        for key, stops in self.cuts.cut.stops().items():
            run = self.cuts.protocol.runs[key]
            if (site := self._place(model, run, stops)) is None or site.event is None:
                continue
            waiting.append(run.agent.text)
            lines.append(f"{self._who(run)}: waits {self._where(model, run, site)}{self._missing(model, run, site)}")
        reason = f"{_listed(waiting)} wait{'s' if len(waiting) == 1 else ''} for what never comes"
        return self._answer(model, reason, lines)

    def race(self, model: z3.ModelRef, late: Use, first: Use) -> Answer:
        then = f"may still run, {_done(first)}" if first.asynchronous else "runs at the same time"
        reason = f"{_verb(late)} of '{late.access.region.name}' by {late.agent.text} (line {late.site.event.span.line}) can begin while {_verb(first)} by {first.agent.text} (line {first.site.event.span.line}) {then}"
        answer = self._answer(model, reason, self._story(model, (late.run, first.run), first if first.asynchronous else None))
        return replace(answer, **self._at_place(model, late))

    def stale(self, model: z3.ModelRef, site: Site, use: Use) -> Answer:
        reason = f"{site.agent.text} can read what {use.agent.text} sent in another trip (line {site.event.span.line} of '{use.access.region.name}'): they go round unequally often, and one waits for what never comes"
        return self._answer(model, reason, self._story(model, (self.cuts.protocol.runs[site.agent.key], use.run)))

    def started(self, model: z3.ModelRef, use: Use, site: Site) -> Answer:
        reason = f"{_verb(use)} of '{use.access.region.name}' by {use.agent.text} may still run, {_done(use)}"
        return self._answer(model, reason, self._story(model, (use.run, self.cuts.protocol.runs[site.agent.key]), use))

    def left(self, model: z3.ModelRef, use: Use) -> Answer:
        reason = f"{_verb(use)} of '{use.access.region.name}' (line {use.site.event.span.line}) may still run when {use.agent.text} has ended, {_done(use)}"
        return self._answer(model, reason, self._story(model, (use.run,), use))

    def arriving(self, model: z3.ModelRef, b: Barrier, a: Stream) -> Answer:
        reason = f"the last arrival that an engine brings to {b.text} for {a.agent.text} may still be on its way when the CTA has ended: no one has waited for it"
        return self._answer(model, reason, self._story(model, (self.cuts.protocol.runs[a.agent.key],)))

    def phase(self, model: z3.ModelRef, b: Barrier, w: Stream, s: Stream | None) -> Answer:
        if s is None:
            reason = f"{w.agent.text} can wait for a phase of {b.text} while the one behind it is complete too: the parity lies, and the wait hangs or passes late"
        else:
            reason = f"{w.agent.text} can wait for a phase of {b.text} while {s.agent.text} has not finished the one before it: the parity of an older phase lets it pass"
        runs = (self.cuts.protocol.runs[w.agent.key], *((self.cuts.protocol.runs[s.agent.key],) if s is not None else ()))
        return self._answer(model, reason, self._story(model, runs))

    def early(self, model: z3.ModelRef, b: Barrier, a: Stream, s: Stream) -> Answer:
        what = "the bytes of a copy" if a.key[0] == "issue" else "an arrival"
        reason = f"{what} of {a.agent.text} can come to {b.text} while {s.agent.text} is still missing in the phase before: it is counted there"
        return self._answer(model, reason, self._story(model, (self.cuts.protocol.runs[a.agent.key], self.cuts.protocol.runs[s.agent.key])))

    def landing(self, model: z3.ModelRef, b: Barrier, a: Stream) -> Answer:
        what = "the bytes of a copy" if a.key[0] == "issue" else "an arrival"
        reason = (
            f"{what} of {a.agent.text} can come to {b.text} while bytes of the phase before may still be on their way: no one has waited for them"
        )
        return self._answer(model, reason, self._story(model, (self.cuts.protocol.runs[a.agent.key],)))

    def _at_place(self, model: z3.ModelRef, use: Use) -> dict[str, str | None]:
        """Which stage and which iteration an access is of."""

        def here(t: z3.ExprRef) -> z3.ExprRef:
            return self.cuts.cut.here(use.key, t)

        slots = [str(model.eval(here(self.cuts.sums.numbers.number(e, use.site.env).term), True)) for e in use.access.region.slot]
        turns = [f"{f.name}: {self._iteration(model, f, here)}" for f in use.site.frames]
        return {"stage": ", ".join(slots) or None, "iteration": ", ".join(turns) or None}

    # --- parts -----------------------------------------------------------------------------------------------------

    def _answer(self, model: z3.ModelRef, reason: str, story: list[str]) -> Answer:
        names = [*self.cuts.facts.scalars, *(n for n in ("cluster.count", "cluster.id") if model.eval(z3.Int("cluster.count"), True).as_long() > 1)]
        values = [(n, model.eval(z3.Int(n), True).as_long()) for n in names]
        return Answer(Standing.VIOLATED, reason, tuple(values), tuple(story))

    def _story(self, model: z3.ModelRef, concerned: tuple[Run, ...], running: Use | None = None) -> list[str]:
        """What was started, then where the agents stand that a state is about."""
        out = []
        if running is not None:
            then = Moment(running.site, "~", running.run)
            out.append(f"{self._who(running.run)}: has started {_verb(running)}{self._at(model, running.site, then.here)}, {_done(running)}")
        for key in dict.fromkeys(r.agent.key for r in concerned):
            run = self.cuts.protocol.runs[key]
            if (site := self._place(model, run)) is not None:
                out.append(f"{self._who(run)}: {'has ended' if site.event is None else 'is ' + self._where(model, run, site)}")
        return out

    def _who(self, run: Run) -> str:
        return run.agent.text + (f" in CTA {run.agent.cta}" if self.cuts.facts.cluster > 1 else "")

    def _place(self, model: z3.ModelRef, run: Run, among: Sequence[Site] | None = None) -> Site | None:
        """Where the model has an agent. `among`: the places that the question was about; it says nothing of others."""
        at = self.cuts.cut.at[run.agent.key]
        return next((s for s in (run.sites if among is None else among) if z3.is_true(model.eval(at[s.number]))), None)

    def _where(self, model: z3.ModelRef, run: Run, site: Site) -> str:
        def here(t: z3.ExprRef) -> z3.ExprRef:
            return self.cuts.cut.here(run.agent.key, t)

        return f"at {site.event.op}{self._barriers(model, site, here)}{self._at(model, site, here)}"

    def _barriers(self, model: z3.ModelRef, site: Site, here) -> str:
        """Which stage of which barrier the place is about, and the phase that its count means."""
        for act in site.acts:
            match act:
                case Wait(ref) | Arrive(ref) | EngineArrive(ref):
                    key = (
                        ("wait", ref.name)
                        if isinstance(act, Wait)
                        else next((k for k in site.state if k[:2] == ("arrive", ref.name)), ("arrive", ref.name))
                    )
                    ordinal = model.eval(here(site.count(key)), True)
                    stages = self.cuts.facts.barriers[ref.name].slots
                    if z3.is_int_value(ordinal):
                        n = ordinal.as_long()
                        return f" {ref.name}[{n % stages}], its number {n}, phase {n // stages}"
                    return f" {ref.name}"
                case Meet(id=id) if id is not None and hasattr(id, "value"):
                    return f" {id.value}"
                case Access() if act.region.memory in ("shared", "tensor"):
                    slots = [model.eval(here(self.cuts.sums.numbers.number(e, site.env).term), True) for e in act.region.slot]
                    return f" {act.region.name}{''.join(f'[{s}]' for s in slots)}"
        return ""

    def _at(self, model: z3.ModelRef, site: Site, here) -> str:
        line = f" (line {site.event.span.line})" if site.event is not None and site.event.span.line else ""
        turns = [f"{f.name}: {self._iteration(model, f, here)}" for f in site.frames]
        return line + (f", iteration {', '.join(turns)}" if turns else "")

    def _iteration(self, model: z3.ModelRef, f: Frame, here) -> str:
        return str(model.eval(here(f.index), True))

    def _missing(self, model: z3.ModelRef, run: Run, site: Site) -> str:
        """Who has not done its part of the phase that is waited for."""
        out = []
        for b in self.cuts.protocol.barriers.values():
            for w in b.waits:
                if w.agent is not run.agent or all(x.number != site.number for x in w.sites):
                    continue
                goal = self.cuts.cut.awaited(b, w, self.cuts.cut.count(w.agent.key, w.key))
                for s in (*b.arrivals, *b.copies):
                    if s.agent.key in self.cuts.protocol.followers:
                        continue
                    if z3.is_true(model.eval(z3.And(goal >= 0, z3.Not(self.cuts.cut.done(b, s, goal))), True)):
                        done = model.eval(self.cuts.cut.count(s.agent.key, s.key), True)
                        out.append(f"number {model.eval(goal, True)} of {self._who(self.cuts.protocol.runs[s.agent.key])}, which has done {done}")
        return f"; needs {' and '.join(dict.fromkeys(out))}" if out else ""


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
