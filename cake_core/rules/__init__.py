"""Rules: data that says what must hold of a kernel, read strictly, typed, and judged over its facts.

`find_packs` reads the packs that are there, `selected` takes a suite of them, `judge` gives the verdicts. A rule says *what*; how
order is decided stays with those who implement `Predicates`.
"""

from cake_core.rules.book import Rulebook, rulebook, selected
from cake_core.rules.engine import asking, judge
from cake_core.rules.load import load_rule
from cake_core.rules.packfile import load_pack
from cake_core.rules.packs import find_packs
from cake_core.rules.predicates import Answer, Given, Predicates, Standing
from cake_core.rules.schema import Pack, Rule
from cake_core.rules.verdict import Outcome, Verdict

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
