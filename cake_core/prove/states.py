"""Bad states, each as a formula beside the consistent cuts (`solve.py`); none of them found is a proof.

behind, ahead   a waiter whose barrier has gone on by two phases, or lags by two: its parity says the wrong thing
early           an arrival that lands in a phase before its own; bytes that are credited to one
together        two accesses, and neither is known to be over when the other begins
stale           what is received is not what was sent for the trip that the receiver is in
in flight       something that was started may still run when its role, or its CTA, has ended
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_core import smt
from cake_core.effects import Issuer
from cake_core.facts.schema import Access, By, Loop, WithBytes, WithCommit, WithGroup
from cake_core.prove.agents import mentions, of_warp, place
from cake_core.prove.cut import Moment
from cake_core.prove.protocol import Barrier, Stream, destinations
from cake_core.prove.received import Sent
from cake_core.prove.solve import NONE, Cuts, Found, Result
from cake_core.prove.text import AMONG, LANES, Key, Unanalysed, copied
from cake_core.prove.uses import Use, at_cut, shared, uses_of
from cake_core.prove.walk import Site

# --- phases ------------------------------------------------------------------------------------------------------


def ahead(cuts: Cuts, b: Barrier, w: Stream, s: Stream) -> Found:
    """The wait that comes next while a stream has not done its part of the phase before the one that it is for: its parity says that of
    the one before that."""
    cut = cuts.cut
    goal = cut.awaited(b, w, cut.count(w.agent.key, w.key)) - b.stages
    return cuts.consistent([cut.place(w), goal >= 0, smt.Not(cut.done(b, s, goal))], w.agent.key, s.agent.key)


def behind(cuts: Cuts, b: Barrier, w: Stream) -> Found:
    """The phase behind the one that is waited for complete too: the parity is that of an incomplete one again. One stream that
    can't have gone on so far is enough."""
    cut = cuts.cut
    goal = cut.awaited(b, w, cut.count(w.agent.key, w.key)) + b.stages
    for s in (*b.arrivals, *b.copies):
        if cuts.consistent([cut.place(w), goal >= 0, cut.done(b, s, goal)], w.agent.key, s.agent.key, near=True).result is Result.NONE:
            return NONE
    return cuts.consistent([cut.place(w), goal >= 0, cut.complete(b, goal, cuts.protocol.runs)], *cuts.protocol.runs)


def early(cuts: Cuts, b: Barrier, a: Stream, s: Stream) -> Found:
    """The arrival, or the copy, that comes next while another one is missing in the phase before its own. Who stands in front of a meeting
    has not come to it."""
    cut = cuts.cut
    ordinal = cut.count(a.agent.key, a.key) - b.stages
    missing = smt.Not(cut.done(b, s, ordinal)) if b.mbarrier else cut.count(s.agent.key, s.key) <= ordinal
    return cuts.consistent([cut.place(a), ordinal >= 0, missing], a.agent.key, s.agent.key)


def landing(cuts: Cuts, b: Barrier, a: Stream) -> Found:
    """The arrival, or the copy, that comes next while the bytes of the phase before its own may still be on their way: no one has
    waited for them. One waiter that must have is enough."""
    cut = cuts.cut
    ordinal = cut.count(a.agent.key, a.key) - b.stages
    state = [cut.place(a), ordinal >= 0]
    for w in b.waits:
        if cuts.consistent([*state, _unseen(cuts, b, ordinal, w)], a.agent.key, w.agent.key, near=True).result is Result.NONE:
            return NONE
    return cuts.consistent([*state, *(_unseen(cuts, b, ordinal, w) for w in b.waits)], *cuts.protocol.runs)


# --- accesses ----------------------------------------------------------------------------------------------------


