"""One instruction made into a closure: operands of PTX as rows of registers, immediates and addresses."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cake_core.emulate import layout
from cake_core.emulate.immediates import constant
from cake_core.emulate.outcome import Unsupported
from cake_core.emulate.special import SPECIAL
from cake_core.emulate.together import together
from cake_core.ptx.emulated import LANES, TYPES, WINDOWS, Emulated, Step
from cake_core.ptx.reader import At, Entry, Operand, PtxSyntaxError, Statement, Sum

if TYPE_CHECKING:
    from cake_core.emulate.warps import Lanes

#: The types of numpy in which registers are seen, and the number of each.
VIEWS = tuple(dict.fromkeys(TYPES.values()))
VIEW = {name: n for n, name in enumerate(VIEWS)}


class Coder:
    """Makes one kernel's code, or a function's: `rows` are the registers of both, by width. Implements `ptx.emulated.Coder` for the statement that is being
    made."""

    def __init__(
        self,
        entry: Entry,
        emulates: Mapping[str, Emulated],
        symbols: Mapping[str, int],
        variables: Mapping[str, int],
        earlier: Coder | None = None,
        rows: dict[int, int] | None = None,
    ) -> None:
        self.entry, self.emulates, self.symbols, self.variables = entry, emulates, symbols, variables
        self.function, self.rows = rows is not None, {} if rows is None else rows
        before = dict(self.rows)
        self.places, self.refused = layout.registers(entry, self.rows)  # register: (width, row)
        self.own = {w: slice(before.get(w, 0), n) for w, n in self.rows.items() if n > before.get(w, 0)}
        self.params, self.param_bytes = layout.params(entry)
        self.locals, self.local_bytes = layout.locals_of(entry)
        self.views: set[int] = set()
        self.fenced: set[str] = set()
        self.statement: Statement | None = None
        self.held: frozenset[tuple[int, int]] = frozenset()  # registers that engines may have, and the lines that give them
        self.holders: set[int] = set()
        self.steps: dict[int, tuple[Step, bool]] = {}  # by the statement's identity
        self.earlier, self.watched = earlier, frozenset()
        if earlier is not None:  # the same kernel once more, with an eye on the registers that engines have
            self.watched, self.holders, self.views, self.fenced = earlier.held, earlier.holders, earlier.views, earlier.fenced
        self._meets: Callable[[Lanes], np.ndarray] | int | None | bool = False
        self._without_ended = False
        self.found: dict[str, Emulated] = {}

    # --- ptx.emulated.Coder

    def unsupported(self, why: str) -> Unsupported:
        return Unsupported(self.statement.line, self.statement.opcode, why)

    def constant(self, operand: Operand) -> int | None:
        return operand if isinstance(operand, int) else None

    def parameter(self, operand: Operand) -> str:
        base = operand.base if isinstance(operand, At) else operand
        return "local" if self.function or base in self.locals else "param"

    def orders(self, kind: str) -> None:
        self.fenced.add(kind)

    def holds(self, operands: Sequence[Operand]) -> Callable[[Lanes, str], None]:
        places = frozenset(self.places[o] for o in operands if isinstance(o, str) and o in self.places)
        self.held |= places
        self.holders.add(self.statement.line)

        def hold(lanes: Lanes, who: str) -> None:
            held = lanes.own.held
            for place in places:
                if who:
                    held[place] = who
                else:
                    held.pop(place, None)

        return hold

    def touched(self, operands: Sequence[Operand]) -> Callable[[Lanes], int]:
        places = [self.places[o] for o in operands if isinstance(o, str) and o in self.places]
        return lambda lanes: max(map(lanes.own.touched.get, places, [0] * len(places)), default=0)

    def _kept(self, places: Sequence[tuple[int, int]], access: Callable) -> Callable:
        """`access` of registers that an engine may have meanwhile: a finding."""
        if self.statement.line in self.holders or not self.watched.intersection(places):
            return access

        def watched(lanes: Lanes, *values):
            own = lanes.own
            own.touches += 1
            own.touched.update(dict.fromkeys(places, own.touches))
            if held := own.held:
                for place in places:
                    if place in held:
                        lanes.finding(
                            "emulate/race",
                            f"a register is accessed while {held[place]} has it",
                            why="registers of an asynchronous operation are its own until it has been waited for",
                        )
                        break
            return access(lanes, *values)

        return watched

    def meets(self, mask: Operand | None = None, without_ended: bool = False) -> None:
        self._without_ended = without_ended
        if mask is None:
            self._meets = None
        elif (fixed := self.constant(mask)) is not None:
            self._meets = fixed & 0xFFFFFFFF
        else:
            self._meets = self.source(mask, "b32")

    def source(self, operand: Operand, type: str) -> Callable[[Lanes], np.ndarray]:
        dtype = self._dtype(type)
        match operand:
            case int() | float():
                value = constant(operand, type, dtype)
                return lambda lanes: value
            case str() if operand.startswith("!"):
                inner = self.source(operand[1:], type)
                return lambda lanes: ~inner(lanes)
            case str() if operand in self.places:
                return self._kept([self.places[operand]], self._row(operand, type, dtype))
            case str() if (special := SPECIAL.get(operand)) is not None:
                return lambda lanes: special(lanes).astype(dtype)
            case str():
                at = self._symbol(operand)
                return lambda lanes: at(lanes).astype(dtype)
            case Sum(base, offset) if base in self.places:
                value, plus = self.source(base, type), self.source(offset, type)
                return lambda lanes: value(lanes) + plus(lanes)
            case Sum(base, offset):
                at, plus = self._symbol(base), np.uint64(offset & 2**64 - 1)
                return lambda lanes: (at(lanes) + plus).astype(dtype)
        raise self.unsupported("an operand of this form is not covered")

    def result(self, operand: Operand, type: str) -> Callable[[Lanes, np.ndarray], None]:
        if operand is None or operand == "_":
            return lambda lanes, values: None
        if not isinstance(operand, str) or operand not in self.places:
            raise self.unsupported("a result that is no register")
        width, row = self.places[operand]
        wanted = self._dtype(type)
        if type == "pred" or width == 0:
            if (type == "pred") != (width == 0):
                raise self.unsupported("a predicate stands where a number is wanted, or the other way round")
            view = self._view("bool")
        elif width == wanted.itemsize:
            view = self._view(TYPES[type])
        elif width > wanted.itemsize:
            # "destination operand may be wider than the instruction type": sign- or zero-extended (PTX ISA, Operand Size Exceeding Instruction-Type Size)
            view = self._view(f"{'int' if wanted.kind == 'i' else 'uint'}{8 * width}")
            if wanted.kind == "f":
                bits = f"uint{8 * wanted.itemsize}"

                def widened(lanes: Lanes, values: np.ndarray) -> None:
                    np.copyto(lanes.rows[view][row], np.asarray(values, wanted).view(bits), where=lanes.active)

                return self._kept([(width, row)], widened)
        else:
            raise self.unsupported(f"a register of {8 * width} bits does not take a .{type}")

        def put(lanes: Lanes, values: np.ndarray) -> None:
            if lanes.full:
                lanes.rows[view][row][:] = values
            else:
                np.copyto(lanes.rows[view][row], values, casting="unsafe", where=lanes.active)

        return self._kept([(width, row)], put)

    def sources(self, operands: Sequence[Operand], type: str) -> Callable[[Lanes], np.ndarray]:
        places = [self.places.get(o) if isinstance(o, str) else None for o in operands]
        width = self._dtype(type).itemsize
        if type != "pred" and places and all(p is not None and p[0] == width for p in places):
            view, index = self._view(TYPES[type]), _index([p[1] for p in places])
            return self._kept(places, lambda lanes: lanes.banks[view][index])
        each = [self.source(o, type) for o in operands]
        return lambda lanes: np.stack([get(lanes) for get in each]) if each else np.zeros((0, LANES), self._dtype(type))

    def results(self, operands: Sequence[Operand], type: str) -> Callable[[Lanes, np.ndarray], None]:
        places = [self.places.get(o) if isinstance(o, str) else None for o in operands]
        width = self._dtype(type).itemsize
        if type != "pred" and places and all(p is not None and p[0] == width for p in places):
            view, index = self._view(TYPES[type]), _index([p[1] for p in places])

            def put(lanes: Lanes, values: np.ndarray) -> None:
                bank = lanes.banks[view]
                bank[index] = values if lanes.full else np.where(lanes.active, values, bank[index])

            return self._kept(places, put)
        each = [self.result(o, type) for o in operands]

        def put_each(lanes: Lanes, values: np.ndarray) -> None:
            for n, one in enumerate(each):
                one(lanes, values[n])

        return put_each

    def address(self, operand: Operand, generic: bool = False) -> Callable[[Lanes], np.ndarray]:
        base, offset = (operand.base, operand.offset) if isinstance(operand, At) else (operand, 0)
        if isinstance(base, int):
            value = np.full(LANES, (base + offset) & 2**64 - 1, np.uint64)
            return lambda lanes: value
        if base in self.places:
            width = self.places[base][0]
            if width not in (4, 8):
                raise self.unsupported("an address in a register of neither 32 nor 64 bits")
            view, row = self._view(f"uint{8 * width}"), self.places[base][1]
            if not offset:
                return lambda lanes: lanes.rows[view][row].astype(np.uint64)
            plus = np.uint64(offset & 2**64 - 1)
            if width == 4:
                return lambda lanes: (lanes.rows[view][row].astype(np.uint64) + plus) & np.uint64(2**32 - 1)
            return lambda lanes: lanes.rows[view][row] + plus
        at = self._symbol(base)
        space = "shared" if base in self.symbols else "param" if base in self.params else "local" if base in self.locals else ""
        plus = np.uint64((offset + (WINDOWS.get(space, 0) if generic else 0)) & 2**64 - 1)
        return lambda lanes: at(lanes) + plus

    # --- inside

    def _dtype(self, type: str) -> np.dtype:
        if type not in TYPES:
            raise self.unsupported(f"the type '.{type}' is not covered")
        return np.dtype(TYPES[type])

    def _view(self, name: str) -> int:
        self.views.add(VIEW[name])
        return VIEW[name]

    def _row(self, register: str, type: str, dtype: np.dtype) -> Callable[[Lanes], np.ndarray]:
        width, row = self.places[register]
        if (type == "pred") != (width == 0):
            raise self.unsupported("a predicate stands where a number is wanted, or the other way round")
        if width == 0:
            view = self._view("bool")
            return lambda lanes: lanes.rows[view][row]
        if width == dtype.itemsize:
            view = self._view(TYPES[type])
            return lambda lanes: lanes.rows[view][row]
        if width < dtype.itemsize:
            raise self.unsupported(f"a register of {8 * width} bits gives no .{type}")
        # "source operand may be wider than the instruction type": its low bits count (PTX ISA, Operand Size Exceeding Instruction-Type Size)
        wide, low = self._view(f"uint{8 * width}"), np.dtype(f"uint{8 * dtype.itemsize}")
        return lambda lanes: lanes.rows[wide][row].astype(low).view(dtype)

    def _symbol(self, name: str) -> Callable[[Lanes], np.ndarray]:
        """A variable's address: in the CTA's shared memory, of the module, or of a parameter or a thread's own in its space."""
        if self.function and name in self.locals:
            offset = self.locals[name]
            return lambda lanes: np.full(LANES, lanes.base + offset, np.uint64)
        fixed = next((places[name] for places in (self.params, self.locals, self.variables) if name in places), None)
        if fixed is not None:
            value = np.full(LANES, fixed, np.uint64)
            return lambda lanes: value
        if name in self.symbols:
            offset = self.symbols[name]
            return lambda lanes: np.full(LANES, lanes.cta.rank << 24 | offset, np.uint64)
        raise self.unsupported(f"'{name}' is not declared, or a special register that is not covered")

    def emulated(self, opcode: str) -> Emulated | None:
        if opcode not in self.found:
            words = opcode.split(".")
            names = (".".join(words[:n]) for n in range(len(words), 0, -1))
            self.found[opcode] = next((self.emulates[n] for n in names if n in self.emulates), None)
        return self.found[opcode]

    def step(self, s: Statement) -> tuple[Step, bool]:
        """The step of a statement, and whether it may wait. Raises Unsupported."""
        if self.earlier is not None and self.watched.isdisjoint(self.places.get(r) for r in s.registers):
            return self.earlier.steps[id(s)]
        made = self.steps[id(s)] = self._step(s)
        return made

    def _step(self, s: Statement) -> tuple[Step, bool]:
        self.statement, self._meets = s, False
        emulated = self.emulated(s.opcode)
        if emulated is None:
            raise Unsupported(s.line, s.opcode, "no plugin says how it is executed")
        module, _, name = emulated.make.partition(":")
        try:
            made = getattr(importlib.import_module(module), name)(s, self)
        except (Unsupported, PtxSyntaxError):
            raise
        except Exception as error:
            raise Unsupported(s.line, s.opcode, f"'{emulated.make}' fails at it: {type(error).__name__}: {error}") from error
        waits = emulated.waits or self._meets is not False
        if self._meets is not False:
            made = together(made, self._meets, self._without_ended)
        if s.guard is not None:
            made = self._guarded(made, s)
        return made, waits

    def _guarded(self, step: Step, s: Statement) -> Step:
        row, view, negated = self.places[s.guard][1], self._view("bool"), s.negated

        def guarded(lanes: Lanes):
            holds = lanes.rows[view][row]
            chosen = lanes.active & ~holds if negated else lanes.active & holds
            if not chosen.any():
                return None
            before = lanes.active, lanes.full, lanes.first
            lanes.narrow(chosen)
            try:
                return step(lanes)
            finally:
                lanes.active, lanes.full, lanes.first = before

        return guarded


def _index(rows: list[int]):
    """Rows in order behind each other are a slice: a view, and faster."""
    if rows == list(range(rows[0], rows[0] + len(rows))):
        return slice(rows[0], rows[0] + len(rows))
    return np.array(rows)
