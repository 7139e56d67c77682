"""The slice of a kernel made ready to run: a function for each statement, over slots of registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cake_core.ptx.acts import Reread, accessed
from cake_core.ptx.reader import At, Entry, Group, Operand, Pair, PtxSyntaxError, Statement
from cake_core.reread.flow import NotFollowed, sliced, unwritten
from cake_core.reread.numbers import NO_RESULT, PLAIN, bits_of, function_of, types_of
from cake_core.reread.talks import Unsaid
from cake_core.reread.threads import Code, Run, Seen


@dataclass(slots=True)
class Coder:
    """`rereads`: the instructions of plugins by name. `messages`: integers that threads store to shared memory are followed; `accesses`: where
    threads read and write it is."""

    rereads: Mapping[str, Reread]
    messages: bool = False
    accesses: bool = False
    slots: dict = field(default_factory=dict)
    constants: list = field(default_factory=list)
    unread: dict[str, int] = field(default_factory=dict)
    found: dict[str, Reread | None] = field(default_factory=dict)

    def reread(self, opcode: str) -> Reread | None:
        """Who reads an opcode: the name of most words in front of it."""
        if opcode not in self.found:
            words = opcode.split(".")
            names = (".".join(words[:n]) for n in range(len(words), 0, -1))
            name = next((n for n in names if n in self.rereads), None)
            self.found[opcode] = None if name is None else self.rereads[name]
        return self.found[opcode]

    def acts(self, s: Statement) -> bool:
        known = self.reread(s.opcode)
        if known is None and (s.opcode.partition(".")[0] not in PLAIN or "async" in s.words):
            self.unread.setdefault(s.opcode, s.line)
        if known is not None and known.read is not None and known.acts and (self.accesses or not known.accesses):
            return True
        return self._place(s) is not None or known is None and self._stores(s)

    def _place(self, s: Statement) -> int | None:
        """Which operand is the place of a thread's own access of shared memory; None: it is none, or is not asked."""
        words = s.words
        if not self.accesses or words[0] not in ("ld", "st", "atom", "red") or not {"shared", "shared::cta", "shared::cluster"} & set(words):
            return None
        return 0 if words[0] in NO_RESULT else 1

    def _stores(self, s: Statement) -> bool:
        """Whether it may be a message: an integer that goes to shared memory."""
        return self.messages and s.opcode in ("st.shared.b32", "st.shared.u32", "st.shared.s32") and "%f" not in s.text

    def writes(self, s: Statement) -> tuple[str, ...]:
        known = self.reread(s.opcode)
        if known is not None:
            return s.results if known.writes else ()
        return () if s.opcode.partition(".")[0] in NO_RESULT else s.results

    def reads(self, s: Statement) -> tuple[str, ...]:
        """Of what acts, parts of vectors and coordinates, which stand in braces, are not asked for, nor what an access moves."""
        if not self.acts(s) or self.accesses and (known := self.reread(s.opcode)) is not None and known.coordinates:
            return s.registers
        if self._place(s) is not None and not self._stores(s):
            return tuple(r for r in s.registers if s.text.find("[") < s.text.find(r) < s.text.find("]"))
        return s.outside

    def slot(self, name: str | int, width: int = 64) -> int:
        key = name if isinstance(name, str) else ("", name & (1 << width) - 1)
        if key not in self.slots:
            self.slots[key] = len(self.slots)
            if not isinstance(name, str):
                self.constants.append((self.slots[key], key[1]))
        return self.slots[key]

    def step(self, s: Statement) -> Callable[[Run], None]:
        try:
            operands = s.operands
        except PtxSyntaxError as error:
            raise NotFollowed(error.why, s.line) from None
        self._name(operands)
        made = self._instruction(s, operands)
        if s.guard is None:
            return made
        guard, negated, results = self.slot(s.guard), s.negated, [self.slot(r) for r in self.writes(s)]
        acts = self.acts(s)

        def guarded(run: Run) -> None:
            holds = run.r[guard]
            if holds is None:
                if acts:
                    raise NotFollowed("what an instruction for barriers is guarded by is not known", s.line)
                for d in results:
                    run.r[d] = None
            elif bool(holds) is not negated:
                made(run)

        return guarded

    def _name(self, operands: tuple[Operand, ...]) -> None:
        """A slot for each name, so that a run finds them all."""
        for o in operands:
            match o:
                case str():
                    self.slot(o)
                case At(base, _, coordinates):
                    if isinstance(base, str):
                        self.slot(base)
                    self._name(coordinates)
                case Group(items):
                    self._name(items)
                case Pair(a, b):
                    self._name((a, b))

    def _instruction(self, s: Statement, operands: tuple[Operand, ...]) -> Callable[[Run], None]:
        if (place := self._place(s)) is not None:
            return self._access(s, operands[place], self._plain(s, operands))
        return self._plain(s, operands)

    def _access(self, s: Statement, place: Operand, rest: Callable[[Run], None]) -> Callable[[Run], None]:
        line, words = s.line, s.words
        size = (bits_of(words[-1]) or int(words[-1].lstrip("bfx") or 32)) // 8 * next((int(w[1:]) for w in words if w in ("v2", "v4", "v8")), 1)

        def access(run: Run) -> None:
            if run.known(place) is not None:
                first = run.shared(place)
                run.seen.append(Seen(accessed(first, first + size), line))
            rest(run)

        return access

    def _plain(self, s: Statement, operands: tuple[Operand, ...]) -> Callable[[Run], None]:
        known, line = self.reread(s.opcode), s.line
        if known is not None and known.read is not None and (self.accesses or not known.accesses):
            read, name = known.read, known.name

            def act(run: Run) -> None:
                run.line = line
                try:
                    done = read(s, run)
                except (NotFollowed, Unsaid):
                    raise
                except Exception as error:  # noqa: BLE001 - a stranger's function, or a form of the instruction that it does not expect
                    raise NotFollowed(f"the reading of '{name}' failed at '{s.opcode}': {type(error).__name__}", line) from None
                if done:
                    run.seen.extend([Seen(a, line) for a in done])

            return act
        words = s.words
        if self._stores(s):
            return self._store(operands)
        if words[0] == "ld" and "v2" not in words and "v4" not in words:
            return self._load(s, operands)
        if words[0] == "selp" and bits_of(words[-1]) and len(operands) == 4:
            return self._select(operands, bits_of(words[-1]))
        if words[-1] == "pred" and words[0] in ("and", "or") and len(operands) == 3:
            return self._both(operands, words[0] == "or")
        if words[:4] == ("shfl", "sync", "idx", "b32") and operands[2] == 0:
            return self._from_first(s, operands)
        function = function_of(words) if known is None else None
        if function is not None and all(isinstance(o, str | int) for o in operands):
            return self._computes(function, operands)
        return self._clear([self.slot(r) for r in self.writes(s)])

    def _clear(self, results: list[int]) -> Callable[[Run], None]:
        def clear(run: Run) -> None:
            for d in results:
                run.r[d] = None

        return clear

    def _computes(self, function: tuple, operands: tuple[Operand, ...]) -> Callable[[Run], None]:
        act, width = function
        d, *sources = self.slot(operands[0]), *(self.slot(o, width) for o in operands[1:])
        match sources:
            case [a]:

                def one(run: Run) -> None:
                    r = run.r
                    x = r[a]
                    r[d] = None if x is None else act(x)

                return one
            case [a, b]:

                def two(run: Run) -> None:
                    r = run.r
                    x, y = r[a], r[b]
                    r[d] = None if x is None or y is None else act(x, y)

                return two
            case [a, b, c]:

                def three(run: Run) -> None:
                    r = run.r
                    x, y, z = r[a], r[b], r[c]
                    r[d] = None if x is None or y is None or z is None else act(x, y, z)

                return three
        return self._clear([d])

    def _select(self, operands: tuple[Operand, ...], width: int) -> Callable[[Run], None]:
        d, a, b, p = self.slot(operands[0]), self.slot(operands[1], width), self.slot(operands[2], width), self.slot(operands[3])

        def select(run: Run) -> None:
            r = run.r
            holds = r[p]
            if holds is None:
                r[d] = r[a] if r[a] == r[b] else None
            else:
                r[d] = r[a] if holds else r[b]

        return select

    def _both(self, operands: tuple[Operand, ...], either: bool) -> Callable[[Run], None]:
        """`and`, `or` of predicates: one known side may decide."""
        d, a, b = (self.slot(o) for o in operands)

        def both(run: Run) -> None:
            r = run.r
            x, y = r[a], r[b]
            if x is not None and bool(x) is either or y is not None and bool(y) is either:
                r[d] = either
            else:
                r[d] = None if x is None or y is None else not either

        return both

    def _load(self, s: Statement, operands: tuple[Operand, ...]) -> Callable[[Run], None]:
        d, at = self.slot(operands[0]), operands[1]
        if "param" in s.words and isinstance(at, At) and not at.offset:
            p = self.slot(at.base)

            def param(run: Run) -> None:
                run.r[d] = run.r[p]

            return param
        types = types_of(s.words)
        if s.opcode in ("ld.shared.b32", "ld.shared.u32", "ld.shared.s32"):
            return self._hear(d, at, s.line, self.messages)
        if "global" not in s.words or not types or not isinstance(at, At) or s.words[-1] == "f32":
            return self._clear([d])
        size = bits_of(types[-1]) // 8

        def load(run: Run) -> None:
            address = run.known(at)
            run.r[d] = None if address is None else run.load(address, size)

        return load

    def _hear(self, d: int, at: Operand, line: int, messages: bool) -> Callable[[Run], None]:
        def hear(run: Run) -> None:
            known = run.known(at)
            if known is not None and (place := run.shared(at)) in run.talks.kept:
                run.r[d] = run.talks.address(place)
            else:
                run.r[d] = None if known is None or not messages else run.talks.heard(run.shared(at), run.turn((line, known)))

        return hear

    def _store(self, operands: tuple[Operand, ...]) -> Callable[[Run], None]:
        to, value = operands

        def store(run: Run) -> None:
            if run.known(to) is not None:
                run.talks.stored[run.thread][run.shared(to)].append(run.known(value))

        return store

    def _from_first(self, s: Statement, operands: tuple[Operand, ...]) -> Callable[[Run], None]:
        """A value of the warp's lane 0, which is run first (PTX ISA, shfl.sync.idx)."""
        (d, a, *_), line = operands, s.line

        def exchange(run: Run) -> None:
            run.talks.given[run.thread][line].append(run.known(a))
            run.give(d, run.talks.first(run.rank, run.warp, line, run.turn(("given", line))))

        return exchange


