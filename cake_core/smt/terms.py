"""Terms of integers and truth values, in one context.

A context keeps every term that was made in it until it goes, so equal terms are one address: `eq`, hashes and keys of tables cost nothing.
Nothing is asked after a call; z3 tells a failure to the context, and the next answer that a proof would rest on raises it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

from cake_core.smt.library import HANDLER, Library, library

#: Kinds of terms that the compiler looks for (`Z3_decl_kind` in z3_api.h).
EQ, ITE, NOT = 0x102, 0x104, 0x109
LE, GE, LT, GT, ADD, UMINUS, MUL, MOD = 0x202, 0x203, 0x204, 0x205, 0x206, 0x208, 0x209, 0x20D
_NUMERAL, _APP = 0, 1  # Z3_ast_kind
_STRING_SYMBOL, _SMTLIB2 = 1, 2  # Z3_symbol_kind, Z3_ast_print_mode


class SmtError(Exception):
    """z3 refused what it was given: a fault of the compiler."""


class Context:
    """Terms, and the solvers that they are asked in. Terms of two contexts never meet."""

    def __init__(self) -> None:
        self.z3: Library = library()
        config = self.z3.mk_config()
        self.handle: int = self.z3.mk_context(config)  # without counts of references: a term lives as long as the context
        self.z3.del_config(config)
        self.errors: list[str] = []
        self._handler = _handler(self.z3, self.errors)
        self.z3.set_error_handler(self.handle, self._handler)
        self.z3.set_ast_print_mode(self.handle, _SMTLIB2)
        self.int_sort: int = self.z3.mk_int_sort(self.handle)
        self.bool_sort: int = self.z3.mk_bool_sort(self.handle)
        # Terms know their context, and no context its terms but by address: the last of them to go takes it along.
        self._true: int = self.z3.mk_true(self.handle)
        self._false: int = self.z3.mk_false(self.handle)
        self._ints: dict[str, int] = {}
        self._bools: dict[str, int] = {}
        self._numbers: dict[int, int] = {}
        self._functions: dict[tuple[str, int], int] = {}
        self._decls: dict[int, tuple[int, str]] = {}
        self._free = self.head(self.int("?"))[0]  # which number stands for it differs by version

    def __del__(self) -> None:
        if handle := getattr(self, "handle", None):
            self.handle = 0  # solvers and models that go together with it ask for it
            self.z3.del_context(handle)

    def sound(self) -> None:
        """Raises SmtError where a call has failed since the context was made."""
        if self.errors:
            raise SmtError(self.errors[0])

    # --- making ----------------------------------------------------------------------------------------------------

    def int(self, name: str) -> Term:
        """The unknown integer of a name."""
        if (known := self._ints.get(name)) is None:
            known = self._ints[name] = self.z3.mk_const(self.handle, self._symbol(name), self.int_sort)
        return Term(known, self)

    def bool(self, name: str) -> Term:
        if (known := self._bools.get(name)) is None:
            known = self._bools[name] = self.z3.mk_const(self.handle, self._symbol(name), self.bool_sort)
        return Term(known, self)

    def number(self, value: int) -> Term:
        if (known := self._numbers.get(value)) is None:
            if -(2**63) <= value < 2**63:
                made = self.z3.mk_int64(self.handle, value, self.int_sort)
            else:
                made = self.z3.mk_numeral(self.handle, str(value).encode(), self.int_sort)
            known = self._numbers[value] = made
        return Term(known, self)

    @property
    def true(self) -> Term:
        return Term(self._true, self)

    @property
    def false(self) -> Term:
        return Term(self._false, self)

    def truth(self, value: bool) -> Term:
        return self.true if value else self.false

    def apply(self, name: str, args: Sequence[Term]) -> Term:
        """A function that nothing is known of, from integers to an integer, at `args`."""
        key = name, len(args)
        if (decl := self._functions.get(key)) is None:
            sorts = _array([self.int_sort] * len(args))
            decl = self._functions[key] = self.z3.mk_func_decl(self.handle, self._symbol(name), len(args), sorts, self.int_sort)
        return Term(self.z3.mk_app(self.handle, decl, len(args), _array([_term(self.true, a).ast for a in args])), self)

    def _symbol(self, name: str) -> int:
        return self.z3.mk_string_symbol(self.handle, name.encode())

    # --- looking ---------------------------------------------------------------------------------------------------

    def head(self, term: Term) -> tuple[int, str]:
        """What a term is made by: the kind of its outermost function, and its name."""
        decl = self.z3.get_app_decl(self.handle, term.ast)
        if (known := self._decls.get(decl)) is None:
            symbol = self.z3.get_decl_name(self.handle, decl)
            if self.z3.get_symbol_kind(self.handle, symbol) == _STRING_SYMBOL:
                name = self.z3.get_symbol_string(self.handle, symbol).decode()
            else:
                name = f"k!{self.z3.get_symbol_int(self.handle, symbol)}"
            known = self._decls[decl] = self.z3.get_decl_kind(self.handle, decl), name
        return known


def _handler(z3: Library, errors: list[str]):
    """What z3 calls when a call failed. It knows the list alone, so that it does not keep the context that it belongs to."""
    return HANDLER(lambda handle, code: errors.append((z3.get_error_msg(handle, code) or b"").decode(errors="replace")))


_current: Context | None = None


def context() -> Context:
    """The context that terms without operands are made in."""
    return _current if _current is not None else use(Context())


def use(c: Context) -> Context:
    """Make `c` the one that terms without operands are made in."""
    global _current
    _current = c
    return c


class Term:
    """An integer or a truth value. Operators make terms, `==` and `!=` too; Python's numbers and truth values stand for theirs."""

    __slots__ = ("ast", "ctx")

    def __init__(self, ast: int | None, ctx: Context) -> None:
        if not ast:
            raise SmtError(ctx.errors[0] if ctx.errors else "no term came of it")
        self.ast = ast
        self.ctx = ctx

    def __hash__(self) -> int:
        return hash(self.ast)

    def __bool__(self) -> bool:
        raise TypeError("a term is neither true nor false; `eq` compares two, `is_true` looks at one")

    def __repr__(self) -> str:
        return self.sexpr()

    def eq(self, other: Term) -> bool:
        """Whether both are the same term."""
        return self.ast == other.ast

    # --- what it is ------------------------------------------------------------------------------------------------

    @property
    def kind(self) -> int:
        return self.ctx.head(self)[0]

    @property
    def name(self) -> str:
        """Of an unknown, or of the function that is outermost."""
        return self.ctx.head(self)[1]

    @property
    def is_free(self) -> bool:
        """Whether it is an unknown, or a function that nothing is known of."""
        return self.ctx.head(self)[0] == self.ctx._free

    @property
    def is_int(self) -> bool:
        return self.ctx.z3.get_sort(self.ctx.handle, self.ast) == self.ctx.int_sort

    @property
    def value(self) -> int | None:
        """Of a number; None: it is none."""
        c = self.ctx
        if c.z3.get_ast_kind(c.handle, self.ast) != _NUMERAL:
            return None
        found = ctypes.c_int64()
        if c.z3.get_numeral_int64(c.handle, self.ast, ctypes.byref(found)):
            return found.value
        return int(c.z3.get_numeral_string(c.handle, self.ast))

    @property
    def args(self) -> tuple[Term, ...]:
        c = self.ctx
        if c.z3.get_ast_kind(c.handle, self.ast) != _APP:
            return ()
        get, handle, ast = c.z3.get_app_arg, c.handle, self.ast
        return tuple(Term(get(handle, ast, n), c) for n in range(c.z3.get_app_num_args(handle, ast)))

    def sexpr(self) -> str:
        return self.ctx.z3.ast_to_string(self.ctx.handle, self.ast).decode()

    # --- arithmetic ------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Term:
        return self._many("mk_add", other)

    def __radd__(self, other: Any) -> Term:
        return _term(self, other) + self

    def __sub__(self, other: Any) -> Term:
        return self._many("mk_sub", other)

    def __rsub__(self, other: Any) -> Term:
        return _term(self, other) - self

    def __mul__(self, other: Any) -> Term:
        return self._many("mk_mul", other)

    def __rmul__(self, other: Any) -> Term:
        return _term(self, other) * self

    def __truediv__(self, other: Any) -> Term:
        """z3's quotient of integers: the floor, for a positive divisor."""
        return self._two("mk_div", other)

    def __mod__(self, other: Any) -> Term:
        return self._two("mk_mod", other)

    def __neg__(self) -> Term:
        return Term(self.ctx.z3.mk_unary_minus(self.ctx.handle, self.ast), self.ctx)

    def __le__(self, other: Any) -> Term:
        return self._two("mk_le", other)

    def __lt__(self, other: Any) -> Term:
        return self._two("mk_lt", other)

    def __ge__(self, other: Any) -> Term:
        return self._two("mk_ge", other)

    def __gt__(self, other: Any) -> Term:
        return self._two("mk_gt", other)

    def __eq__(self, other: Any) -> Term:  # type: ignore[override]
        return self._two("mk_eq", other)

    def __ne__(self, other: Any) -> Term:  # type: ignore[override]
        return self._many("mk_distinct", other)

    def _two(self, make: str, other: Any) -> Term:
        c = self.ctx
        return Term(getattr(c.z3, make)(c.handle, self.ast, _term(self, other).ast), c)

    def _many(self, make: str, other: Any) -> Term:
        c = self.ctx
        return Term(getattr(c.z3, make)(c.handle, 2, _PAIR(self.ast, _term(self, other).ast)), c)


