"""Primitives: the kinds that a plugin can add (`kinds`), and what the core offers them (`contexts`)."""

from cake_core.primitive.contexts import CheckContext, DeriveContext, Distribution, HandOff, LowerContext
from cake_core.primitive.counters import Counter
from cake_core.primitive.elements import Elements
from cake_core.primitive.kinds import (
    Demand,
    Form,
    FragmentType,
    Function,
    Layout,
    Operation,
    Parameter,
    PipelinePlan,
    Primitive,
    Protocol,
    Reduction,
    RoleWord,
    Signal,
    Space,
    ThreadGroup,
    TurnPlan,
    TurnProtocol,
    WordSpec,
)
from cake_core.primitive.simulated import SimulateContext
from cake_core.primitive.special import ORDINARY, Special, Specials, SpecialValues

__all__ = [
    "ORDINARY",
    "CheckContext",
    "Counter",
    "Demand",
    "DeriveContext",
    "Distribution",
    "Elements",
    "Form",
    "FragmentType",
    "Function",
    "HandOff",
    "Layout",
    "LowerContext",
    "Operation",
    "Parameter",
    "PipelinePlan",
    "Primitive",
    "Protocol",
    "Reduction",
    "RoleWord",
    "Signal",
    "SimulateContext",
    "Space",
    "Special",
    "SpecialValues",
    "Specials",
    "ThreadGroup",
    "TurnPlan",
    "TurnProtocol",
    "WordSpec",
]
