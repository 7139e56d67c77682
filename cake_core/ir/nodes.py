"""The whole IR on one page: every node that a Cake text can hold.

The parser builds these nodes, elaboration returns the same nodes with `type` filled in, `derive` builds them
again as the derived form, and the printer writes either form back as text. There is no second tree: a program
is checked, priced and lowered from what stands here. Nodes are frozen; spans, types and comments take no part in equality.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from cake_core.frozen import frozen
from cake_core.source import NOWHERE, Span

if TYPE_CHECKING:
    from cake_core.ir.types import Type


@frozen(kw_only=True)
class Node:
    span: Span = field(default=NOWHERE, compare=False, repr=False)


# --- expressions -----------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Expr(Node):
    """`type` is None until elaboration."""

    type: Type | None = field(default=None, compare=False, repr=False)


@frozen
class Int(Expr):
    value: int


@frozen
class Float(Expr):
    """A float literal; `inf` is `Float(math.inf)` and prints as `inf`."""

    value: float


@frozen
class Bool(Expr):
    value: bool


@frozen
class Name(Expr):
    """A name, dots included (`math.i`, `t.n`, `cluster.id`)."""

    id: str


@frozen
class Unary(Expr):
    """`op` is `-`, `+` or `not`."""

    op: str
    operand: Expr


@frozen
class Binary(Expr):
    """`op` is one of `or and == != <= >= < > + - * / % @`."""

    op: str
    left: Expr
    right: Expr


@frozen
class Cond(Expr):
    test: Expr
    then: Expr
    other: Expr


@frozen
class Slice(Expr):
    """`lo +: size`, only inside an index."""

    lo: Expr
    size: Expr


@frozen
class All(Expr):
    """`:`, only inside an index."""


@frozen
class Index(Expr):
    """`base[indices]`. One bracket pair consumes one bracket pair of the declared type (`bf16[2][64, 64]` has two)."""

    base: Expr
    indices: tuple[Expr, ...]


@frozen
class Attr(Expr):
    """`base.name` where the base is not a plain name: `b[s].T`."""

    base: Expr
    name: str


@frozen
class Option(Expr):
    """`name = value` or, as a dimension of a tile schedule, `name: value`; only among the arguments of a call."""

    name: str
    value: Expr
    is_dim: bool = False


@frozen
class Call(Expr):
    """`function(args)`; `args` keeps plain arguments and `Option`s in source order."""

    function: Expr
    args: tuple[Expr, ...]

    @property
    def name(self) -> str:
        return self.function.id if isinstance(self.function, Name) else ""

    @property
    def positional(self) -> tuple[Expr, ...]:
        return tuple(a for a in self.args if not isinstance(a, Option))

    @property
    def options(self) -> dict[str, Expr]:
        return {a.name: a.value for a in self.args if isinstance(a, Option)}


@frozen
class Tuple(Expr):
    items: tuple[Expr, ...]


# --- parts of statements ---------------------------------------------------------------------------------------


@frozen
class Word(Node):
    """`name value` behind an operation or a declaration: `regs 40`, `signal full[s]`."""

    name: str
    value: Expr


@frozen
class Words(Node):
    """The words of a statement and its one optional flag, which stands last."""

    items: tuple[Word, ...] = ()
    flag: str | None = None

    def get(self, name: str) -> Expr | None:
        return next((w.value for w in self.items if w.name == name), None)

    def word(self, name: str) -> Word | None:
        return next((w for w in self.items if w.name == name), None)


NO_WORDS = Words()


@frozen
class TypeExpr(Node):
    """A type as written: `bf16[ST][BM, BK]` is name `bf16`, groups `((ST,), (BM, BK))`; `topk(KK)[128]` has args."""

    name: str
    groups: tuple[tuple[Expr, ...], ...] = ()
    args: tuple[Expr, ...] = ()


@frozen
class Binding(Node):
    name: str
    value: Expr


@frozen
class Declaration(Node):
    name: str
    declared: TypeExpr
    words: Words = NO_WORDS


@frozen
class Place(Node):
    """A role at an end of a pipeline: `load on pair` is name `load`, words `on pair`."""

    name: str
    words: Words = NO_WORDS


# --- statements ------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Stmt(Node):
    label: str | None = None


Block = tuple[Stmt, ...]


@frozen
class Let(Stmt):
    bindings: tuple[Binding, ...]


@frozen
class Var(Stmt):
    bindings: tuple[Binding, ...]


@frozen
class Tiles(Stmt):
    """`tiles t = persistent(m: .., n: .., raster = 8) { lets of the item }`."""

    name: str
    schedule: Expr
    words: Words = NO_WORDS
    body: Block | None = None


@frozen
class Pipeline(Stmt):
    name: str
    slots: Expr
    buffers: tuple[str, ...]
    producers: tuple[Place, ...]
    consumers: tuple[Place, ...]


@frozen
class Turn(Stmt):
    name: str
    words: Words


@frozen
class Role(Stmt):
    """`role name[instances]: count group words { body }`, such as `role math[2]: 1 warpgroup regs 232`."""

    name: str
    instances: Expr | None
    count: Expr
    group: str
    words: Words
    body: Block


@frozen
class Inline(Stmt):
    name: str
    params: tuple[str, ...]
    body: Block


@frozen
class For(Stmt):
    """`for i in lo .. hi`; over the items of a tile schedule `hi` is None, `lo` names it and `pattern` binds an item."""

    pattern: tuple[str, ...]
    lo: Expr
    hi: Expr | None
    words: Words
    body: Block


@frozen
class While(Stmt):
    test: Expr
    words: Words
    body: Block


@frozen
class Group(Stmt):
    """`group { .. }`: its asynchronous statements are one group. `queue`, which they have in common, is None until elaboration."""

    body: Block
    queue: str | None = field(default=None, compare=False, repr=False)


@frozen
class If(Stmt):
    test: Expr
    then: Block
    other: Block | None = None


@frozen
class Declare(Stmt):
    """`space name: type words, ...`: buffers, fragments, barriers."""

    space: str
    declarations: tuple[Declaration, ...]


@frozen
class Assign(Stmt):
    """`target = value`; `target` is a Name, a Tuple of names or an Index into a fragment."""

    target: Expr
    value: Expr


@frozen
class CallStmt(Stmt):
    """A call that stands alone: the use of an `inline`."""

    call: Call


@frozen
class Op(Stmt):
    """Every operation: `dotted.name operands [<- | += | = value] words [flag]`."""

    name: str
    operands: tuple[Expr, ...] = ()
    arrow: str | None = None
    value: Expr | None = None
    words: Words = NO_WORDS


# --- kernels ---------------------------------------------------------------------------------------------------


@frozen
class Param(Node):
    """`name: [in | out | inout | workspace] type`; a parameter without a mode is a scalar."""

    name: str
    mode: str | None
    declared: TypeExpr


@frozen
class Const(Node):
    bindings: tuple[Binding, ...]


@frozen
class Require(Node):
    exprs: tuple[Expr, ...]


@frozen
class Assume(Node):
    exprs: tuple[Expr, ...]


@frozen
class Target(Node):
    names: tuple[str, ...]


@frozen
class Cluster(Node):
    """`cluster m = 2 words`: CTAs of a cluster differ along axis `m`."""

    axis: Binding
    words: Words = NO_WORDS


Clause = Const | Require | Assume | Target | Cluster


@frozen
class Kernel(Node):
    name: str
    params: tuple[Param, ...]
    clauses: tuple[Clause, ...]
    body: Block

    def clause(self, kind: type) -> tuple:
        return tuple(c for c in self.clauses if isinstance(c, kind))

    @property
    def cluster(self) -> Cluster | None:
        return next(iter(self.clause(Cluster)), None)

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(n for c in self.clause(Target) for n in c.names)

    @property
    def roles(self) -> tuple[Role, ...]:
        return tuple(s for s in self.body if isinstance(s, Role))


@frozen
class Program(Node):
    """A text: `cake 1` or `cake 1 derived`, then kernels."""

    version: int
    derived: bool
    kernels: tuple[Kernel, ...]