_PAIR = ctypes.c_void_p * 2


def _array(handles: Sequence[int]):
    return (ctypes.c_void_p * len(handles))(*handles)


def _term(like: Term, other: Any) -> Term:
    """`other` as a term beside `like`."""
    if isinstance(other, Term):
        if other.ctx is not like.ctx:
            raise SmtError("terms of two contexts meet")
        return other
    if isinstance(other, bool):
        return like.ctx.truth(other)
    if isinstance(other, int):
        return like.ctx.number(other)
    raise TypeError(f"'{other!r}' is no term")


class Constant(Term):
    """A number or a truth value that is a term of whichever context is at hand."""

    __slots__ = ("_made",)

    def __init__(self, value: int | bool) -> None:
        self._made = (lambda c: c.truth(value)) if isinstance(value, bool) else (lambda c: c.number(value))

    @property
    def ctx(self) -> Context:  # type: ignore[override]
        return context()

    @property
    def ast(self) -> int:  # type: ignore[override]
        return self._made(context()).ast


# --- making ----------------------------------------------------------------------------------------------------------


def Int(name: str) -> Term:
    return context().int(name)


def Bool(name: str) -> Term:
    return context().bool(name)


def IntVal(value: int) -> Term:
    return context().number(value)


def BoolVal(value: bool) -> Term:
    return context().truth(value)