def in_order(a: Use, b: Use) -> bool:
    """Whether the program's order is enough: one thread's accesses that are over at once, parts of one statement, one engine's work."""
    if a.agent is not b.agent:
        return False
    if not (a.asynchronous or b.asynchronous):
        return a.site.event.by is b.site.event.by and not a.several
    if a.site is b.site and not (a is b and a.writes):
        return True
    return isinstance(a.access.completion, WithCommit) and a.access.completion == b.access.completion


def together(cuts: Cuts, late: Use, first: Use, same_bytes: bool) -> Found:
    """`late` is about to begin, and `first` may not be over: it is about to begin too, or was started and is not known to be complete."""
    cut = cuts.cut
    state = [cut.at[late.key][late.site.number]]
    one = _one_statement(late, first)
    access = ("access", late.site.event.id, late.number)
    if first.asynchronous:
        then = Moment(first.site, "~", first.run)
        state += [then.guard, *active(cuts, first, then)]
        theirs, count = then.here, then.count(access) if one else None
    else:
        state.append(cut.at[first.key][first.site.number])
        theirs, count = at_cut(cuts, first), cut.count(first.key, access) if one else None
    if same_bytes:
        common = shared(cuts, late, at_cut(cuts, late), first, theirs)
        if common is None:
            return NONE
        state += common
        if one and not _place_of_warp(late, first):  # in one execution each warp has its own part of the tile: the primitive's lane map
            state.append(cut.count(late.key, access) != count)
        if late.agent is not first.agent and _divided_alike(late, first):
            if smt.is_false(apart := _elsewhere(cuts, late, at_cut(cuts, late), first, theirs)):
                return NONE
            state.append(apart)
    return cuts.consistent(state, late.key, first.key)


def lagging(cuts: Cuts, late: Use, first: Use, same_bytes: bool) -> Found:
    """`late` is about to begin, and lanes that run `first` may not have done so, though their warp is known to be past it: whoever
    speaks for the warp has not met them."""
    cut, then = cuts.cut, Moment(first.site, "~", first.run)
    access = ("access", first.site.event.id, first.number)
    state = [cut.at[late.key][late.site.number], then.guard, then.count(access) < cut.count(first.key, access)]
    queue = AMONG if late.agent is first.agent and late.several and first.several else LANES[first.site.event.by is By.ALL]
    state.append(then.count(("commit", queue)) >= cut.count(first.key, ("retired", queue)))
    for b in cuts.protocol.barriers.values():  # who has passed a meeting has met those who still stand at it
        mine = [w for w in b.waits if w.agent is late.agent and b.waits_always(late.key)] if not b.mbarrier else []
        theirs = [s for s in b.arrivals if s.agent is first.agent] if not b.mbarrier else []
        for s in theirs:
            state += [
                smt.Implies(cut.place(s), cut.count(late.key, m.key) <= cut.count(first.key, s.key)) for m in mine if late.agent is not first.agent
            ]
    if same_bytes:
        common = shared(cuts, late, at_cut(cuts, late), first, then.here)
        if common is None:
            return NONE
        state += common
        if _one_statement(late, first) and not _place_of_warp(late, first):
            state.append(cut.count(late.key, access) != then.count(access))
        if _divided_alike(late, first):
            if smt.is_false(apart := _elsewhere(cuts, late, at_cut(cuts, late), first, then.here)):
                return NONE
            state.append(apart)
    return cuts.consistent(state, late.key, first.key)


def may_lag(late: Use, first: Use) -> bool:
    """Whether someone may speak for lanes that he has not met: of another warp, all lanes' accesses are spoken for by one of them; of one's
    own, each lane runs by itself."""
    if first.asynchronous:
        return False
    if late.agent is first.agent and late.several and first.several:
        return True
    if first.agent.apart:
        return False
    if late.agent is first.agent:
        return late.site.event.by is not first.site.event.by
    return first.site.event.by is By.ALL and any(s.event is not None and s.event.by is not By.ALL for s in first.run.sites)