def coded(entry: Entry, rereads: Mapping[str, Reread], messages: bool = False, accesses: bool = False) -> Code:
    """Raises NotFollowed where the control flow of a kernel can't be followed."""
    coder = Coder(rereads, messages, accesses)
    part = sliced(entry, coder.acts, coder.writes, coder.reads)
    open_ = unwritten(entry, part, coder.writes, coder.reads)
    blocks = []
    for b in part.blocks:
        steps = [coder.step(s) for s in b.statements]
        guard = coder.slot(b.branch.guard) if b.branch is not None and b.branch.guard else None
        negated = b.branch is not None and b.branch.negated
        line = b.branch.line if b.branch is not None else 0
        blocks.append((steps, guard, negated, b.taken, b.next, b.meets, b.decides, line))
    for name, _ in entry.params:
        coder.slot(name)
    for name in (*entry.symbols, *SPECIAL):
        coder.slot(name)
    return Code(blocks, coder.slots, coder.constants, coder.unread, open_)


#: Special registers that a place in the launch decides (PTX ISA, Special Registers).
SPECIAL = (
    "%tid.x",
    "%tid.y",
    "%tid.z",
    "%ntid.x",
    "%ctaid.x",
    "%nctaid.x",
    "%clusterid.x",
    "%nclusterid.x",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%laneid",
)