def apply(name: str, args: Sequence[Term]) -> Term:
    """See `Context.apply`."""
    return context().apply(name, args)


def Not(a: Term) -> Term:
    return Term(a.ctx.z3.mk_not(a.ctx.handle, a.ast), a.ctx)


def Implies(a: Term, b: Term) -> Term:
    return Term(a.ctx.z3.mk_implies(a.ctx.handle, a.ast, _term(a, b).ast), a.ctx)


def If(test: Term, a: Term, b: Term) -> Term:
    return Term(test.ctx.z3.mk_ite(test.ctx.handle, test.ast, _term(test, a).ast, _term(test, b).ast), test.ctx)


def And(*terms: Term | Iterable[Term]) -> Term:
    return _all("mk_and", terms)


def Or(*terms: Term | Iterable[Term]) -> Term:
    return _all("mk_or", terms)


def Sum(terms: Sequence[Term]) -> Term:
    """Of one term at least."""
    c = terms[0].ctx
    return Term(c.z3.mk_add(c.handle, len(terms), _array([t.ast for t in terms])), c)


def one_of(terms: Sequence[Term]) -> Term:
    """That just one of some truth values is true."""
    c = terms[0].ctx if terms else context()
    ones = (ctypes.c_int * len(terms))(*[1] * len(terms))
    return Term(c.z3.mk_pbeq(c.handle, len(terms), _array([t.ast for t in terms]), ones, 1), c)


def _all(make: str, terms: tuple) -> Term:
    parts = terms if terms and isinstance(terms[0], Term) else [t for part in terms for t in part]
    c = parts[0].ctx if parts else context()
    return Term(getattr(c.z3, make)(c.handle, len(parts), _array([_term(parts[0], t).ast for t in parts])), c)


# --- looking, changing -----------------------------------------------------------------------------------------------


def is_true(t: Term) -> bool:
    return t.ast == t.ctx._true


def is_false(t: Term) -> bool:
    return t.ast == t.ctx._false


def simplify(t: Term, *, sums: bool = False) -> Term:
    """z3's normal form. `sums`: products of sums are multiplied out."""
    c = t.ctx
    if not sums:
        return Term(c.z3.simplify(c.handle, t.ast), c)
    params = c.z3.mk_params(c.handle)
    c.z3.params_inc_ref(c.handle, params)
    c.z3.params_set_bool(c.handle, params, c.z3.mk_string_symbol(c.handle, b"som"), True)
    return Term(c.z3.simplify_ex(c.handle, t.ast, params), c)


def substitute(t: Term, *pairs: tuple[Term, Term]) -> Term:
    """`t` with the second of each pair for the first, all at once."""
    c = t.ctx
    old, new = _array([_term(t, a).ast for a, _ in pairs]), _array([_term(t, b).ast for _, b in pairs])
    return Term(c.z3.substitute(c.handle, t.ast, len(pairs), old, new), c)