def received(cuts: Cuts) -> Iterator[tuple[Site, Use]]:
    """Where roles receive what they go on by, and who sends it there."""
    for run in cuts.protocol.runs.values():
        for site in run.sites:
            talk = site.frames[-1].talk if site.frames and site.event is not None else None
            heard: dict[tuple[int, int], Sent] = {}
            for (event, _), sent in talk.hears.items() if talk is not None else ():
                if event == site.event.id:
                    heard[sent.event.id, sent.number] = sent
            for sent in heard.values():
                yield from ((site, u) for u in uses_of(cuts, sent.event, sent.number) if u.cta == run.agent.cta)


def stale(cuts: Cuts, site: Site, use: Use) -> Found:
    """As `_stale`. Who goes round by himself may mean to read another turn's message: that is not said to be wrong."""
    found = _stale(cuts, site, use)
    if found.result is not Result.NONE and isinstance(loop := site.frames[-1].loop, Loop):
        what = f"'{use.access.region.name}' may hold another turn's message than that of the loop over '{loop.var}', which goes by it"
        raise Unanalysed(what, site.event.span)
    return found


def _stale(cuts: Cuts, site: Site, use: Use) -> Found:
    """A receiver is about to read while what was sent for the trip that it is in is not there yet, or not any more: the slot holds, or gets,
    another trip's."""
    cut, region = cuts.cut, use.access.region
    slots = cuts.facts.buffers[region.name].slots[:1]
    ring = slots[0] if slots else 1
    mine = next(a.region for a in site.acts if isinstance(a, Access) and a.region.name == region.name)
    for at, where in ((site, mine), (use.site, region)):
        turn = at.frames[-1].index
        for e in where.slot if ring > 1 else ():
            slot = cuts.sums.numbers.number(e, at.env).term
            if not cuts.sums.holds(slot == turn % ring, at.guard):
                other = cut.here(at.agent.key, slot != turn % ring)
                if (found := cuts.consistent([cut.at[at.agent.key][at.number], other], at.agent.key)).result is not Result.NONE:
                    return found
    issued = issue_of(use)
    if not cuts.sums.holds(use.site.count(issued) == use.site.frames[-1].index, use.site.guard):
        raise Unanalysed(f"'{region.name}' is not sent once a trip", use.site.event.span)
    trip, sent = cut.here(site.agent.key, site.frames[-1].index), cut.count(use.key, issued)
    state = [cut.at[site.agent.key][site.number], smt.Or(sent < trip + 1, sent > trip + ring)]
    found = cuts.consistent(state, site.agent.key, use.key)
    if found.result is not Result.NONE or not use.asynchronous:
        return found
    then = Moment(use.site, "~", use.run)
    state = [cut.at[site.agent.key][site.number], then.guard, then.count(issued) == trip, *active(cuts, use, then)]
    return cuts.consistent(state, site.agent.key, use.key)


def in_flight(cuts: Cuts, use: Use) -> Found:
    """Active when its role has ended; of what a barrier announces, when all roles of the CTA have."""
    cut, then = cuts.cut, Moment(use.site, "~", use.run)
    if isinstance(use.access.completion, WithGroup):
        ends = [cut.at[use.key][use.run.end.number]]
    else:
        ends = [cut.at[k][r.end.number] for k, r in cuts.protocol.runs.items() if r.agent.cta == use.cta]
    return cuts.consistent([*ends, then.guard, *active(cuts, use, then)], use.key)


def arriving(cuts: Cuts, b: Barrier, a: Stream) -> Found:
    """The engine's last arrival on its way when all roles of the barrier's CTA have ended: no one has waited for its phase."""
    cut = cuts.cut
    ordinal = cut.count(a.agent.key, a.key) - 1
    ends = [cut.at[k][r.end.number] for k, r in cuts.protocol.runs.items() if r.agent.cta == b.cta]
    return cuts.consistent([*ends, ordinal >= 0, *(_unseen(cuts, b, ordinal, w) for w in b.waits)], *cuts.protocol.runs)


