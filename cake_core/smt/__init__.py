"""Linear integer arithmetic in z3, without z3's own Python layer.

library.py    the C interface
terms.py      contexts and terms
solver.py     asking
spent.py      what it took
"""

from cake_core.smt.library import version
from cake_core.smt.solver import SAT, UNKNOWN, UNSAT, Found, Model, Solver
from cake_core.smt.spent import Spent, spending
from cake_core.smt.terms import (
    ADD,
    EQ,
    GE,
    GT,
    ITE,
    LE,
    LT,
    MOD,
    MUL,
    NOT,
    UMINUS,
    And,
    Bool,
    BoolVal,
    Constant,
    Context,
    If,
    Implies,
    Int,
    IntVal,
    Not,
    Or,
    SmtError,
    Sum,
    Term,
    apply,
    context,
    is_false,
    is_true,
    one_of,
    simplify,
    substitute,
    use,
)

__all__ = [
    "ADD", "EQ", "GE", "GT", "ITE", "LE", "LT", "MOD", "MUL", "NOT", "SAT", "UMINUS", "UNKNOWN", "UNSAT",
    "And", "Bool", "BoolVal", "Constant", "Context", "Found", "If", "Implies", "Int", "IntVal", "Model", "Not", "Or", "SmtError", "Solver", "Spent", "Sum", "Term",
    "apply", "context", "is_false", "is_true", "one_of", "simplify", "spending", "substitute", "use", "version",
]  # fmt: skip
