"""The device check of a kernel's contracts about its data: an entry of its own, which reads the inputs where they are.

One word of 64 bits a contract, all ones before the launch, says what became of it:

    HOLDS           nothing was written
    FALSE           a condition that does not hold
    OUTSIDE, ZERO   a condition that reads outside of an input, or divides by zero
    i               of a statement about a whole input: one of the elements that break it, by its number in memory

Numbers are those of the host's check (`runtime/host_formula.py`): integers of 64 bits, floats of 64 bits. All parts of a condition
are evaluated. Instructions are plain ones that every target has (PTX ISA, integer and floating-point arithmetic, ld, st, bra).
"""

from __future__ import annotations

import struct

from cake_core.architecture import Architecture, Launch
from cake_core.artifact import FALSE, OUTSIDE, ZERO, Check, DeviceCheck, EntryParamInfo, Formula, ParamInfo
from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.ptx.builder import Addr, Builder, Operand, Reg, Sym
from cake_core.ptx.module import EntryParam, Module

WARPS = 8
#: Bits of an element that are all ones in what is not finite, and in nothing else (IEEE 754; PTX ISA, Alternate Floating-Point
#: Data Formats: e4m3 has no infinity and one NaN of each sign, ue8m0 one NaN).
NOT_FINITE = {"f32": 0x7F800000, "f16": 0x7C00, "bf16": 0x7F80, "e5m2": 0x7C, "e4m3": 0x7F, "ue8m0": 0xFF}
BYTES = {"f32": 4, "i32": 4, "u32": 4, "f16": 2, "bf16": 2, "e5m2": 1, "e4m3": 1, "ue8m0": 1}
COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
ARITHMETIC = {("+", "int"): "add.s64", ("-", "int"): "sub.s64", ("*", "int"): "mul.lo.s64"} | {
    (op, "float"): f"{name}.rn.f64" for op, name in (("+", "add"), ("-", "sub"), ("*", "mul"), ("/", "div"))
}
#: Functions of more than two arguments are folded from the left, as on the host.
FOLDED = frozenset({"+", "*", "min", "max", "and", "or"})


def device_check(kernel: str, contracts: tuple[Check, ...], params: tuple[ParamInfo, ...], arch: Architecture) -> tuple[str, DeviceCheck]:
    """PTX of an entry `KERNEL_assumes` that checks `contracts`, and how it is launched. Raises CakeError.

    Parameters: pointer to the verdicts, a pointer for each input that a contract reads, every scalar that one names.
    """
    body = Builder()
    w = _Writer(body, {p.name: p for p in params})
    backend = arch.backend()
    thread = body.op("mov.u32", Sym("%tid.x"))
    identity = backend.cluster_identity(body, 1)
    place = _Place(thread, body.shr(thread, 5), identity.index, identity.count)
    about = [(i, c.formula) for i, c in enumerate(contracts) if _about(c.formula)]
    conditions = [(i, c.formula) for i, c in enumerate(contracts) if not _about(c.formula)]
    if conditions:
        w.conditions(conditions, place)
    for number, (name, tensor) in about:
        w.about(number, name, tensor, place)
    body.emit("ret")

    entry = f"{kernel}_assumes"
    head, entries, infos = w.parameters()
    launch = Launch(32 * WARPS, 1, 0, arch.limit("registers_per_thread"))
    whole = Builder(body=head.body + body.body, counts=body.counts)
    directives = backend.entry_directives(launch)
    text, _ = Module(arch.ptx_version, arch.target, entry, entries, directives, None, builder=whole).print()
    return text, DeviceCheck(entry, launch.threads, infos)


def _about(formula: Formula) -> bool:
    return isinstance(formula, list) and formula[0] in ("monotone", "finite")


@frozen
class _Place:
    """Where a thread stands: thread and warp of its CTA, CTA of the grid, and how many of these there are."""

    thread: Operand
    warp: Operand
    cta: Operand
    ctas: Operand


