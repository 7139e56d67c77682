"""Random nodes: every class of `cake_core.ir.nodes`, as the parser could have built it."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from cake_core.ir import nodes as n
from cake_core.syntax import reserved_words

PLAIN = ["a", "b", "s", "math", "out", "cluster", "inout", "acc", "T", "x_1", "cake", "derived", "e5", "f32"]
name = st.sampled_from(PLAIN) | st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True).filter(lambda t: t not in reserved_words())
# Behind a point reserved words are names.
dotted = st.lists(name, min_size=1, max_size=3).map(".".join) | name.map(lambda t: t + ".group")

floats = st.floats(allow_nan=False, width=64) | st.just(math.inf) | st.just(-math.inf)
atoms = st.one_of(
    st.integers(-(2**63), 2**64 - 1).map(n.Int),
    st.integers(0, 300).map(n.Int),
    floats.map(n.Float),
    st.booleans().map(n.Bool),
    dotted.map(n.Name),
)


def _compound(inner: st.SearchStrategy) -> st.SearchStrategy:
    option = st.builds(n.Option, name, inner, st.booleans())
    index = inner | st.builds(n.Slice, inner, inner) | st.just(n.All())
    indices = st.lists(index, min_size=1, max_size=3).map(tuple)
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    binary = st.sampled_from("or and == != <= >= < > + - * / % @".split())
    not_a_name = inner.filter(lambda e: not isinstance(e, n.Name))
    return st.one_of(
        st.builds(n.Unary, st.sampled_from(["-", "+", "not"]), inner),
        st.builds(n.Binary, binary, inner, inner),
        st.builds(n.Binary, binary, inner, inner),
        st.builds(n.Cond, inner, inner, inner),
        st.builds(n.Index, inner, indices),
        st.builds(n.Attr, not_a_name, name),
        st.builds(n.Call, inner, st.lists(inner | option, max_size=3).map(tuple)),
        st.builds(n.Tuple, some),
    )


expr = st.recursive(atoms, _compound, max_leaves=12)
small = st.recursive(atoms, _compound, max_leaves=3)
exprs = st.lists(small, min_size=1, max_size=3).map(tuple)
words = st.builds(n.Words, st.lists(st.builds(n.Word, name, small), max_size=2).map(tuple), st.none() | name)
binding = st.builds(n.Binding, name, expr)
bindings = st.lists(binding, min_size=1, max_size=3).map(tuple)
names = st.lists(name, min_size=1, max_size=3).map(tuple)
type_expr = st.builds(n.TypeExpr, dotted, st.lists(exprs, max_size=3).map(tuple), st.just(()) | exprs)
places = st.lists(st.builds(n.Place, name, words), min_size=1, max_size=2).map(tuple)
declarations = st.lists(st.builds(n.Declaration, name, type_expr, words), min_size=1, max_size=2).map(tuple)
target = st.one_of(name.map(n.Name), names.map(lambda t: n.Tuple(tuple(map(n.Name, t)))), st.builds(n.Index, name.map(n.Name), exprs))
label = st.none() | name
call = st.builds(n.Call, dotted.map(n.Name), st.lists(small, max_size=3).map(tuple))


def _op(name, operands, arrow, value, words, label):
    if not operands:
        return n.Op(name, label=label)
    return n.Op(name, operands, arrow, value if arrow else None, words, label=label)


simple = st.one_of(
    st.builds(n.Let, bindings, label=label),
    st.builds(n.Var, bindings, label=label),
    st.builds(n.Tiles, name, expr, words, st.none(), label=label),
    st.builds(n.Pipeline, name, small, names, places, places, label=label),
    st.builds(n.Turn, name, words, label=label),
    st.builds(n.Declare, dotted, declarations, label=label),
    st.builds(n.Assign, target, expr, label=label),
    st.builds(n.CallStmt, call, label=label),
    st.builds(_op, dotted, st.just(()) | exprs, st.sampled_from([None, "<-", "+=", "="]), small, words, label),
)


def _nested(inner: st.SearchStrategy) -> st.SearchStrategy:
    block = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        st.builds(n.Tiles, name, small, words, block, label=label),
        st.builds(n.Role, name, st.none() | small, small, name, words, block, label=label),
        st.builds(n.Inline, name, st.just(()) | names, block, label=label),
        st.builds(n.For, names, small, st.none() | small, words, block, label=label),
        st.builds(n.While, small, words, block, label=label),
        st.builds(n.Group, block, label=label),
        st.builds(n.If, small, block, st.none() | block, label=label),
    )


stmt = st.recursive(simple, _nested, max_leaves=6)
param = st.builds(n.Param, name, st.sampled_from([None, "in", "out", "inout"]), type_expr)
clause = st.one_of(
    st.builds(n.Const, bindings),
    st.builds(n.Require, exprs),
    st.builds(n.Assume, exprs),
    st.builds(n.Target, names),
    st.builds(n.Cluster, binding, words),
)
kernel = st.builds(
    n.Kernel, name, st.lists(param, max_size=8).map(tuple), st.lists(clause, max_size=3).map(tuple), st.lists(stmt, max_size=5).map(tuple)
)
program = st.builds(n.Program, st.just(1), st.booleans(), st.lists(kernel, min_size=1, max_size=2).map(tuple))
