"""What an expression of a rule can be: the sorts, and which fit together."""

from __future__ import annotations

from cake_core.facts.relations import BOOL, EXPR, INT, RELATIONS, TEXT, Column
from cake_core.frozen import frozen


@frozen
class Sort:
    """`kind`: "int", "bool", "text", "expr" (an integer or condition over the kernel's names), "fact", "set", "none".
    `relation`: of a fact. `of`: of a set. `words`: all that a text can be, if they are few."""

    kind: str
    relation: str | None = None
    of: Sort | None = None
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.kind:
            case "fact":
                return f"a fact of '{self.relation}'"
            case "set":
                return f"a set of {self.of}" if self.of else "an empty set"
        return {"int": "an integer", "bool": "a condition", "text": "a text", "expr": "an expression of the kernel", "none": "none"}[self.kind]


INTEGER = Sort(INT)
CONDITION = Sort(BOOL)
WORD = Sort(TEXT)
TERM = Sort(EXPR)
NOTHING = Sort("none")


def fact(relation: str) -> Sort:
    return Sort("fact", relation)


def set_of(sort: Sort | None) -> Sort:
    return Sort("set", of=sort)


def of_column(column: Column) -> Sort:
    plain = {INT: INTEGER, BOOL: CONDITION, EXPR: TERM, TEXT: Sort(TEXT, words=column.values)}
    sort = plain[column.sort] if column.sort in plain else fact(column.sort)
    return set_of(sort) if column.many else sort


def comparable(a: Sort, b: Sort) -> bool:
    """Whether `==` between them means something."""
    if "none" in (a.kind, b.kind):
        return True
    if {a.kind, b.kind} <= {INT, EXPR}:
        return True
    if {a.kind, b.kind} == {"fact", TEXT}:  # a fact is named by its id
        return True
    if a.kind == b.kind == "set":
        return a.of is None or b.of is None or comparable(a.of, b.of)
    return a.kind == b.kind and a.relation == b.relation


#: Relations of what happens: those that predicates about order speak of.
HAPPENING = frozenset(name for name, r in RELATIONS.items() if r.column("event") is not None)
