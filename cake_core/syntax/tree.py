"""Productions to nodes: one small function a production of `cake.lark`, called by the parser as it reduces."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from cake_core.diagnostics.model import Diagnostic, Sink
from cake_core.ir import nodes as n
from cake_core.source import Span

if TYPE_CHECKING:
    from cake_core.syntax.tokens import Token

#: Deepest nesting of operators and postfixes in one expression (walks over the tree are recursive).
MAX_DEPTH = 100
MAX_CHAIN = 64
MAX_INT = 2**64 - 1
MIN_INT = -(2**63)

MODES = ("in", "out", "inout", "workspace")


class TooDeep(Exception):
    """The finding is in the sink; the run ends."""


class Tree:
    """`build[production](kids, span)` is a node, or a tuple of nodes, or a string, for one reduced production."""

    def __init__(self, file: str, tokens: list[Token], sink: Sink):
        self.file = file
        self.tokens = tokens
        self.sink = sink
        self.chains: dict[int, int] = {}  # `else if`s behind an `if` that is not yet part of another
        self.depths: dict[int, tuple[int, n.Expr]] = {}
        self.build = {name[3:].rstrip("_"): getattr(self, name) for name in dir(self) if name.startswith("on_")}

    def error(self, code: str, message: str, span: Span, **details) -> None:
        self.sink.add(Diagnostic(f"syntax/{code}", message, span, **details))

    def deep(self, node: n.Expr, *kids: n.Expr) -> n.Expr:
        """`node`, with its depth remembered. Brackets are limited by the lexer; this limits chains such as `a + a + ...`."""
        depth = 1 + max((self.depths[id(k)][0] for k in kids if id(k) in self.depths), default=0)
        if depth > MAX_DEPTH:
            self.error("nesting", f"an expression nests more than {MAX_DEPTH} deep", node.span, fix="give a part of it a name with 'let'")
            raise TooDeep
        self.depths[id(node)] = depth, node  # holding the node keeps its id from being given to another
        return node

    # --- kernels -------------------------------------------------------------------------------------------------

    def on_start(self, k, span):
        _, version, derived, *kernels = k
        return n.Program(int(version.text), derived is not None, tuple(kernels), span=span)

    def on_kernel(self, k, span):
        name, params, *clauses, body = k
        return n.Kernel(name.text, params or (), tuple(clauses), body, span=span)

    def on_params(self, k, span):
        return tuple(k)

    def on_param(self, k, span):
        name, mode, declared = k
        return n.Param(name.text, mode, declared, span=span)

    def on_mode(self, k, span):
        mode = k[0].text
        if mode not in MODES:
            fix = "write 'in', 'out', 'inout' or 'workspace'; where a new parameter begins, put a ',' before it"
            self.error("unexpected-token", f"'{mode}' is no mode of a parameter", span, fix=fix)
        return mode

    def on_const(self, k, span):
        return n.Const(k[0], span=span)

    def on_require(self, k, span):
        return n.Require(k[0], span=span)

    def on_assume(self, k, span):
        return n.Assume(k[0], span=span)

    def on_target(self, k, span):
        return n.Target(k[0], span=span)

    def on_cluster(self, k, span):
        word, axis, words = k
        if word.text != "cluster":
            self.error("unexpected-token", f"'{word.text}' begins no clause", word.span(self.file), fix=CLAUSES)
        return n.Cluster(axis, words, span=span)

    # --- statements ----------------------------------------------------------------------------------------------

    def on_block(self, k, span):
        return tuple(k)

    def on_labelled(self, k, span):
        label, stmt = k
        return replace(stmt, label=label.text[1:], span=span)

    def on_let(self, k, span):
        return n.Let(k[0], span=span)

    def on_var(self, k, span):
        return n.Var(k[0], span=span)

    def on_tiles(self, k, span):
        name, schedule, words, body = k
        return n.Tiles(name.text, schedule, words, body, span=span)

    def on_pipeline(self, k, span):
        name, slots, buffers, producers, consumers = k
        return n.Pipeline(name.text, slots, buffers, producers, consumers, span=span)

    def on_turn(self, k, span):
        return n.Turn(k[0].text, k[1], span=span)

    def on_role(self, k, span):
        name, instances, count, group, words, body = k
        return n.Role(name.text, instances, count, group.text, words, body, span=span)

    def on_inline(self, k, span):
        name, params, body = k
        return n.Inline(name.text, params or (), body, span=span)

    def on_for(self, k, span):
        pattern, lo, hi, words, body = k
        return n.For(pattern, lo, hi, words, body, span=span)

    def on_while(self, k, span):
        return n.While(*k, span=span)

    def on_group(self, k, span):
        return n.Group(k[0], span=span)

    def on_if(self, k, span):
        test, then, other = k
        if isinstance(other, n.If):
            chain = self.chains.pop(id(other), 0) + 1
            if chain > MAX_CHAIN:
                self.error("nesting", f"a chain of more than {MAX_CHAIN} 'else if'", span)
                raise TooDeep
            stmt = n.If(test, then, (other,), span=span)
            self.chains[id(stmt)] = chain
            return stmt
        return n.If(test, then, other, span=span)

    def on_declare(self, k, span):
        space, *declarations = k
        return n.Declare(space, tuple(declarations), span=span)

    def on_assign(self, k, span):
        target, value = k
        parts = target.items if isinstance(target, n.Tuple) else (target,)
        for part in parts:
            if not isinstance(part, n.Name | n.Index):
                self.error("not-assignable", "only names and indices can be assigned to", part.span, fix=ASSIGNABLE)
        return n.Assign(target, value, span=span)

    def on_call_stmt(self, k, span):
        if not isinstance(k[0], n.Call):
            self.error("not-a-statement", "an expression alone does nothing", span, fix="name an operation before it, or assign it")
        return n.CallStmt(k[0], span=span)

    def on_bare(self, k, span):
        return n.Op(k[0], span=span)

    def on_op(self, k, span):
        name, operands, arrow, value, words = k
        return n.Op(name, operands, arrow, value, words, span=span)

    # --- parts of statements -------------------------------------------------------------------------------------

    def on_pattern(self, k, span):
        return k[0] if isinstance(k[0], tuple) else (k[0].text,)

    def on_decl(self, k, span):
        name, declared, words = k
        return n.Declaration(name.text, declared, words, span=span)

    def on_type(self, k, span):
        name, args, *groups = k
        return n.TypeExpr(name, tuple(groups), args or (), span=span)

    def on_dims(self, k, span):
        return k[0]

    def on_places(self, k, span):
        return tuple(k)

    def on_place(self, k, span):
        return n.Place(k[0].text, k[1], span=span)

    def on_arrow(self, k, span):
        return k[0].text

    def on_words(self, k, span):
        *items, flag = k
        if not items and flag is None:
            return n.NO_WORDS
        return n.Words(tuple(items), flag and flag.text, span=span)

    def on_word(self, k, span):
        return n.Word(k[0].text, k[1], span=span)

    def on_binds(self, k, span):
        return tuple(k)

    def on_bind(self, k, span):
        return n.Binding(k[0].text, k[1], span=span)

    def on_names(self, k, span):
        return tuple(t.text for t in k)

    def on_exprs(self, k, span):
        return tuple(k)

    on_items = on_args = on_exprs

    # --- expressions ---------------------------------------------------------------------------------------------

    def on_cond(self, k, span):
        return self.deep(n.Cond(*k, span=span), *k)

    def on_binary(self, k, span):
        left, op, right = k
        return self.deep(n.Binary(op.text, left, right, span=span), left, right)

    def on_unary(self, k, span):
        op, operand = k
        literal = op.text == "-" and self.tokens[op.index + 1].type in ("INT", "FLOAT", "INF")
        match operand:
            # `-1` is a literal, `-(1)` a negation: so every node has a text of its own.
            case n.Int(value) if literal:
                if -value < MIN_INT:
                    self.error("number", f"'-{value}' is less than -2^63", span)
                return n.Int(-value, span=span)
            case n.Float(value) if literal:
                return n.Float(-value, span=span)
        return self.deep(n.Unary(op.text, operand, span=span), operand)

    def on_name(self, k, span):
        return n.Name(k[0], span=span)

    def on_index(self, k, span):
        base, *indices = k
        return self.deep(n.Index(base, tuple(indices), span=span), *k)

    def on_call(self, k, span):
        function, args = k
        return self.deep(n.Call(function, args or (), span=span), function, *(args or ()))

    def on_attr(self, k, span):
        base, name = k
        if isinstance(base, n.Name):  # `(a).b` is `a.b`
            return n.Name(f"{base.id}.{name.text}", span=span)
        return self.deep(n.Attr(base, name.text, span=span), base)

    def on_paren(self, k, span):
        return k[0]

    def on_single(self, k, span):
        return self.deep(n.Tuple(tuple(k), span=span), *k)

    on_tuple = on_single

    def on_int(self, k, span):
        text = k[0].text.lstrip("0") or "0"
        # Digits are counted first: Python refuses to convert a number of many thousand digits.
        value = int(text) if len(text) <= 20 else MAX_INT + 1
        if value > MAX_INT:
            self.error("number", "an integer of more than 64 bits", span, fix="the largest is 18446744073709551615")
            value = 0
        return n.Int(value, span=span)

    def on_float(self, k, span):
        value = float(k[0].text)
        if math.isinf(value):
            self.error("number", "a number beyond the range of a float", span, fix="write 'inf' for infinity")
        return n.Float(value, span=span)

    def on_inf(self, k, span):
        return n.Float(math.inf, span=span)

    def on_true(self, k, span):
        return n.Bool(True, span=span)

    def on_false(self, k, span):
        return n.Bool(False, span=span)

    def on_dotted(self, k, span):
        return ".".join([t.text for t in k])

    def on_option(self, k, span):
        return self.deep(n.Option(k[0].text, k[1], span=span), k[1])

    def on_dim(self, k, span):
        return self.deep(n.Option(k[0].text, k[1], is_dim=True, span=span), k[1])

    def on_slice(self, k, span):
        return self.deep(n.Slice(*k, span=span), *k)

    def on_all(self, k, span):
        return n.All(span=span)


CLAUSES = "the clauses are 'const', 'require', 'assume', 'target' and 'cluster'"
ASSIGNABLE = "assign to a name, to a tuple of names or to an index of a fragment"
