"""Rules: data that says what must hold of a kernel, read strictly, typed, and judged over its facts.

`find_packs` reads the packs that are there, `selected` takes a suite of them, `judge` gives the verdicts. A rule says *what*; how
order is decided stays with those who implement `Predicates`.
"""

from cake_core.rules.book import Rulebook, rulebook, selected
from cake_core.rules.engine import asking, judge
from cake_core.rules.packs import find_packs
from cake_core.rules.predicates import Answer, Given, Predicates, Standing
from cake_core.rules.schema import Pack, Rule
from cake_core.rules.verdict import Outcome, Verdict

#: What reads files of packs, imported by those who use it: the built-in packs are stored as they were read (`stored.py`).
READERS = {"load_pack": "packfile", "load_rule": "load"}

__all__ = [
    "Answer",
    "Given",
    "Outcome",
    "Pack",
    "Predicates",
    "Rule",
    "Rulebook",
    "Standing",
    "Verdict",
    "asking",
    "find_packs",
    "judge",
    "load_pack",
    "load_rule",
    "rulebook",
    "selected",
]


def __getattr__(name: str):
    if name not in READERS:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{READERS[name]}"), name)
