"""What of a kernel's machine code decides its barriers: blocks, who decides over whom, and the slice that is executed.

An instruction matters if it acts, if it writes a register that one that matters reads, or if it is a branch that decides whether one that matters
runs (control dependence: Ferrante, Ottenstein and Warren 1987). All else, nearly all of a kernel, is left out; a branch that
decides nothing goes on where its ways meet again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from cake_core.frozen import frozen
from cake_core.ptx.reader import Entry, Mark, Statement

#: Opcodes that end a block (PTX ISA, Control Flow Instructions). Others of that section are not followed.
BRANCH, ENDS, NOT_FOLLOWED = "bra", ("ret", "exit", "trap"), ("brx", "call")


class NotFollowed(Exception):
    """What can't be read back, in words; `line` of the text, where it is one."""

    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.why, self.line = why, line


@dataclass(slots=True)
class Block:
    """`statements` without the branch that ends it. `branch`: that statement; `taken` where it goes, `next` where it goes otherwise; -1: the
    end. `meets`: where all ways from here meet again. `decides`: whether its branch decides over anything that matters."""

    statements: list[Statement] = field(default_factory=list)
    branch: Statement | None = None
    taken: int | None = None
    next: int = -1
    meets: int = -1
    decides: bool = False

    @property
    def ways(self) -> tuple[int, ...]:
        if self.taken is None:
            return (self.next,)
        return (self.taken, self.next) if self.branch.guard else (self.taken,)


@frozen
class Slice:
    """Blocks in the order of the text, each with the statements that matter alone."""

    blocks: tuple[Block, ...]


def blocks_of(entry: Entry) -> list[Block]:
    """Raises NotFollowed at an indirect branch, a call, or a branch to no label."""
    blocks, names, open_ = [Block()], {}, True
    for item in entry.body:
        if isinstance(item, Mark):
            if blocks[-1].statements or not open_:
                blocks.append(Block())
                open_ = True
            names[item.name] = len(blocks) - 1
            continue
        root = item.opcode.partition(".")[0]
        if root in NOT_FOLLOWED:
            raise NotFollowed(f"'{item.opcode}' goes to where a register says", item.line)
        if not open_:
            blocks.append(Block())
            open_ = True
        if root == BRANCH or root in ENDS:
            blocks[-1].branch = item
            open_ = False
        else:
            blocks[-1].statements.append(item)
    for n, b in enumerate(blocks):
        last = b.branch
        b.next = n + 1 if n + 1 < len(blocks) else -1
        if last is None:
            continue
        if last.opcode.partition(".")[0] == BRANCH:
            if last.text not in names:
                raise NotFollowed(f"there is no label '{last.text}'", last.line)
            b.taken = names[last.text]
        else:
            b.taken = -1
    return blocks


def meetings(blocks: list[Block]) -> None:
    """Set `meets` of each block: its immediate postdominator (Cooper, Harvey and Kennedy 2001, on the reversed graph)."""
    before = defaultdict(list)
    for n, b in enumerate(blocks):
        for way in b.ways:
            before[way].append(n)
    order, seen, stack = [], {-1}, [(-1, iter(before[-1]))]
    while stack:
        n, rest = stack[-1]
        for m in rest:
            if m not in seen:
                seen.add(m)
                stack.append((m, iter(before[m])))
                break
        else:
            order.append(n)
            stack.pop()
    place = {n: i for i, n in enumerate(order)}  # the end comes last
    found: dict[int, int] = {-1: -1}
    changed = True
    while changed:
        changed = False
        for n in reversed(order):
            if n == -1:
                continue
            new = None
            for way in blocks[n].ways:
                if way in found:
                    new = way if new is None else _common(found, place, new, way)
            if new is not None and found.get(n) != new:
                found[n] = new
                changed = True
    for n, b in enumerate(blocks):
        b.meets = found.get(n, -1)


def _common(found: dict[int, int], place: dict[int, int], a: int, b: int) -> int:
    while a != b:
        while place[a] < place[b]:
            a = found[a]
        while place[b] < place[a]:
            b = found[b]
    return a


