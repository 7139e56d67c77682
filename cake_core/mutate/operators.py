"""Mutation operators on statements, each chosen by the effects that a statement declares.

drop, twice       a wait, an arrival, a commit, a drain, a fence, a meeting, a copy, a whole guarded block, left out or executed twice
swap, late, early two neighbours the other way round, a wait behind what it protects, an arrival in front of it
number            expected bytes, parity, pending groups, threads, barrier ids, masks, ranks
control           a trip more or less, a guard left out or negated, a counter that starts anew with each item
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cake_core import effects as e
from cake_core.ir.build import LEADER, WARP_LEADER, binary
from cake_core.ir.nodes import Assign, Expr, For, If, Int, Kernel, Name, Op, Stmt, Unary, Var, Words
from cake_core.ir.places import names
from cake_core.ir.visit import nested
from cake_core.mutate.sites import Edit, Spot, effects, spots, synchronises
from cake_core.primitive.asking import effects_of

#: What may be left out, by what it is called.
DROPS = {
    "wait": (e.BarrierWait,),
    "arrival": (e.BarrierArrive, e.EngineCommit),
    "group": (e.CommitGroup,),
    "drain": (e.WaitGroup,),
    "fence": (e.Fence,),
    "meeting": (e.Rendezvous,),
    "init": (e.BarrierInit,),
    "columns": (e.Reserve, e.Free),
    "grid order": (e.GridOrder,),
}
#: What may happen once more.
TWICE = (e.BarrierArrive, e.EngineCommit, e.CommitGroup)
#: What hands over.
SIGNALS = (e.BarrierArrive, e.EngineCommit)
#: Guards that choose a lane.
LANES = {LEADER.id, WARP_LEADER.id}


def statement_edits(kernel: Kernel, typed: Kernel, registry) -> Iterator[Edit]:
    ids = sorted({x.id.value for s in spots(kernel, typed) for t in s.typed for x in effects_of(t, registry) if _named(x) and isinstance(x.id, Int)})
    for spot in spots(kernel, typed):
        for i, s in enumerate(spot.block):
            own = effects_of(spot.typed[i], registry)
            if isinstance(s, Op) and own:
                yield from _dropped(spot, i, own)
                yield from _numbers(spot, i, own, ids, typed)
            if isinstance(s, If):
                yield from _guards(spot, i, registry)
            if isinstance(s, For):
                yield from _trips(spot, i)
            yield from _order(spot, i, registry)
        yield from _resets(spot)


def name(s: Stmt) -> str:
    """A statement as reports name it."""
    if isinstance(s, Op):
        return s.name
    return f"{type(s).__name__.lower()} {' '.join(dict.fromkeys(name(x) for b in nested(s) for x in b if isinstance(x, Op)))}".strip()


# --- left out, twice ---------------------------------------------------------------------------------------------


def _dropped(spot: Spot, i: int, own) -> Iterator[Edit]:
    s = spot.block[i]
    kind = next((k for k, kinds in DROPS.items() if any(isinstance(x, kinds) for x in own)), None)
    if kind is None and any(isinstance(x, e.Access) and not isinstance(x.completion, e.Now) for x in own):
        kind = "copy"
    if kind is not None:
        yield Edit(f"drop {kind}", name(s), s.span, spot.without(i))
    if any(isinstance(x, TWICE) for x in own):
        yield Edit(f"twice {kind}", name(s), s.span, spot.instead(i, s, s))


def _guards(spot: Spot, i: int, registry) -> Iterator[Edit]:
    s, t = spot.block[i], spot.typed[i]
    if not effects(t, registry):
        return
    yield Edit("drop block", name(s), s.span, spot.without(i))
    if not LANES & {n.id for n in names(s.test)}:  # what all lanes but one do has no execution of its own
        yield Edit("negate guard", name(s), s.span, spot.instead(i, replace(s, test=Unary("not", s.test))))
    if s.other is None:
        yield Edit("drop guard", name(s), s.span, spot.instead(i, *s.then))


# --- order -------------------------------------------------------------------------------------------------------


def _order(spot: Spot, i: int, registry) -> Iterator[Edit]:
    s, own = spot.block[i], effects(spot.typed[i], registry)
    if not own or isinstance(s, For):
        return
    j = _next(spot, i, registry)
    if j is not None and not isinstance(spot.block[j], For):
        other = effects(spot.typed[j], registry)
        if synchronises(own) or synchronises(other):
            yield Edit("swap", f"{name(s)} and {name(spot.block[j])}", s.span, spot.behind(i, j, j))
            if any(isinstance(x, e.BarrierWait) for x in own) and (k := _next(spot, j, registry)) is not None:
                yield Edit("late wait", f"{name(s)} behind {name(spot.block[k])}", s.span, spot.behind(i, j, k))
            if any(isinstance(x, e.Fence) for x in own) and (k := _next(spot, j, registry)) is not None:
                yield Edit("late fence", f"{name(s)} behind {name(spot.block[k])}", s.span, spot.behind(i, j, k))
    if any(isinstance(x, SIGNALS) for x in own) and not any(isinstance(x, e.Access) for x in own):
        at = max((k + 1 for k in range(i) if any(isinstance(x, e.BarrierWait) for x in effects(spot.typed[k], registry))), default=0)
        if at < i - 1 and any(effects(spot.typed[k], registry) for k in range(at, i - 1)):
            yield Edit("early arrival", name(s), s.span, spot.moved(i, at))


def _next(spot: Spot, i: int, registry) -> int | None:
    """The next statement with effects, where nothing but assignments to variables stands between; they count for statement `i` and move with it."""
    for j in range(i + 1, len(spot.block)):
        if isinstance(spot.block[j], For) or effects(spot.typed[j], registry):
            return j
        if not isinstance(spot.block[j], Assign):
            return None
    return None


# --- numbers -----------------------------------------------------------------------------------------------------


def _numbers(spot: Spot, i: int, own, ids: list[int], typed: Kernel) -> Iterator[Edit]:
    s, t = spot.block[i], spot.typed[i]

    def put(operator: str, what: str, where: int | str, value: Expr) -> Edit:
        return Edit(operator, f"{name(s)}: {what}", s.span, spot.instead(i, _put(s, where, value)))

    for x in own:
        match x:
            case e.BarrierWait(_, parity) if (w := _word(t, parity)) is not None:
                yield put("parity flipped", "the other parity", w, binary("%", binary("+", _at(s, w), 1), 2))
                if not isinstance(parity, Int):
                    yield put("parity constant", "always 0", w, Int(0))
            case e.BarrierArrive(_, cta, expected):
                if expected and (w := _word(t, Int(expected))) is not None:
                    yield put("bytes", f"{expected * 2}", w, Int(expected * 2))
                    yield put("bytes", f"{expected // 2}", w, Int(expected // 2))
                if isinstance(cta, Int) and (w := _word(t, cta)) is not None:
                    yield put("rank", f"{cta.value ^ 1}", w, Int(cta.value ^ 1))
            case e.WaitGroup(_, pending) if (w := _operand(t, pending)) is not None:
                yield put("pending", f"{pending + 1}", w, Int(pending + 1))
                if pending:
                    yield put("pending", f"{pending - 1}", w, Int(pending - 1))
            case e.Rendezvous(_, threads, id) if id is not None:
                if (w := _operand(t, id)) is not None:
                    other = next((n for n in ids if Int(n) != id), 9 if isinstance(id, Int) else None)
                    if other is not None:
                        yield put("barrier id", f"{other}", w, Int(other))
                if threads and (w := _word(t, Int(threads))) is not None:
                    yield put("threads", f"{threads + 32}", w, Int(threads + 32))
            case e.EngineCommit(mask=int(mask)) | e.Access(completion=e.BySignal(mask=int(mask))) if (w := _word(t, Int(mask))) is not None:
                yield put("mask", f"{mask & (mask - 1) or mask << 1}", w, Int(mask & (mask - 1) or mask << 1))
            case e.Reserve(amount) | e.Free(amount) if (w := _word(t, Int(amount))) is not None:
                yield put("columns", f"{amount * 2}", w, Int(amount * 2))


def _word(s: Op, value: Expr) -> str | None:
    """The word of a statement that says `value`."""
    return next((w.name for w in s.words.items if w.value == value), None)


def _operand(s: Op, value: Expr | int) -> int | None:
    """Which operand says `value`."""
    return next((n for n, x in enumerate(s.operands) if x == (Int(value) if isinstance(value, int) else value)), None)


def _at(s: Op, where: int | str) -> Expr:
    return s.operands[where] if isinstance(where, int) else s.words.get(where)


def _put(s: Op, where: int | str, value: Expr) -> Op:
    if isinstance(where, int):
        return replace(s, operands=(*s.operands[:where], value, *s.operands[where + 1 :]))
    return replace(s, words=Words(tuple(replace(w, value=value) if w.name == where else w for w in s.words.items), s.words.flag, span=s.words.span))


# --- control -----------------------------------------------------------------------------------------------------


def _trips(spot: Spot, i: int) -> Iterator[Edit]:
    s = spot.block[i]
    if s.hi is not None:
        for d, op in ((1, "+"), (1, "-")):
            yield Edit("trip", f"for {' '.join(s.pattern)}: {op}{d}", s.span, spot.instead(i, replace(s, hi=binary(op, s.hi, d))))


def _resets(spot: Spot) -> Iterator[Edit]:
    """Counters of a role that start anew in each round of its outermost loops."""
    if len(spot.around) != 1 or spot.role is None:
        return
    counters = [b for s in spot.block if isinstance(s, Var) for b in s.bindings]
    for i, s in enumerate(spot.block):
        if isinstance(s, For):
            for b in counters:
                if any(b.name in _set(x) for x in s.body):
                    anew = Assign(Name(b.name), b.value, span=s.span)
                    yield Edit("reset", b.name, s.span, spot.instead(i, replace(s, body=(anew, *s.body))))


def _set(s: Stmt) -> set[str]:
    """Names that a statement, or one in it, gives another value."""
    own = {s.target.id} if isinstance(s, Assign) and isinstance(s.target, Name) else set()
    return own.union(*(_set(x) for b in nested(s) for x in b))


def _named(x) -> bool:
    return isinstance(x, e.Rendezvous) and x.id is not None
