"""Primitives: the kinds that a plugin can add (`kinds`), and what the core offers them (`contexts`)."""

from cake_core.primitive.contexts import CheckContext, DeriveContext, Distribution, HandOff, LowerContext
from cake_core.primitive.elements import Elements
from cake_core.primitive.kinds import (
    Demand,
    Form,
    Function,
    Layout,
    Operation,
    Parameter,
    PipelinePlan,
    Primitive,
    Protocol,
    RoleWord,
    Signal,
    Space,
    ThreadGroup,
    TurnPlan,
    TurnProtocol,
    WordSpec,
)

__all__ = [
    "CheckContext",
    "Demand",
    "DeriveContext",
    "Distribution",
    "Elements",
    "Form",
    "Function",
    "HandOff",
    "Layout",
    "LowerContext",
    "Operation",
    "Parameter",
    "PipelinePlan",
    "Primitive",
    "Protocol",
    "RoleWord",
    "Signal",
    "Space",
    "ThreadGroup",
    "TurnPlan",
    "TurnProtocol",
    "WordSpec",
]
