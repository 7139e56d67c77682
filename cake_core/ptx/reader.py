"""Reads PTX text into records, from the text alone: what this compiler or any other has printed.

It knows how statements are written (PTX ISA, Syntax: Statements, Identifiers, Constants; Instruction Operands) and no instruction: an opcode is a
word with dots. Operands are read when they are asked for, since most of a kernel moves floats about.

Names are those of the text, made one for the whole entry: a register that a block inside of the body declares, or that has no %, is `%name$1`, and a
label of a block `name$1`. A vector is its elements, `%v.x` to `%v.w`, and its name stands for them in braces. What positions in a source file say (`.loc`, `.file`, sections of debuggers) is read over. Functions are read that an entry may call. A
call is a statement whose operands are a text only, since parentheses are no operand (`called`); parameters of calls, declared in a body, are variables of
the thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field

from cake_core.frozen import frozen
from cake_core.ptx import declared
from cake_core.ptx.declared import Variable
from cake_core.ptx.naming import Scope
from cake_core.ptx.operands import At, Group, Operand, Pair, Sum, operands_of


class PtxSyntaxError(Exception):
    """A line that is no statement of PTX as far as it is read here: `line` counts from 1."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line, self.why = line, why


@frozen
class Statement:
    """One instruction. `line` counts from 1; `guard` the register of `@p` or `@!p` in front (`negated`); `text`: its operands as written."""

    line: int
    opcode: str
    text: str
    guard: str | None = None
    negated: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.opcode.split("."))

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Raises PtxSyntaxError."""
        try:
            return operands_of(self.text)
        except ValueError as error:
            raise PtxSyntaxError(self.line, str(error)) from None

    @property
    def registers(self) -> tuple[str, ...]:
        """The registers that its operands name, in order."""
        return tuple(_REGISTER.findall(self.text))

    @property
    def outside(self) -> tuple[str, ...]:
        """The registers that stand outside of braces."""
        return tuple(_REGISTER.findall(_BRACES.sub("", self.text) if "{" in self.text else self.text))

    @property
    def results(self) -> tuple[str, ...]:
        """The registers of its first operand."""
        end = 0
        if self.text.startswith("{"):
            end = self.text.find("}")
        end = self.text.find(",", end)
        return tuple(_REGISTER.findall(self.text if end < 0 else self.text[:end]))


@frozen
class Mark:
    """A label. `targets`: the labels of a table of branches that bears this name (PTX ISA, .branchtargets)."""

    line: int
    name: str
    targets: tuple[str, ...] = ()


@frozen
class Entry:
    """One `.entry`. `params`: names and types in order; `symbols`: names outside of it, with their alignment; `threads`: of a CTA, where
    `.reqntid` says so; `directives` in front of its body, as written. `registers`: (type, name, count) as declared, count None of a single
    one; `shared`: (name, alignment, bytes) of variables, bytes None where the launch gives them; `sizes`: (alignment, bytes) of each parameter;
    `variables`: those of the spaces global, const and local, of the module and of the body; `functions`: those with a body that it may call."""

    name: str
    params: tuple[tuple[str, str], ...]
    symbols: dict[str, int]
    directives: tuple[str, ...]
    body: tuple[Statement | Mark, ...] = field(repr=False)
    registers: tuple[tuple[str, str, int | None], ...] = ()
    shared: tuple[tuple[str, int, int | None], ...] = ()
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()
    functions: tuple[Function, ...] = field(default=(), repr=False)

    @property
    def block(self) -> tuple[int, int, int] | None:
        """Threads of a CTA along x, y, z, where `.reqntid` says so."""
        for d in self.directives:
            if d.startswith(".reqntid"):
                x, y, z = [*(int(n) for n in d.removeprefix(".reqntid").split(",")), 1, 1][:3]
                return x, y, z
        return None

    @property
    def threads(self) -> int | None:
        """All of them."""
        return None if self.block is None else self.block[0] * self.block[1] * self.block[2]


@frozen
class Function:
    """One `.func`. `results`, `formals`: its parameters in order, of the space `param` or `reg`; `code`: its body as an entry's, whose local variables and
    registers these are too."""

    name: str
    results: tuple[Variable, ...]
    formals: tuple[Variable, ...]
    code: Entry


def called(text: str) -> tuple[tuple[Operand, ...], str, tuple[Operand, ...]]:
    """Of a call's operands: what takes results, the function's name or the register that holds its address, and what is passed. Raises ValueError."""
    found = _CALL.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"'{text}' calls nothing")
    return operands_of((found[1] or "").strip()), found[2], operands_of((found[3] or "").strip())


_REGISTER = re.compile(r"%[\w$]+(?:\.[xyzw])?")
_BRACES = re.compile(r"\{[^}]*\}")
_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STATEMENT = re.compile(r"\s*(?:@\s*(!?)\s*(%?[\w$]+)\s+)?([a-z]\w*(?:(?:\.|::)\w+)*)(?=[\s;])(?!\s*:)\s*([^;{}]*(?:\{[^{}]*\}[^;{}]*)*);")
_MARK = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")
_DIRECTIVE = re.compile(r"\.(\w+)")
_HEAD = re.compile(r"\s+([\w$]+)\s*(?:\(([^()]*(?:\([^()]*\)[^()]*)*)\))?\s*([^;{]*)([;{])")
_FUNCTION = re.compile(r"\s*(?:\(([^()]*)\))?\s*([\w$]+)\s*(?:\(([^()]*)\))?\s*([^;{]*)([;{])")
_CALL = re.compile(r"(?:\(([^()]*)\)\s*,\s*)?(%?[\w$]+)\s*(?:,\s*\(([^()]*)\)\s*)?(?:,\s*[\w$]+\s*)?")
_SPACE = re.compile(r"\s*")
_BRACE = re.compile(r"[{}]")
#: Directives that end with their line, and that are read over.
_LINES = ("version", "target", "address_size", "file", "loc")
_SPACES = ("shared", "global", "const", "local")
_LINKING = ("extern", "visible", "weak", "common", "noreturn")


def entries(text: str) -> tuple[str, ...]:
    """The names of a module's entries, in order. Raises PtxSyntaxError."""
    return tuple(_Module(text).read(lambda name: False).names)


