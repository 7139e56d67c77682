"""PTX made into closures, once a kernel: blocks of steps, and how one goes on behind each.

A block ends at a label, a branch, a call, and on both sides of an instruction that may wait, so that lanes always stop at the start of a block.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cake_core.emulate import calls
from cake_core.emulate.calls import CALL, END, RETURN, Call
from cake_core.emulate.code import Coder
from cake_core.emulate.layout import DEPTH
from cake_core.emulate.outcome import Unsupported
from cake_core.emulate.tables import indexed
from cake_core.ptx.emulated import Emulated, Step
from cake_core.ptx.reader import Entry, Mark, Statement, called

if TYPE_CHECKING:
    from cake_core.emulate.warps import Lanes


@dataclass(slots=True)
class Block:
    """`steps`: (line, step) in order. `waits`: its only step may wait. Behind them: `taken` where `guard` (row of a predicate) holds, `negated` where it
    does not, else `next`; a negative number is no block (`calls`). `line`: of the branch."""

    steps: list[tuple[int, Step]] = field(default_factory=list)
    waits: bool = False
    guard: int | None = None
    negated: bool = False
    taken: int | None = None
    next: int = END
    line: int = 0


@dataclass(slots=True)
class Code:
    """`rows`: registers of each width; predicates stand under 0. `params`: where each parameter lies; `local_bytes`: of each thread's own memory, with its
    stack; `calls`: of functions, by their number."""

    blocks: list[Block]
    rows: dict[int, int]
    views: frozenset[int]
    params: dict[str, int]
    param_bytes: int
    threads: tuple[int, int, int] | None
    orders: frozenset[str] = frozenset()  # kinds of memory that the kernel has fences for
    local_bytes: int = 0
    calls: tuple[Call, ...] = ()
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # of each register of the kernel: width and row

def compiled(
    entry: Entry, emulates: Mapping[str, Emulated], symbols: Mapping[str, int], variables: Mapping[str, int], stops: Sequence[tuple[int, Step]] = ()
) -> Code:
    """The code of a kernel. `symbols`: offset of each shared variable; `variables`: address of each of the module's; `stops`: called in front of what
    stands at a line or behind it. Raises Unsupported, and PtxSyntaxError."""
    coders = _coders(entry, emulates, symbols, variables, [])
    made = _made(entry, coders, stops)
    return _made(entry, _coders(entry, emulates, symbols, variables, coders), stops) if any(c.held for c in coders) else made


def _coders(
    entry: Entry, emulates: Mapping[str, Emulated], symbols: Mapping[str, int], variables: Mapping[str, int], earlier: list[Coder]
) -> list[Coder]:
    """The kernel's and its functions'."""
    held = frozenset().union(*(c.held for c in earlier))
    for c in earlier:
        c.held = held
    before = iter(earlier or [None] * (1 + len(entry.functions)))
    coders = [Coder(entry, emulates, symbols, variables, next(before))]
    return coders + [Coder(f.code, emulates, symbols, variables, next(before), coders[0].rows) for f in entry.functions]


def _made(entry: Entry, coders: list[Coder], stops: Sequence[tuple[int, Step]]) -> Code:
    blocks: list[Block] = [Block()]
    jumps: list[Call] = []
    functions = {f.name: (f, c) for f, c in zip(entry.functions, coders[1:], strict=True)}
    again, starts = calls.recursive(entry.functions), {}
    for code, coder in zip((entry, *(f.code for f in entry.functions)), coders, strict=True):
        starts[code.name] = len(blocks) - 1
        before = len(blocks), len(jumps)
        try:
            _body(code, coder, blocks, functions, again, jumps, () if coder.function else stops)
        except Unsupported as error:  # nobody may ever come to it
            if not coder.function:
                raise
            del blocks[before[0] :], jumps[before[1] :]
            blocks[-1] = Block([(error.line, _refused(code.name, error))])
        blocks.append(Block())
    for call in jumps:
        call.start = starts[call.function]
    coders[0]._view("bool")
    views, fenced = frozenset().union(*(c.views for c in coders)), frozenset().union(*(c.fenced for c in coders))
    stack = max((c.local_bytes for c in coders[1:]), default=0) * (DEPTH + 1 if again else len(functions))
    first = coders[0]
    return Code(blocks, first.rows, views, first.params, first.param_bytes, entry.block, fenced, first.local_bytes + stack, tuple(jumps), first.places)


def _refused(name: str, error: Unsupported) -> Step:
    def step(lanes: Lanes) -> None:
        raise lanes.fault("emulate/unsupported", f"a call of '{name}', which is not executed here: {error}")

    return step


def _body(
    entry: Entry, coder: Coder, blocks: list[Block], functions: Mapping, again: set[str], called_: list[Call], stops: Sequence[tuple[int, Step]]
) -> None:
    """The blocks of one body behind those that are there. `again`: functions that may call themselves."""
    labels: dict[str, int] = {}
    jumps: list[tuple[int, str, int]] = []
    tables = {s.name: s.targets for s in entry.body if isinstance(s, Mark) and s.targets}

    def begin() -> None:
        if blocks[-1].steps or blocks[-1].taken is not None or blocks[-1].waits:
            blocks[-1].next = len(blocks)
            blocks.append(Block())

    def leaves(s: Statement, to: int) -> Block:
        block = blocks[-1]
        block.guard = None if s.guard is None else coder.places[s.guard][1]
        block.negated, block.line, block.taken = s.negated, s.line, to
        return block

    ahead = deque(sorted(stops, key=lambda stop: stop[0]))
    for s in entry.body:
        while ahead and ahead[0][0] <= s.line:
            begin()
            blocks[-1].steps.append(ahead.popleft())
        if isinstance(s, Mark):
            begin()
            labels[s.name] = len(blocks) - 1
            continue
        match s.words[0]:
            case "bra":
                leaves(s, END)  # until labels are known
                jumps.append((len(blocks) - 1, s.text.strip(), s.line))
                begin()
            case "brx":
                row, tries, outside = indexed(s, coder, tables)
                for label, step in tries:
                    blocks[-1].steps.append((s.line, step))
                    blocks[-1].guard, blocks[-1].taken, blocks[-1].line = row, END, s.line
                    jumps.append((len(blocks) - 1, label, s.line))
                    begin()
                blocks[-1].steps.append((s.line, outside))
            case "ret" | "exit":
                leaves(s, RETURN if coder.function and s.words[0] == "ret" else END)
                begin()
            case "call" if (found := functions.get(called(s.text)[1])) is not None:
                function, callee = found
                if function.name in again and any(v.space == "reg" for v in function.results):
                    raise Unsupported(s.line, s.opcode, f"'{function.name}' calls itself and gives a result in a register")
                blocks[-1].steps.append((s.line, calls.passed(s, coder, function, callee)))
                leaves(s, CALL - len(called_)).next = len(blocks) + 1
                back = calls.given_back(s, coder, function, callee)
                blocks.append(Block([(s.line, back)], next=len(blocks) + 1))
                called_.append(Call(function.name, coder.local_bytes, len(blocks) - 1, callee.own if function.name in again else {}))
                blocks.append(Block())
            case _:
                step, waits = coder.step(s)
                if waits:
                    begin()
                    blocks[-1].waits = True
                blocks[-1].steps.append((s.line, step))
                if waits:
                    begin()
    blocks[-1].next = RETURN if coder.function else END
    for number, label, line in jumps:
        if label not in labels:
            raise Unsupported(line, "bra", f"there is no label '{label}'")
        blocks[number].taken = labels[label]
