"""Prints docs/facts.md: the relations that facts are written in.

    python docs/facts.py > docs/facts.md

A test compares the two, so the page names every relation and column.
"""

from __future__ import annotations

from cake_core.facts import SCHEMA
from cake_core.facts.listing import markdown

HEAD = f"""# Facts

What the proof knows of a kernel, as rows of relations. `cake facts FILE` prints them, `cake facts FILE --json` for a program. Rules match
on these rows and nothing else, so this page is the schema that a rule is written against: version {SCHEMA}. A relation or a column may be added
within a version; one that goes or changes its meaning raises it. The page is written by docs/facts.py.

Facts are read off the derived form and the effects that primitives declare, so a new instruction has them as soon as it says what it
does. A row stands for a statement of the text, not for each time that it runs. Text columns such as `op`, `queue`, `engine`, `kind` are
open: plugins bring words of their own. An expression is over the kernel's integer parameters, `cluster.id`, `cluster.count`, the name of
the cluster's axis, `ROLE.i`, `warp`, indices of the loops around, and variables of the role, which the rows of `assign` give values.

## Relations
"""


def page() -> str:
    return f"{HEAD}\n{markdown()}"


if __name__ == "__main__":
    print(page(), end="")