def read(text: str, name: str | None = None) -> Entry:
    """One entry of a module: that of `name`, or the only one. Raises PtxSyntaxError."""
    module = _Module(text).read(lambda n: name in (None, n))
    names = ", ".join(f"'{n}'" for n in module.names)
    if not names:
        raise PtxSyntaxError(1, "there is no entry")
    if not module.found:
        raise PtxSyntaxError(1, f"there is no entry '{name}', but {names}")
    if len(module.found) > 1:
        raise PtxSyntaxError(module.found[1][0], f"a second entry: of {names} one is chosen by its name")
    return module.entry(*module.found[0][1:])


class _Module:
    """A text without its comments. `names`: of its entries; `found`: line, name, parameters, directives, place and body of those that are asked for;
    `variables`: outside of entries; `functions`: results, formals and place of the body, by name."""

    def __init__(self, text: str) -> None:
        self.names: list[str] = []
        self.found: list[tuple] = []
        self.variables: list[Variable] = []
        self.functions: dict[str, tuple[str, str, int]] = {}
        if "//" in text or "/*" in text:
            text = _COMMENT.sub(lambda m: m[0] if m[0][0] == '"' else "\n" * m[0].count("\n") or " ", text)
        self.text = text

    def line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def fails(self, at: int, why: str) -> PtxSyntaxError:
        return PtxSyntaxError(self.line(at), why)

    def to(self, mark: str, at: int) -> int:
        """Behind the next `mark`."""
        end = self.text.find(mark, at)
        if end < 0:
            if mark == "\n":
                return len(self.text)
            raise self.fails(at, f"there is no '{mark}' behind this")
        return end + len(mark)

    def past(self, at: int) -> int:
        """Behind the brace that closes the one at `at`."""
        depth = 0
        for found in _BRACE.finditer(self.text, at):
            depth += 1 if found[0] == "{" else -1
            if depth == 0:
                return found.end()
        raise self.fails(at, "a block does not end")

    def read(self, asked: Callable[[str], bool]) -> _Module:
        text, at = self.text, 0
        while (at := _SPACE.match(text, at).end()) < len(text):
            found = _DIRECTIVE.match(text, at)
            if found is None:
                raise self.fails(at, f"'{text[at : self.to(chr(10), at)].strip()}' is no directive")
            word, start = found[1], found.end()
            if word in _LINKING:
                at = start
            elif word in _LINES:
                at = self.to("\n", start)
            elif word == "entry":
                head = _HEAD.match(text, start)
                if head is None:
                    raise self.fails(at, "an entry without a body")
                if head[4] == ";":  # declared, and defined elsewhere
                    at = head.end()
                    continue
                self.names.append(head[1])
                if asked(head[1]):
                    *body, end = self._body(head.end())
                    self.found.append((self.line(at), head[1], head[2] or "", head[3], at, *body))
                    at = end
                else:
                    at = self.past(head.end() - 1)
            elif word in _SPACES:
                end = self.to(";", start)
                try:
                    self.variables.append(declared.variable(word, text[start : end - 1]))
                except ValueError as error:
                    raise self.fails(at, str(error)) from None
                at = end
            elif word == "section":
                at = self.past(text.find("{", start))
            elif word == "func":
                head = _FUNCTION.match(text, start)
                if head is None:
                    raise self.fails(at, "a function without a body")
                at = head.end()
                if head[5] == "{":
                    self.functions[head[2]] = head[1] or "", head[3] or "", at
                    at = self.past(at - 1)
            elif word in ("pragma", "alias", "tex"):
                at = self.to(";", start)
            else:
                raise self.fails(at, f"'.{word}' is not read in a module")
        return self

    def entry(self, name: str, params: str, head: str, at: int, registers: list, own: list[Variable], body: list[Statement | Mark]) -> Entry:
        given, sizes = [], {}
        for part in params.split(",") if params.strip() else []:
            try:
                one = declared.variable("param", part.strip().removeprefix(".param"))
            except ValueError as error:
                raise self.fails(at, str(error)) from None
            given.append((one.name, one.type))
            sizes[one.name] = (one.align, one.size or 0)
        functions = self._called(body)
        own = [*own, *(v for f in functions for v in f.code.variables if v.space == "shared")]
        directives = tuple(" ".join(d.split()) for d in re.findall(r"\.\w+[^.]*", head))
        all_ = [*self.variables, *own]
        return Entry(
            name,
            tuple(given),
            {v.name: v.align for v in all_},
            directives,
            tuple(body),
            tuple(registers),
            tuple((v.name, v.align, v.size) for v in all_ if v.space == "shared"),
            sizes,
            tuple(v for v in all_ if v.space != "shared"),
            functions,
        )

    def _called(self, body: list[Statement | Mark]) -> tuple[Function, ...]:
        """Functions that a body may call, and those that they may. One whose text is not read stays out: it is refused where it is called."""
        found: dict[str, Function | None] = {}
        left = _calls(body)
        while left:
            name = left.pop()
            if name in found or name not in self.functions:
                continue
            try:
                found[name] = self._function(name)
            except PtxSyntaxError:
                found[name] = None
                continue
            left += _calls(found[name].code.body)
        return tuple(f for f in found.values() if f is not None)

    def _function(self, name: str) -> Function:
        results, formals, at = self.functions[name]
        registers, own, body, _ = self._body(at)
        sides = []
        for side in (results, formals):
            made = []
            for part in side.split(",") if side.strip() else []:
                space, rest = (part.strip().removeprefix(".").split(None, 1) + [""])[:2]
                try:
                    made.append(declared.variable(space, rest))
                except ValueError as error:
                    raise self.fails(at, str(error)) from None
            sides.append(tuple(made))
        all_ = [*sides[0], *sides[1]]
        registers += [(v.type, v.name, None) for v in all_ if v.space == "reg"]
        own += [Variable("local", v.name, v.type, v.align, v.size) for v in all_ if v.space == "param"]
        return Function(name, *sides, Entry(name, (), {}, (), tuple(body), tuple(registers), variables=tuple(own)))

    # --- the body

    def _body(self, at: int) -> tuple[list, list[Variable], list[Statement | Mark], int]:
        """Registers, variables, statements, and where the text goes on."""
        text, body, registers, variables = self.text, [], [], []
        scopes, blocks = [Scope(0, 0)], 0
        line, counted = self.line(at), at
        match, append, pattern = _STATEMENT.match, body.append, None
        while True:
            if (s := match(text, at)) is not None:
                start = s.start(3) if s[2] is None else s.start(2)
                line += text.count("\n", counted, start)
                counted, at = start, s.end()
                operands, guard = s[4].strip(), s[2]
                if "\n" in operands:  # over several lines, or without its semicolon
                    operands = " ".join(operands.split())
                    _ = s[3][:4] == "call" or Statement(line, s[3], operands).operands
                if pattern is not None:
                    operands = pattern.sub(lambda m: scopes[-1].names[m[0]], operands)
                    guard = scopes[-1].names.get(guard, guard)
                append(Statement(line, s[3], operands, guard, s[1] == "!"))
                continue
            at = _SPACE.match(text, at).end()
            line += text.count("\n", counted, at)
            counted = at
            if text.startswith("{", at):
                blocks += 1
                scopes.append(Scope(blocks, len(body), scopes[-1]))
                at += 1
            elif text.startswith("}", at):
                self._close(scopes[-1], body)
                at += 1
                scopes.pop()
                if not scopes:
                    return registers, variables, body, at
                pattern = scopes[-1].pattern
            elif (m := _MARK.match(text, at)) is not None:
                scope, label = scopes[-1], m[1]
                if scope.number:
                    scope.labels[label] = f"{label}${scope.number}"
                append(Mark(line, scope.labels.get(label, label)))
                at = m.end()
            elif (d := _DIRECTIVE.match(text, at)) is not None:
                if d[1] == "branchtargets" and body and isinstance(body[-1], Mark):
                    body[-1] = Mark(body[-1].line, body[-1].name, tuple(t.strip() for t in text[d.end() : self.to(";", at) - 1].split(",")))
                at = self._declared(d[1], at, d.end(), scopes[-1], registers, variables)
                pattern = scopes[-1].pattern
            else:
                end = min(self.to("\n", at), text.find(";", at) + 1 or len(text))
                raise PtxSyntaxError(line, f"'{text[at:end].strip()}' is no statement")

    def _declared(self, word: str, at: int, start: int, scope: Scope, registers: list, variables: list[Variable]) -> int:
        """A directive of a body; where the text goes on behind it."""
        if word in ("loc", "file"):
            return self.to("\n", start)
        end = self.to(";", start)
        inside = self.text[start : end - 1]
        try:
            if word == "reg":
                for type, name, count, elements in declared.registers(inside):
                    if elements == 1:
                        registers.append((type, scope.register(name, count), count))
                        continue
                    for one in [name] if count is None else [f"{name}{n}" for n in range(count)]:
                        registers += [(type, element, None) for element in scope.vector(one, elements)]
            elif word in _SPACES:
                variables.append(declared.variable(word, inside))
            elif word == "param":
                one = declared.variable("local", inside)
                for n, v in enumerate(variables):  # each call has a `param0`: one place that is large enough for all
                    if v.name == one.name:
                        variables[n] = Variable("local", v.name, v.type, max(v.align, one.align), max(v.size or 0, one.size or 0))
                        break
                else:
                    variables.append(one)
            elif word not in ("pragma", "branchtargets", "callprototype", "calltargets"):
                raise ValueError(f"'.{word}' is not read in a body")
        except ValueError as error:
            raise self.fails(at, str(error)) from None
        return end

    def _close(self, scope: Scope, body: list[Statement | Mark]) -> None:
        """Branches to the labels of a block that ends have the labels' names here."""
        if not scope.labels:
            return
        for n in range(scope.first, len(body)):
            item = body[n]
            if isinstance(item, Statement) and item.text in scope.labels:
                body[n] = Statement(item.line, item.opcode, scope.labels[item.text], item.guard, item.negated)
            elif isinstance(item, Mark) and item.targets:
                body[n] = Mark(item.line, item.name, tuple(scope.labels.get(t, t) for t in item.targets))


def _calls(body: list[Statement | Mark] | tuple[Statement | Mark, ...]) -> list[str]:
    found = [_CALL.fullmatch(s.text.strip()) for s in body if isinstance(s, Statement) and s.words[0] == "call"]
    return [m[2] for m in found if m is not None]


__all__ = [
    "At",
    "Entry",
    "Function",
    "Group",
    "Mark",
    "Operand",
    "Pair",
    "PtxSyntaxError",
    "Statement",
    "Sum",
    "called",
    "entries",
    "operands_of",
    "read",
]
