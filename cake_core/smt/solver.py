"""Asking: a solver of one logic over the terms of one context."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from enum import Enum

from cake_core.smt.spent import counting
from cake_core.smt.terms import Context, SmtError, Term, _array, _term


class Found(Enum):
    """What `check` says."""

    UNSAT = -1
    UNKNOWN = 0
    SAT = 1


SAT, UNSAT, UNKNOWN = Found.SAT, Found.UNSAT, Found.UNKNOWN


class Solver:
    """`logic`: by its SMT-LIB name, or `tactics` as z3 names them, one after the other. Options as z3 names them, such as `rlimit`: steps of one
    answer, the same on every machine.

    z3's own strategies for a logic give some of their parts so many milliseconds, so what they answer depends on how busy a machine is. They
    are used as long as no scope was opened: so one is.
    """

    def __init__(self, logic: str, ctx: Context, *, tactics: Sequence[str] = (), **options: int) -> None:
        self.ctx, self._z3, self._c = ctx, ctx.z3, ctx.handle
        if tactics:
            self._handle = self._z3.mk_solver_from_tactic(self._c, self._chain(tactics))
        else:
            self._handle = self._z3.mk_solver_for_logic(self._c, self._z3.mk_string_symbol(self._c, logic.encode()))
        if not self._handle:
            raise SmtError(f"no solver for {logic}")
        self._z3.solver_inc_ref(self._c, self._handle)
        self.set(**options)
        if not tactics:
            self.push()

    def _chain(self, tactics: Sequence[str]) -> int:
        """Tactics one after the other; they live as long as the context."""
        whole = 0
        for name in tactics:
            one = self._z3.mk_tactic(self._c, name.encode())
            self.ctx.sound()
            self._z3.tactic_inc_ref(self._c, one)
            if whole:
                one = self._z3.tactic_and_then(self._c, whole, one)
                self._z3.tactic_inc_ref(self._c, one)
            whole = one
        return whole

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and self.ctx.handle:
            self._z3.solver_dec_ref(self._c, self._handle)

    def set(self, **options: int) -> None:
        params = self._z3.mk_params(self._c)
        self._z3.params_inc_ref(self._c, params)
        for name, value in options.items():
            self._z3.params_set_uint(self._c, params, self._z3.mk_string_symbol(self._c, name.encode()), value)
        self._z3.solver_set_params(self._c, self._handle, params)

    def push(self) -> None:
        self._z3.solver_push(self._c, self._handle)

    def pop(self) -> None:
        self._z3.solver_pop(self._c, self._handle, 1)

    def add(self, *claims: Term) -> None:
        put, c, s = self._z3.solver_assert, self._c, self._handle
        for claim in claims:
            if claim.ctx is not self.ctx:
                raise SmtError("a claim of another context")
            put(c, s, claim.ast)

    def read(self, text: str) -> None:
        """Add what stands in a text of SMT-LIB 2."""
        self._z3.solver_from_string(self._c, self._handle, text.encode())

    def check(self, *given: Term) -> Found:
        """Whether all that was added, and `given`, can hold. Raises SmtError where z3 refused some of it, and KeyboardInterrupt, when there is
        an answer, for what came from the keyboard meanwhile."""
        spent = counting()
        before = self.steps if spent is not None else 0
        found = self._z3.solver_check_assumptions(self._c, self._handle, len(given), _array([_term(self.ctx.true, g).ast for g in given]))
        self.ctx.sound()
        if spent is not None:
            spent.add(self.steps - before)
        return Found(found)

    def model(self) -> Model:
        return Model(self._z3.solver_get_model(self._c, self._handle), self.ctx)

    @property
    def reason(self) -> str:
        """Why the last answer was unknown."""
        return self._z3.solver_get_reason_unknown(self._c, self._handle).decode(errors="replace")

    @property
    def assertions(self) -> list[Term]:
        z3, c = self._z3, self._c
        vector = z3.solver_get_assertions(c, self._handle)
        z3.ast_vector_inc_ref(c, vector)
        out = [Term(z3.ast_vector_get(c, vector, n), self.ctx) for n in range(z3.ast_vector_size(c, vector))]
        z3.ast_vector_dec_ref(c, vector)
        return out

    @property
    def steps(self) -> int:
        """How many the context's solvers have made in all (z3's `rlimit count`)."""
        z3, c = self._z3, self._c
        stats = z3.solver_get_statistics(c, self._handle)
        z3.stats_inc_ref(c, stats)
        keys = {z3.stats_get_key(c, stats, n): n for n in range(z3.stats_size(c, stats))}
        steps = z3.stats_get_uint_value(c, stats, keys[b"rlimit count"]) if b"rlimit count" in keys else 0
        z3.stats_dec_ref(c, stats)
        return steps


class Model:
    """Values that keep all that a solver was asked."""

    def __init__(self, handle: int, ctx: Context) -> None:
        ctx.sound()
        self.ctx, self._z3, self._c, self._handle = ctx, ctx.z3, ctx.handle, handle
        self._z3.model_inc_ref(self._c, handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and self.ctx.handle:
            self._z3.model_dec_ref(self._c, self._handle)

    def eval(self, term: Term, complete: bool = False) -> Term:
        """The value of a term; `complete`: of what nothing depends on too."""
        if term.ctx is not self.ctx:
            raise SmtError("a term of another context")
        out = ctypes.c_void_p()
        self._z3.model_eval(self._c, self._handle, term.ast, complete, ctypes.byref(out))
        return Term(out.value, self.ctx)

    def number(self, term: Term) -> int:
        """The value of an integer, whatever depends on it."""
        found = self.eval(term, True).value
        if found is None:
            raise SmtError(f"no number: {term}")
        return found

    def holds(self, term: Term, complete: bool = False) -> bool:
        """Whether a condition is true."""
        return self.eval(term, complete).ast == self.ctx.true.ast