@frozen
class _Number:
    """`kind` int or float: a register of 64 bits; bool: a predicate."""

    kind: str
    at: Reg


class _Writer:
    def __init__(self, b: Builder, params: dict[str, ParamInfo]):
        self.b = b
        self.params = params
        self.head = Builder(counts=b.counts, labels=b.labels)
        self.scalars: dict[str, _Number] = {}
        self.pointers: dict[str, Reg] = {}
        self.verdicts = self.head.reg("b64")
        self.fault: Reg | None = None  # of the condition at hand: HOLDS, OUTSIDE or ZERO

    # --- the entry

    def parameters(self) -> tuple[Builder, list[EntryParam], tuple[EntryParamInfo, ...]]:
        """The head that loads what was asked for, and the parameters in their order."""
        verdicts = self._pointer("ptr_$verdicts", self.verdicts)
        entries, infos = [verdicts], [EntryParamInfo("verdicts", "")]
        for name in (p for p in self.params if p in self.pointers):
            entries.append(self._pointer(f"ptr_{name}", self.pointers[name]))
            infos.append(EntryParamInfo("pointer", name, self.params[name].elem))
        for name in (p for p in self.params if p in self.scalars):
            entries.append(EntryParam(f"arg_{name}", f".{'f32' if self.scalars[name].kind == 'float' else 'b32'} arg_{name}"))
            infos.append(EntryParamInfo("scalar", name, self.params[name].elem))
        return self.head, entries, tuple(infos)

    def _pointer(self, name: str, register: Reg) -> EntryParam:
        generic = self.head.reg("b64")
        self.head.emit("ld.param.b64", generic, Addr(Sym(name)))
        self.head.emit("cvta.to.global.u64", register, generic)
        return EntryParam(name, f".b64 {name}")

    def _scalar(self, name: str) -> _Number:
        if name not in self.scalars:
            elem = self.params[name].elem
            kind = "float" if elem == "f32" else "int"
            at = self.head.reg("b64")
            held = self.head.reg("f32" if kind == "float" else "b32")
            self.head.emit(f"ld.param.{held.kind}", held, Addr(Sym(f"arg_{name}")))
            self.head.emit({"f32": "cvt.f64.f32", "u32": "cvt.u64.u32"}.get(elem, "cvt.s64.s32"), at, held)
            self.scalars[name] = _Number(kind, at)
        return self.scalars[name]

    def _tensor(self, name: str) -> Reg:
        if name not in self.pointers:
            self.pointers[name] = self.head.reg("b64")
        return self.pointers[name]

    # --- conditions: one warp of the grid

    def conditions(self, formulas: list[tuple[int, Formula]], place: _Place) -> None:
        b = self.b
        others, only = b.label("others"), b.op("or.b32", place.cta, place.warp)
        b.branch(others, guard=b.op("setp.ne.s32", only, 0))
        for number, formula in formulas:
            self.fault = b.mov(-1, "b64")
            holds = self._truth(self.evaluate(formula))
            verdict = b.op("selp.b64", -1, FALSE, holds)
            sound = b.op("setp.eq.s64", self.fault, -1)
            verdict = b.op("selp.b64", verdict, self.fault, sound)
            first = b.op("setp.eq.s32", place.thread, 0)
            b.emit("st.global.b64", Addr(self.verdicts, 8 * number), verdict, guard=first)
        b.place(others)

    def evaluate(self, tree: Formula) -> _Number:
        b = self.b
        match tree:
            case bool():
                return _Number("bool", b.op("setp.eq.s32", b.mov(int(tree)), 1))
            case int():
                return _Number("int", b.mov(tree, "b64"))
            case float():
                rounded = struct.unpack("<f", struct.pack("<f", tree))[0]  # a literal of the language is an f32
                return _Number("float", b.mov(struct.unpack("<q", struct.pack("<d", rounded))[0], "b64"))
            case str():
                return self._scalar(tree)
            case ["at", str(tensor), *indices]:
                return self._element(tensor, [self.evaluate(i) for i in indices])
            case ["not", a]:
                return _Number("bool", b.op("not.pred", self._truth(self.evaluate(a))))
            case ["if", test, then, other]:
                chosen = self._truth(self.evaluate(test))
                kind, x, y = self._alike(self.evaluate(then), self.evaluate(other))
                if kind == "bool":
                    x, y = b.op("and.pred", chosen, x), b.op("and.pred", b.op("not.pred", chosen), y)
                    return _Number(kind, b.op("or.pred", x, y))
                return _Number(kind, b.op("selp.b64", x, y, chosen))
            case [str(op), first, *rest] if len(rest) == 1 or rest and op in FOLDED:
                value = self.evaluate(first)
                for other in rest:
                    value = self._apply(op, value, self.evaluate(other))
                return value
        raise fail("derive/not-a-launch-formula", f"a contract can't be checked on the device: {tree!r} is no formula")

    def _apply(self, op: str, left: _Number, right: _Number) -> _Number:
        b = self.b
        if op in ("and", "or"):
            return _Number("bool", b.op(f"{op}.pred", self._truth(left), self._truth(right)))
        kind, x, y = self._alike(left, right)
        if op in COMPARISONS:
            if kind == "bool":
                kind, x, y = "int", b.op("selp.b64", 1, 0, x), b.op("selp.b64", 1, 0, y)
            # A NaN is unequal to everything and not ordered, as on the host.
            name = "neu" if (op, kind) == ("!=", "float") else COMPARISONS[op]
            return _Number("bool", b.op(f"setp.{name}.{'f64' if kind == 'float' else 's64'}", x, y))
        if (opcode := ARITHMETIC.get((op, kind))) is not None:
            if op == "/":
                y = self._divisor(y, kind)
            return _Number(kind, b.op(opcode, x, y))
        match op, kind:
            case (("min" | "max"), "int"):
                return _Number(kind, b.op(f"{op}.s64", x, y))
            case (("min" | "max"), "float"):  # a NaN stays one, which the instructions drop
                mine = b.op("setp.lt.f64" if op == "min" else "setp.gt.f64", x, y)
                mine = b.op("or.pred", mine, b.op("setp.nan.f64", x, x))
                return _Number(kind, b.op("selp.b64", x, y, mine))
            case (("/" | "%"), "int"):
                return _Number(kind, self._floor(x, self._divisor(y, kind))[op == "%"])
            case "ceildiv", "int":
                down, _ = self._floor(b.op("neg.s64", x), self._divisor(y, kind))
                return _Number(kind, b.op("neg.s64", down))
        raise fail("derive/not-a-launch-formula", f"a contract can't be checked on the device: '{op}' of {kind} values")

    def _floor(self, x: Operand, y: Operand) -> tuple[Reg, Reg]:
        """Floor of the quotient, and the remainder with the divisor's sign."""
        b = self.b
        quotient, remainder = b.op("div.s64", x, y), b.op("rem.s64", x, y)
        apart = b.op("setp.lt.s64", b.op("xor.b64", remainder, y), 0)
        down = b.op("and.pred", b.op("setp.ne.s64", remainder, 0), apart)
        lower = b.op("add.s64", quotient, -1)
        return b.op("selp.b64", lower, quotient, down), b.op("selp.b64", b.op("add.s64", remainder, y), remainder, down)

    def _divisor(self, y: Operand, kind: str) -> Reg:
        """`y`, or 1 and a fault where it is zero."""
        b = self.b
        zero = b.op("setp.eq.f64" if kind == "float" else "setp.eq.s64", y, b.mov(0, "b64"))
        b.emit("mov.b64", self.fault, ZERO, guard=zero)
        return b.op("selp.b64", 1, y, zero)

    def _element(self, tensor: str, indices: list[_Number]) -> _Number:
        b, elem = self.b, self.params[tensor].elem
        flat, inside = None, None
        for index, extent in zip(indices, self._extents(tensor), strict=True):
            held = b.op("and.pred", b.op("setp.ge.s64", index.at, 0), b.op("setp.lt.s64", index.at, extent))
            inside = held if inside is None else b.op("and.pred", inside, held)
            flat = index.at if flat is None else b.op("mad.lo.s64", flat, extent, index.at)
        if elem not in ("f32", "i32", "u32"):  # no other is a scalar of the language
            raise fail("derive/not-a-launch-formula", f"a contract can't be checked on the device: an element of '{tensor}', of {elem}")
        b.emit("mov.b64", self.fault, OUTSIDE, guard=inside, negate=True)
        bits = b.mov(0)
        b.emit("ld.global.b32", bits, Addr(self._address(tensor, flat)), guard=inside)
        if elem == "f32":
            return _Number("float", b.op("cvt.f64.f32", b.mov(bits, "f32")))
        return _Number("int", b.op("cvt.s64.s32" if elem == "i32" else "cvt.u64.u32", bits))

    def _address(self, tensor: str, flat: Operand) -> Reg:
        return self.b.op("mad.lo.s64", flat, BYTES[self.params[tensor].elem], self._tensor(tensor))

    def _extents(self, tensor: str) -> list[Reg]:
        return [self.evaluate(d).at for d in self.params[tensor].shape]

    def _truth(self, x: _Number) -> Reg:
        if x.kind == "bool":
            return x.at
        return self.b.op("setp.ne.s64", x.at, 0)

    def _alike(self, x: _Number, y: _Number) -> tuple[str, Reg, Reg]:
        """Both of one kind: integers beside floats are converted."""
        if x.kind == y.kind:
            return x.kind, x.at, y.at
        as_float = lambda n: n.at if n.kind == "float" else self.b.op("cvt.rn.f64.s64", n.at)  # noqa: E731
        return "float", as_float(x), as_float(y)

    # --- statements about a whole input: every warp of the grid, 32 elements at a time

    def about(self, number: int, name: str, tensor: str, place: _Place) -> None:
        b, elem = self.b, self.params[tensor].elem
        extents = self._extents(tensor)
        total = extents[0]
        for extent in extents[1:]:
            total = b.op("mul.lo.s64", total, extent)
        # The loop counts in whole warps, so that its branch is the same for all lanes; a lane past the end does nothing.
        lane = b.op("cvt.u64.u32", b.land(place.thread, 31))
        warp = b.op("mad.lo.s32", place.cta, WARPS, place.warp)
        at = b.op("shl.b64", b.op("cvt.u64.u32", warp), 5)
        step = b.op("shl.b64", b.op("cvt.u64.u32", b.mul(place.ctas, WARPS)), 5)
        again, done = b.label("again"), b.label("done")
        b.place(again)
        b.branch(done, guard=b.op("setp.ge.s64", at, total))
        flat = b.op("add.s64", at, lane)
        inside = b.op("setp.lt.s64", flat, total)
        if name == "monotone":
            inside = b.op("and.pred", inside, b.op("setp.gt.s64", flat, 0))
        bits = {1: "u8", 2: "b16", 4: "b32"}[BYTES[elem]]
        address = self._address(tensor, flat)
        values = tuple(b.mov(0, "b16" if bits == "b16" else "b32") for _ in range(1 + (name == "monotone")))
        for i, value in enumerate(values):
            b.emit(f"ld.global.{bits}", value, Addr(address, -i * BYTES[elem]), guard=inside)
        if name == "monotone":
            broken = b.op(f"setp.lt.{'s32' if elem == 'i32' else 'u32'}", *values)
        else:
            whole = values[0] if bits != "b16" else b.op("cvt.u32.u16", values[0])
            broken = b.op("setp.eq.s32", b.op("and.b32", whole, NOT_FINITE[elem]), NOT_FINITE[elem])
        broken = b.op("and.pred", broken, inside)
        b.emit("st.global.b64", Addr(self.verdicts, 8 * number), flat, guard=broken)
        b.emit("add.s64", at, at, step)
        b.branch(again)
        b.place(done)
