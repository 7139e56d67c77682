"""Typing of `assume`: what a kernel takes for granted of its data (S11).

A contract is a condition over parameters and elements of inputs, or one of the statements below about a whole input. It is kept,
printed, and recorded in the manifest; the runtime can check it on request, and nothing checks it otherwise.
"""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.elaborate.reach import holds
from cake_core.elaborate.typing import described, literal
from cake_core.ir.nodes import Assume, Bool, Call, Expr, Kernel, Name, Require
from cake_core.ir.types import BOOL, Level, Scalar, Tile, Unknown

#: Statements about an input: kinds of its elements, its rank (None: any), what it says.
CONTRACTS = {
    "monotone": (("int", "uint"), 1, "no element is less than the one before it"),
    "finite": (("float",), None, "no element is infinite or a NaN"),
}


#: `require`s and `assume`s of one kernel: what reads them compares them with one another.
MOST = 256


class Contracts:
    """Mixed into the elaborator. `in_contract`: elements of inputs are read by the host, as they stand."""

    def few_contracts(self, k: Kernel) -> None:
        """Raises CakeError where there are more than anything could be proved by."""
        written = [e for c in k.clauses if isinstance(c, Require | Assume) for e in c.exprs]
        if len(written) > MOST:
            raise fail(
                "type/too-many-contracts",
                f"kernel '{k.name}' has {len(written)} conditions in `require` and `assume`; at most {MOST} are read",
                written[MOST].span,
                fix="leave out those that others imply",
            )

    def _assumes(self, k: Kernel) -> tuple[Assume, ...]:
        out, written = [], []
        for clause in k.clause(Assume):
            exprs = []
            self.in_contract = True
            for e in clause.exprs:
                with self.sink.collecting(span=e.span):
                    self.stated_once(e, written, "assume")
                    exprs.append(self._assume(e))
                written.append(e)
            self.in_contract = False
            kept: list[Expr] = []
            for e in exprs:
                if e != Bool(True) and all(e not in c.exprs for c in out) and e not in kept:
                    kept.append(e)
            if kept:
                out.append(replace(clause, exprs=tuple(kept)))
        return tuple(out)

    def _assume(self, e: Expr) -> Expr:
        if isinstance(e, Call) and e.name in CONTRACTS:
            return self._about(e)
        found = self.condition(e, "'assume'")
        if holds(found, {}) is False:
            raise fail("type/require", "this `assume` can never hold", e.span)
        return found

    def stated_once(self, e: Expr, before: list[Expr], clause: str) -> None:
        """Raises CakeError for a condition that stands among those before it, as it is written."""
        if (other := next((x for x in before if x == e), None)) is not None:
            raise fail("type/repeated", f"this `{clause}` stands twice", e.span, related=self.at("the other one", other.span), fix="leave one out")

    def _about(self, e: Call) -> Expr:
        kinds, rank, what = CONTRACTS[e.name]
        if len(e.args) != 1 or not isinstance(e.args[0], Name):
            raise fail("type/arguments", f"'{e.name}' takes the name of an input", e.span, why=what)
        tensor = self.expr(e.args[0])
        if isinstance(tensor.type, Unknown):
            return literal(True, e)
        symbol = self.scope.find(tensor.id)
        t = tensor.type
        if not isinstance(t, Tile) or symbol.kind != "tensor" or symbol.node.mode != "in":
            raise fail(
                "type/operand",
                f"'{e.name}' takes an input, not {described(t)}",
                e.args[0].span,
                why="a contract is about what a kernel is given",
            )
        if t.elem.kind not in kinds or rank is not None and len(t.shape) != rank:
            dims = f" of {rank} dimension" if rank is not None else ""
            raise fail(
                "type/operand", f"'{e.name}' takes {' or '.join(kinds)} elements{dims}, '{tensor.id}' is {described(t)}", e.args[0].span
            )
        return replace(e, args=(tensor,), type=Scalar(BOOL, Level.CTA))