def deciders(blocks: list[Block]) -> dict[int, set[int]]:
    """Block to the blocks whose branch decides whether it runs."""
    out: dict[int, set[int]] = defaultdict(set)
    for n, b in enumerate(blocks):
        if len(b.ways) < 2:
            continue
        for way in b.ways:
            while way not in (b.meets, -1):
                out[way].add(n)
                way = blocks[way].meets
    return out


Registers = Callable[[Statement], tuple[str, ...]]


def sliced(entry: Entry, acts: Callable[[Statement], bool], writes: Registers, reads: Registers) -> Slice:
    """`acts(statement)`: whether it acts. `writes`, `reads`: the registers that a statement writes, and those that what it does goes by. Raises
    NotFollowed."""
    blocks = blocks_of(entry)
    meetings(blocks)
    over = deciders(blocks)
    written: dict[str, list[tuple[int, int]]] = defaultdict(list)
    work: list[tuple[int, int]] = []
    for n, b in enumerate(blocks):
        for i, s in enumerate(b.statements):
            for register in writes(s):
                written[register].append((n, i))
            if acts(s):
                work.append((n, i))
    kept: set[tuple[int, int]] = set()
    asked: set[str] = set()
    reached: set[int] = set()

    def ask(s: Statement, registers: tuple[str, ...] = ()) -> None:
        for register in (*registers, *((s.guard,) if s.guard else ())):
            if register not in asked:
                asked.add(register)
                work.extend(written.get(register, ()))

    while work:
        at = work.pop()
        if at in kept:
            continue
        kept.add(at)
        n, i = at
        s = blocks[n].statements[i]
        ask(s, reads(s))
        pending = [n]
        while pending:
            m = pending.pop()
            if m in reached:
                continue
            reached.add(m)
            for d in over.get(m, ()):
                blocks[d].decides = True
                ask(blocks[d].branch)
                pending.append(d)
    for n, b in enumerate(blocks):
        b.statements = [s for i, s in enumerate(b.statements) if (n, i) in kept]
    return Slice(tuple(blocks))


def unwritten(entry: Entry, part: Slice, writes: Registers, reads: Registers) -> tuple[Statement, str] | None:
    """The first statement of a slice that may read a register which nothing has written, and the register. A guarded write counts."""
    blocks, numbers = part.blocks, {}
    declared = {name for _, name, _ in entry.registers}

    def bits(registers: tuple[str, ...]) -> int:
        out = 0
        for r in registers:
            if r in declared or r.rstrip("0123456789") in declared:  # others are special
                out |= 1 << numbers.setdefault(r, len(numbers))
        return out

    made = [[(s, writes(s), _sources(s, writes, reads)) for s in b.statements] for b in blocks]
    gives = [bits(tuple(r for _, w, _ in found for r in w)) for found in made]
    before: dict[int, list[int]] = defaultdict(list)
    for n, b in enumerate(blocks):
        for way in b.ways:
            before[way].append(n)
    all_ = -1
    enters = [0 if n == 0 else all_ for n in range(len(blocks))]
    changed = True
    while changed:
        changed = False
        for n in range(1, len(blocks)):
            new = all_
            for m in before[n]:
                new &= enters[m] | gives[m] if enters[m] != all_ else all_
            if new != enters[n]:
                enters[n], changed = new, True
    for n, (found, b) in enumerate(zip(made, blocks, strict=True)):
        known = enters[n]
        for s, written, sources in found:
            for r in sources:
                if known >= 0 and bits((r,)) & ~known:
                    return s, r
            known |= bits(written)
        if b.decides and known >= 0 and bits((b.branch.guard,)) & ~known:
            return b.branch, b.branch.guard
    return None


def _sources(s: Statement, writes: Registers, reads: Registers) -> tuple[str, ...]:
    """What a statement reads, without its results."""
    found = [*reads(s), *((s.guard,) if s.guard else ())]
    for r in writes(s):
        if r in found:
            found.remove(r)
    return tuple(found)
