"""Barrier objects in shared memory (PTX ISA, Parallel Synchronization and Communication Instructions: mbarrier).

The state that an arrival returns is opaque to programs: here it is the number of the phase in which it fell, and above it the arrivals that were
pending in front of it. Lanes arrive one after another, in order of their numbers. A time limit of a wait is not kept: `try_wait` gives False once
where the phase is not over, so that a program which only asks can go on, and the next time it waits. A peek that is repeated for one phase
is taken for such a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cake_core.ptx import orders, places

if TYPE_CHECKING:
    from cake_core.ptx.emulated import Agent, Barrier, Coder, Lanes, Step, Wait
    from cake_core.ptx.reader import Operand, Statement

#: Ranges of the ISA (Contents of the mbarrier object): arrivals, and transaction bytes.
COUNTS = range(1, 1 << 20)
MOST_BYTES = (1 << 20) - 1

#: Where the pending arrivals stand in a state.
PENDING = 40

_SEMANTICS = {"release", "acquire", "relaxed", "cta", "cluster"}
_SPACES = {"shared", "shared::cta", "shared::cluster"}


class _Form:
    """The words behind the first two: `space`, `relaxed`, `scope` (none is `.cta`), and those that are asked for."""

    def __init__(self, s: Statement, c: Coder, *known: str) -> None:
        words = s.words[2:]
        if words[-1:] != ("b64",):
            raise c.unsupported("an mbarrier object is of type .b64")
        for word in words[:-1]:
            if word not in _SEMANTICS and word not in _SPACES and word not in known:
                raise c.unsupported(f"'.{word}' of {'.'.join(s.words[:2])}")
        self.words = frozenset(words)
        self.space = next((w for w in words if w in _SPACES), "")
        self.relaxed = "relaxed" in words
        self.scope = "cluster" if "cluster" in words else "cta"

    def barriers(self, c: Coder, operand: Operand, own: bool = False) -> Callable[[Lanes], np.ndarray]:
        return places.shared(c, operand, self.space, own=own, align=8)


def _lanes(lanes: Lanes) -> list[int]:
    return np.flatnonzero(lanes.active).tolist()


def init(s: Statement, c: Coder) -> Step:
    """`mbarrier.init{.shared{::cta}}.b64 [addr], count`."""
    address, count = s.operands
    at, counts = _Form(s, c).barriers(c, address, own=True), c.source(count, "u32")

    def step(lanes: Lanes) -> None:
        found, n = at(lanes), counts(lanes)
        for lane in _lanes(lanes):
            if int(n[lane]) not in COUNTS:
                raise lanes.fault("emulate/operand", f"an mbarrier object is initialised for {n[lane]} arrivals; 1 to {COUNTS[-1]} are possible")
            barrier = lanes.barrier(int(found[lane]))
            barrier.init(lanes, int(n[lane]))
            orders.initialised(lanes, barrier)

    return step


def invalidate(s: Statement, c: Coder) -> Step:
    """`mbarrier.inval{.shared{::cta}}.b64 [addr]`."""
    at = _Form(s, c).barriers(c, s.operands[0], own=True)

    def step(lanes: Lanes) -> None:
        found = at(lanes)
        for lane in _lanes(lanes):
            lanes.barrier(int(found[lane])).invalidate(lanes)

    return step


def arrive(s: Statement, c: Coder) -> Step:
    """`mbarrier.arrive{_drop}{.expect_tx|.noComplete}{.sem.scope}{.space}.b64 state|_, [addr]{, count | tx-count}`. What stands in front of it is
    seen by who waits for the phase; of a `.relaxed` one only what a releasing fence stands behind. With `.expect_tx` the bytes are expected before the arrival counts."""
    form = _Form(s, c, "expect_tx", "noComplete")
    drop, expects, only = s.words[1] == "arrive_drop", "expect_tx" in form.words, "noComplete" in form.words
    if len(s.operands) < 2 or expects and len(s.operands) != 3:
        raise c.unsupported("this number of operands")
    state, address, *rest = s.operands
    if form.space == "shared::cluster" and state != "_":
        raise c.unsupported("a state from an mbarrier object in '.shared::cluster': the destination is '_'")
    at = form.barriers(c, address)
    amount = c.source(rest[0], "u32") if rest else None
    told = None if state == "_" else c.result(state, "b64")

    def step(lanes: Lanes) -> None:
        found = at(lanes)
        n = amount(lanes) if amount is not None else None
        states = np.zeros(32, np.uint64)
        every, times = _lanes(lanes), 1
        if told is None and len(every) > 1 and _alike(lanes, found, n):
            every, times = every[:1], len(every)
        for lane in every:
            count, bytes = (1, int(n[lane])) if expects else (int(n[lane]) if n is not None else 1, 0)
            if count not in COUNTS:
                raise lanes.fault("emulate/operand", f"{count} arrivals at an mbarrier object; 1 to {COUNTS[-1]} are possible")
            if bytes > MOST_BYTES:
                raise lanes.fault("emulate/operand", f"an mbarrier object expects {bytes} bytes; {MOST_BYTES} is the most")
            barrier = lanes.barrier(int(found[lane]))
            pending = barrier.pending
            if only and count * times >= pending:
                raise lanes.fault(
                    "emulate/barrier",
                    f"an arrival with .noComplete completes the phase: {count * times} arrivals, {pending} were pending",
                    why="PTX ISA: otherwise the behaviour is undefined",
                )
            states[lane] = barrier.phase | pending << PENDING
            agent = lanes
            if form.relaxed:
                agent = orders.Relaxed(lanes, "cta" if int(found[lane]) >> places.RANK_AT == lanes.cta.rank else "cluster")
            _arrived(agent, barrier, count, bytes, drop, times, form.scope)
        if told is not None:
            told(lanes, states)

    return step


def _alike(lanes: Lanes, found: np.ndarray, n: np.ndarray | None) -> bool:
    """Whether all lanes arrive at one object and with one count."""
    if lanes.full:
        return bool((found == found[0]).all() and (n is None or (n == n[0]).all()))
    own = found[lanes.active]
    return bool((own == own[0]).all() and (n is None or len(set(n[lanes.active].tolist())) == 1))


def _arrived(agent: Agent, barrier: Barrier, count: int, bytes: int, drop: bool, times: int, scope: str) -> None:
    """`times` lanes arrive, `count` each: at once where one phase takes them, else one after another."""
    if times > 1 and (times * count > barrier.pending or drop):
        for _ in range(times):
            barrier.arrive(agent, count, bytes, drop, scope=scope)
        return
    barrier.arrive(agent, count * times, bytes * times, drop, scope=scope)


def expect(s: Statement, c: Coder) -> Step:
    """`mbarrier.expect_tx{.relaxed}{.scope}{.space}.b64 [addr], txCount`."""
    return _bytes(s, c, lambda barrier, lanes, n: barrier.expect(lanes, n))


def complete(s: Statement, c: Coder) -> Step:
    """`mbarrier.complete_tx{.relaxed}{.scope}{.space}.b64 [addr], txCount`: as if a copy of that many bytes had ended. It orders nothing by the ISA;
    here it is taken for a completion that does."""
    return _bytes(s, c, lambda barrier, lanes, n: barrier.complete(lanes, n))


def _bytes(s: Statement, c: Coder, does: Callable[[Barrier, Lanes, int], None]) -> Step:
    address, count = s.operands
    at, counts = _Form(s, c).barriers(c, address), c.source(count, "u32")

    def step(lanes: Lanes) -> None:
        found, n = at(lanes), counts(lanes)
        for lane in _lanes(lanes):
            if n[lane] > MOST_BYTES:
                raise lanes.fault("emulate/operand", f"an mbarrier object counts {n[lane]} bytes; {MOST_BYTES} is the most")
            does(lanes.barrier(int(found[lane])), lanes, int(n[lane]))

    return step


def wait(s: Statement, c: Coder) -> Step:
    """`mbarrier.{test,try}_wait{.parity}{.sem.scope}{.shared{::cta}}.b64 waitComplete, [addr], state|parity {, suspendTimeHint}`: whether the phase of
    that state, or of that parity, is complete. Where it is, what came to it is seen; with `.relaxed` only behind an acquiring fence. Of lanes that name several
    objects those whose phase is over get True as soon as there is one; the others False."""
    form, blocks = _Form(s, c, "parity"), s.words[1] == "try_wait"
    by_parity = "parity" in form.words
    if len(s.operands) not in ((3, 4) if blocks else (3,)):
        raise c.unsupported("this number of operands")
    done, address, which, *_ = s.operands
    if form.space == "shared::cluster":
        raise c.unsupported("a wait for an mbarrier object in '.shared::cluster'")
    at, values, to = form.barriers(c, address, own=True), c.source(which, "b32" if by_parity else "b64"), c.result(done, "pred")
    over = _parity if by_parity else _state
    asked = object()  # names this statement in what is kept of a warp

    def step(lanes: Lanes) -> Wait | None:
        found, value = at(lanes), values(lanes)
        active = lanes.active
        first = lanes.first
        if (found[active] == found[first]).all() and (value[active] == value[first]).all():
            barrier = lanes.barrier(int(found[first]))
            wanted = int(value[first])
            if over(lanes, barrier, wanted):
                barrier.acquire(orders.Relaxed(lanes) if form.relaxed else lanes, form.scope)
                to(lanes, np.ones(32, bool))
                return None
            waits = [(barrier, wanted)]
        else:
            pairs = [(lane, lanes.barrier(int(found[lane])), int(value[lane])) for lane in _lanes(lanes)]
            passed = np.zeros(32, bool)
            for lane, barrier, wanted in pairs:
                passed[lane] = over(lanes, barrier, wanted)
                if passed[lane]:
                    barrier.acquire(orders.Relaxed(lanes) if form.relaxed else lanes, form.scope, 1 << lane)
            if passed.any():
                to(lanes, passed)
                lanes.pause()
                return None
            waits = [(barrier, wanted) for _, barrier, wanted in pairs]
        if blocks:
            now = (first, tuple((id(barrier), barrier.phase) for barrier, _ in waits))
            kept = lanes.state(asked, dict)
            if kept.get(first) == now:
                return lanes.wait(lambda: any(_over(b, w, by_parity) for b, w in waits), "a phase of an mbarrier object")
            kept[first] = now
        to(lanes, np.zeros(32, bool))
        lanes.pause()
        return None

    return step


def _over(barrier: Barrier, wanted: int, by_parity: bool) -> bool:
    return barrier.passed(wanted & 1) if by_parity else barrier.phase != wanted & (1 << PENDING) - 1


def _parity(lanes: Lanes, barrier: Barrier, wanted: int) -> bool:
    if wanted > 1:
        raise lanes.fault("emulate/operand", f"an mbarrier object is waited for with the parity {wanted}; it is 0 or 1")
    return barrier.passed(wanted)


def _state(lanes: Lanes, barrier: Barrier, wanted: int) -> bool:
    phase = wanted & (1 << PENDING) - 1
    if phase not in (barrier.phase, barrier.phase - 1):
        raise lanes.fault(
            "emulate/barrier",
            f"an mbarrier object in phase {barrier.phase} is waited for with a state of phase {phase}",
            why="PTX ISA, mbarrier.test_wait: the state is of the current or of the phase immediately in front of it",
        )
    return barrier.phase != phase


def pending(s: Statement, c: Coder) -> Step:
    """`mbarrier.pending_count.b64 count, state`: the arrivals that were pending in front of the arrival that gave the state."""
    count, state = s.operands
    to, of = c.result(count, "u32"), c.source(state, "b64")
    return lambda lanes: to(lanes, (of(lanes) >> np.uint64(PENDING)).astype(np.uint32))
