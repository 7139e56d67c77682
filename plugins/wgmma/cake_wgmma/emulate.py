"""wgmma as the PTX ISA has it: a product that four warps begin and wait for, over factors that descriptors or registers hold.

Each warp of the group executes each statement. The product begins when the fourth has come, as a job of the group's own queue. Accumulators stay
with the group until a warp waits for the commit group of the last product that wrote them: a product that follows takes them over, and what reads
the registers before that reads what the ISA leaves undefined. Sums: see `numbers.cut`; the ISA leaves order and rounding open. For factors of 8 bits
hardware may keep fewer bits of a sum than f32 has; here all are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cake_core.frozen import frozen
from cake_core.ptx import numbers
from cake_core.ptx.emulated import Agent, Coder, Job, Lanes, Step, Wait
from cake_core.ptx.reader import Group, Operand, Statement
from cake_wgmma.forms import Factor, Form, form_of

WARPS = 4
ROWS = 16  # of the result, a warp


class Product:
    """One statement as the group executes it: what it was given, and what came of it. Rows of the four warps lie below each other.

    `a`: None where registers hold it; `before`: the product whose result it adds to, while registers have not got that back.
    """

    __slots__ = ("a", "add", "b", "before", "bits", "came", "d", "form", "fragments", "job", "line", "stamp", "stamps", "sums")

    def __init__(
        self, line: int, form: Form, bits: tuple[int | None, int], factors: tuple[Factor | None, Factor], add: bool, before: Product | None
    ) -> None:
        self.line, self.form, self.bits, self.add, self.before = line, form, bits, add, before
        self.a, self.b = factors
        self.came = 0
        self.stamps: list[Any] = []
        self.fragments: list[np.ndarray | None] = [None] * WARPS  # of A, uint8 (16, 32) a warp
        self.sums: list[np.ndarray | None] = [None] * WARPS  # what registers held, (16, N) a warp
        self.job: Job | None = None
        self.stamp: Any = None
        self.d: np.ndarray | None = None  # (64, N)

    @property
    def done(self) -> bool:
        return self.job is not None and self.job.done

    def work(self, agent: Agent) -> None:
        for stamp in self.stamps:
            agent.acquire(stamp)
        form = self.form
        rows = np.concatenate(self.fragments) if self.a is None else self.a.read(agent)
        a, b = numbers.values(rows, form.a), numbers.values(self.b.read(agent), form.b)
        if form.negated[0]:
            a = -a
        if form.negated[1]:
            b = -b
        total = a @ b.T
        if self.add:
            if self.before is None:
                total += np.concatenate(self.sums)
            else:
                total += self.before.d
                self.before.d = self.before = None
        self.d = form.rounded(total)
        self.stamp = agent.release()


class Warpgroup:
    """What four warps have begun and not waited for, by warp of the group."""

    def __init__(self) -> None:
        self.products: dict[int, Product] = {}  # by number, until all warps have come
        self.issued = [0] * WARPS
        self.open: list[list[Product]] = [[] for _ in range(WARPS)]
        self.groups: list[list[list[Product]]] = [[] for _ in range(WARPS)]
        self.flying: list[dict[tuple[str, ...], tuple[Product, Code]]] = [{} for _ in range(WARPS)]  # accumulators that a product has
        self.reading: list[dict[tuple[str, ...], list[tuple[Product, Code]]]] = [{} for _ in range(WARPS)]  # fragments of A
        self.fenced = [-1] * WARPS  # accesses of registers in front of the last fence; -1: there was none

    def ended(self, cta: object) -> list[str]:
        """What nobody waited for (PTX ISA, wgmma.wait_group)."""
        left = {p.line for warp in self.open for p in warp}
        texts = [f"the wgmma of line {line} is in no committed group" for line in sorted(left)]
        late = {p.line for groups in self.groups for g in groups for p in g}
        return texts + [f"nobody waited for the wgmma of line {line}" for line in sorted(late)]


@frozen
class Code:
    """What a statement does with registers, made once."""

    line: int
    form: Form
    registers: tuple[str, ...]
    fragment: tuple[str, ...]
    everything: frozenset[str]
    read: Callable[[Lanes], np.ndarray]
    write: Callable[[Lanes, np.ndarray], None]
    hold: Callable[[Lanes, str], None]
    touched: Callable[[Lanes], int]
    touched_fragment: Callable[[Lanes], int]
    read_fragment: Callable[[Lanes], np.ndarray] | None
    hold_fragment: Callable[[Lanes, str], None] | None


def mma_async(s: Statement, c: Coder) -> Step:
    """PTX ISA, wgmma.mma_async. Registers: Matrix Fragments for wgmma.mma_async; descriptors: Matrix Descriptor Format."""
    form = form_of(s, c)
    d, a, b = s.operands[:3]
    code = _code(s, c, form, d, a)
    a_of = None if isinstance(a, Group) else c.source(a, "b64")
    b_of = c.source(b, "b64")
    given = c.constant(s.operands[3])
    scale = c.source(s.operands[3], "pred") if given is None else None
    c.meets()

    def step(lanes: Lanes) -> None:
        group, warp = _group(lanes), lanes.warp % WARPS
        if group.fenced[warp] < 0:
            raise lanes.fault(
                "emulate/missing-fence",
                "the first wgmma of a warp has no wgmma.fence in front of it",
                why="without it nothing orders what the warp did to registers before what the product does to them (PTX ISA, wgmma.fence)",
                fix="execute `wgmma.fence.sync.aligned` behind the last access to those registers",
            )
        add = bool(given) if scale is None else bool(lanes.uniform(scale(lanes)))
        a_bits = None if a_of is None else lanes.uniform(a_of(lanes))
        b_bits = lanes.uniform(b_of(lanes))
        _free_of_others(lanes, group, warp, code)
        own = group.flying[warp].get(code.registers)
        before = own[0] if own is not None and add else None
        number = group.issued[warp]
        p = group.products.get(number)
        if p is None:
            factors = None if a_bits is None else form.factor(lanes, a_bits, "a"), form.factor(lanes, b_bits, "b")
            p = group.products[number] = Product(s.line, form, (a_bits, b_bits), factors, add, before)
        elif (p.line, p.bits, p.add) != (s.line, (a_bits, b_bits), add) or p.before is not before:
            raise _differ(lanes, p)
        if own is None:
            _fenced(lanes, group, warp, code.touched, "the accumulator")
            if add:
                p.sums[warp] = form.matrix(code.read(lanes))
        if code.read_fragment is not None:
            _fenced(lanes, group, warp, code.touched_fragment, "a factor")
            p.fragments[warp] = fragment(code.read_fragment(lanes))
        group.issued[warp] = number + 1
        group.open[warp].append(p)
        _hold(lanes, group, warp, code, p)
        p.stamps.append(lanes.release(each=True))
        p.came += 1
        if p.came == WARPS:
            del group.products[number]
            p.job = lanes.start(group, p.work, f"wgmma of line {s.line}", each=True)

    return step


def fence(s: Statement, c: Coder) -> Step:
    """PTX ISA, wgmma.fence: accesses to registers before it are ordered before what products do to them afterwards."""
    c.meets()

    def step(lanes: Lanes) -> None:
        _group(lanes).fenced[lanes.warp % WARPS] = lanes.touches

    return step


def commit_group(s: Statement, c: Coder) -> Step:
    """PTX ISA, wgmma.commit_group: all products of the warp that are in no group become one, which may be empty."""
    c.meets()

    def step(lanes: Lanes) -> None:
        group, warp = _group(lanes), lanes.warp % WARPS
        group.groups[warp].append(group.open[warp])
        group.open[warp] = []

    return step


def wait_group(s: Statement, c: Coder) -> Step:
    """PTX ISA, wgmma.wait_group N: until at most the N newest groups are not complete."""
    most = c.constant(s.operands[0])
    if most is None or most < 0:
        raise c.unsupported("a number of groups that is no immediate of 0 or more")
    c.meets()

    def step(lanes: Lanes) -> Wait | None:
        group, warp = _group(lanes), lanes.warp % WARPS
        groups = group.groups[warp]
        due = [p for g in groups[: max(len(groups) - most, 0)] for p in g]
        late = [p for p in due if not p.done]
        if late:
            return lanes.wait(lambda: all(p.done for p in late), _what(late[0]))
        for p in due:
            lanes.acquire(p.stamp)
            _give_back(lanes, group, warp, p)
        del groups[: max(len(groups) - most, 0)]
        return None

    return step


# --- registers -----------------------------------------------------------------------------------------------------


def fragment(registers: np.ndarray) -> np.ndarray:
    """A of four registers a lane, uint32 (4, 32), as bytes (16, 32): register j of lane l holds the four bytes from 4 (l mod 4) + 16 (j / 2) on, of row
    l / 4 + 8 (j mod 2) (PTX ISA, Register Fragments for wgmma.mma_async.m64nNk16, k8, k32, k256: the same places for every type)."""
    places = np.ascontiguousarray(registers, np.uint32).reshape(2, 2, 8, 4)  # column half, row half, row, column
    return np.ascontiguousarray(places.transpose(1, 2, 0, 3)).reshape(ROWS, 8).view(np.uint8)


def _code(s: Statement, c: Coder, form: Form, d: Operand, a: Operand) -> Code:
    if not isinstance(d, Group) or len(d.items) != form.registers:
        raise c.unsupported(f"an accumulator of other than {form.registers} registers")
    if isinstance(a, Group) and len(a.items) != WARPS:
        raise c.unsupported(f"a fragment of A of {len(a.items)} registers, not 4")
    names = tuple(str(i) for i in d.items)
    if len(set(names)) != len(names):
        raise c.unsupported("a register that stands twice in one accumulator")
    parts = tuple(str(i) for i in a.items) if isinstance(a, Group) else ()
    word = form.word
    return Code(
        s.line,
        form,
        names,
        parts,
        frozenset(names + parts),
        c.sources(d.items, word),
        c.results(d.items, word),
        c.holds(d.items),
        c.touched(d.items),
        c.touched(parts),
        c.sources(a.items, "b32") if isinstance(a, Group) else None,
        c.holds(a.items) if isinstance(a, Group) else None,
    )


def _free_of_others(lanes: Lanes, group: Warpgroup, warp: int, code: Code) -> None:
    """Accumulators of products of the same shape follow each other in order; all else must have been waited for (PTX ISA, wgmma.mma_async)."""
    for names, (p, other) in group.flying[warp].items():
        same = names == code.registers and other.form.same_shape(code.form)
        if not same and not code.everything.isdisjoint(names):
            raise _taken(lanes, p, "accumulator")
        if same and not set(code.fragment).isdisjoint(names):
            raise _taken(lanes, p, "accumulator")
    for names, uses in group.reading[warp].items():
        if not set(code.registers).isdisjoint(names):
            raise _taken(lanes, uses[0][0], "factor")


def _hold(lanes: Lanes, group: Warpgroup, warp: int, code: Code, p: Product) -> None:
    what = f"the wgmma of line {code.line}"
    group.flying[warp][code.registers] = p, code
    code.hold(lanes, what)
    if code.hold_fragment is not None:
        group.reading[warp].setdefault(code.fragment, []).append((p, code))
        code.hold_fragment(lanes, what)


def _give_back(lanes: Lanes, group: Warpgroup, warp: int, p: Product) -> None:
    for names, (last, code) in list(group.flying[warp].items()):
        if last is p:
            del group.flying[warp][names]
            code.hold(lanes, "")
            code.write(lanes, code.form.registers_of(p.d[ROWS * warp : ROWS * (warp + 1)]))
    for names, uses in list(group.reading[warp].items()):
        left = [(q, code) for q, code in uses if q is not p]
        if not left:
            del group.reading[warp][names]
            code = uses[0][1]
            if code.hold_fragment is not None:
                code.hold_fragment(lanes, "")
        else:
            group.reading[warp][names] = left


def _fenced(lanes: Lanes, group: Warpgroup, warp: int, last: Callable[[Lanes], int], what: str) -> None:
    if last(lanes) > group.fenced[warp]:
        raise lanes.fault(
            "emulate/missing-fence",
            f"registers of {what} were accessed, and no wgmma.fence stands between that and this wgmma",
            why="it orders accesses of a thread to registers before those of the product (PTX ISA, wgmma.fence)",
            fix="execute `wgmma.fence.sync.aligned` behind the accesses",
        )


# --- faults --------------------------------------------------------------------------------------------------------


def _group(lanes: Lanes) -> Warpgroup:
    if not lanes.full:
        raise lanes.fault(
            "emulate/divergent",
            "lanes of a warp are missing from an instruction of its whole warpgroup",
            why="all threads of the warp must execute a `.sync.aligned` instruction (PTX ISA, wgmma)",
        )
    return lanes.cta.state(("wgmma", lanes.warp // WARPS), Warpgroup)


def _differ(lanes: Lanes, p: Product) -> Exception:
    return lanes.fault(
        "emulate/divergent",
        f"a warp of the warpgroup comes with another product than the one of line {p.line} that others began",
        why="all warps of a warpgroup execute the same wgmma with the same descriptors and scale-d (PTX ISA, wgmma.mma_async)",
    )


def _taken(lanes: Lanes, p: Product, what: str) -> Exception:
    return lanes.fault(
        "emulate/race",
        f"registers of this wgmma are the {what} of the one of line {p.line}, which is not waited for",
        why="only accumulators of products of one shape follow each other without a wait (PTX ISA, wgmma.mma_async)",
        fix="`wgmma.wait_group` in front of it, or other registers",
    )


def _what(p: Product) -> str:
    missing = WARPS - p.came
    return f"the wgmma of line {p.line}" + (f", to which {missing} of 4 warps have not come" if missing else "")