def incomplete(cuts: Cuts, use: Use, site: Site) -> Found:
    """Active when the agent of `site` stands there."""
    then = Moment(use.site, "~", use.run)
    return cuts.consistent([cuts.cut.at[site.agent.key][site.number], then.guard, *active(cuts, use, then)], site.agent.key, use.key)


def active(cuts: Cuts, use: Use, then: Moment) -> list[smt.Term]:
    """That a past execution was issued, and that no one knows it complete."""
    cut, completion = cuts.cut, use.access.completion
    issued = issue_of(use)
    out = [then.count(issued) < cut.count(use.key, issued)]
    match completion:
        case WithGroup(queue):
            done = ("retired" if use.writes else "read", queue)
            knows = [b for a, b, of in cuts.protocol.joint if a == use.key and of == queue] if use.access.issuer is Issuer.WARPGROUP else []
            out += [then.count(("commit", queue)) >= cut.count(k, done) for k in (use.key, *knows)]  # each warp waits for the operation of all
        case WithBytes():
            for cta in destinations(completion, use.agent):
                b = cuts.protocol.barriers[completion.barrier.name, cta]
                out += [_unseen(cuts, b, then.count(issued), w) for w in b.waits]
        case WithCommit(engine):
            for b in cuts.protocol.barriers.values():
                for a in b.arrivals:
                    if a.agent is use.agent and a.engine == engine:
                        out += [_unseen(cuts, b, then.count(a.key), w) for w in b.waits]
    return out


def issue_of(use: Use) -> Key:
    """What counts how often it was started."""
    event = use.site.event
    if isinstance(use.access.completion, WithBytes):
        return copied(event.acts[use.number].completion, use.run.counting.turns[event.id, use.number])
    return ("access", event.id, use.number)


def _unseen(cuts: Cuts, b: Barrier, ordinal: smt.Term, w: Stream) -> smt.Term:
    """That a waiter has not passed the phase of an ordinal."""
    return cuts.cut.awaited(b, w, cuts.cut.count(w.agent.key, w.key) - 1) < ordinal


def _one_statement(a: Use, b: Use) -> bool:
    return a.site.event is b.site.event and a.agent is not b.agent and _one_instance(a, b)


def _place_of_warp(a: Use, b: Use) -> bool:
    """Whether warps that are each an agent go to places of one statement that their numbers tell: the lane map speaks of one place."""
    if a.agent.warp is None and b.agent.warp is None:
        return False
    return mentions(place(a.site.event.acts[a.number].region), of_warp(a.agent.role.body))


def _one_instance(a: Use, b: Use) -> bool:
    x, y = a.agent, b.agent
    return (x.role, x.cta, x.instance) == (y.role, y.cta, y.instance)


def _divided_alike(a: Use, b: Use) -> bool:
    """Whether what two threads, or two warps, touch of equal tiles is never the same: both accesses give each of them its own part."""
    x, y = a.access.division, b.access.division
    if x is None or y is None or x.map != y.map or a.access.region.name != b.access.region.name or not _one_instance(a, b):
        return False
    lanes = a.agent is b.agent or a.agent.apart
    return not lanes or x.among == y.among == "thread"


def _elsewhere(cuts: Cuts, a: Use, at_a, b: Use, at_b) -> smt.Term:
    """That two tiles of one slot do not start at the same element."""

    def number(e, use: Use, at) -> smt.Term:
        return at(cuts.sums.numbers.number(e, use.site.env).term)

    boxes = zip(a.access.region.box, b.access.region.box, strict=True)
    return smt.simplify(smt.Or([number(x.lo, a, at_a) != number(y.lo, b, at_b) for x, y in boxes]))


def orders(x: Use, y: Use) -> Iterator[tuple[Use, Use]]:
    """Which begins while the other may run: each may begin while an asynchronous one runs, and two that are over at once meet at their places."""
    if y.asynchronous or not x.asynchronous or may_lag(x, y):
        yield x, y
    if x is not y and (x.asynchronous or may_lag(y, x)):
        yield y, x
