"""What a rule says, from its YAML: patterns, expressions, templates, definitions and the three shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping as Map

from cake_core.diagnostics import fail
from cake_core.diagnostics.near import get_close_matches
from cake_core.facts.relations import BOOL, EXPR, INT, RELATIONS, TEXT, Column
from cake_core.frozen import frozen
from cake_core.rules import ast, automaton
from cake_core.rules.check import Definition, Scope, asked, checked
from cake_core.rules.fields import Fields
from cake_core.rules.parser import Passage, parse
from cake_core.rules.schema import RESOURCE, Path, Pattern, Protocol, Relation, Template
from cake_core.rules.sorts import CONDITION, HAPPENING, INTEGER, WORD, Sort, fact
from cake_core.rules.strict import Mapping, Node, Scalar, Sequence

#: Relations that no fact has: the first and the last point of every thread's way.
ENDS = ("start", "end")
#: Who must execute what a path passes.
WHO = {"writer": "writer", "each writer": "writer", "issuer": "issuer", "reader": "issuer", "anyone": "anyone"}

#: Of a definition: its keys, and what its arguments can be beside facts.
DEFINITION = ("of", "as")
#: No definition is called so: `check.py` and `evaluate.py` know these by name, before they look at definitions.
BUILT_IN = ("implies", "text")
PLAIN = {"int": INTEGER, "bool": CONDITION, "text": WORD}
#: Where what must be passed is looked for.
WITHIN = ("kernel", "agent")

VARIABLE = re.compile(r"[A-Za-z_]\w*")
#: Facts that one rule matches together, and patterns of a path or a protocol: each is looked at beside all others.
MAX_MATCHED = 8
MAX_PATTERNS = 32


@frozen
class Reader:
    """Reads expressions with the definitions of the rule and its pack. `later`: names that get their definition here or below."""

    definitions: Map[str, Definition]
    later: frozenset[str] = frozenset()

    def expression(self, found: Scalar | None, variables: Map[str, Sort], *, expected: Sort | None = CONDITION, may_ask: bool = False):
        """A typed expression, None where there is none."""
        if found is None:
            return None
        if isinstance(found.value, bool):
            return checked(
                parse(Passage("true" if found.value else "false", found.span.file, found.passage().place)),
                Scope(variables, self.definitions),
                expected,
            )
        if found.style == ">":
            raise fail("rules/value", "a folded text has no lines that findings could name", found.span, fix="write it behind '|'")
        return checked(parse(found.passage()), Scope(variables, self.definitions, may_ask, later=self.later), expected)

    def over(self, found: Scalar, variables: Map[str, Sort]) -> ast.Over:
        """`x in relation where condition`."""
        whole = found.passage()
        counted = Passage(f"count({whole.text})", whole.file, lambda at: whole.place(min(max(at - 6, 0), len(whole.text))))
        node = checked(parse(counted), Scope(variables, self.definitions), None)
        if not isinstance(node, ast.Count):
            raise fail("rules/value", "facts are given as 'x in relation where condition'", found.span)
        return node.over

    def template(self, found: Scalar | None, variables: Map[str, Sort]) -> Template | None:
        """A text in whose braces stand expressions."""
        if found is None:
            return None
        whole = found.passage()
        pieces: list = []
        at = 0
        for hole in re.finditer(r"\{([^{}]*)\}", whole.text):
            pieces.append(whole.text[at : hole.start()])
            start = hole.start(1)
            inner = Passage(hole.group(1), whole.file, lambda offset, start=start: whole.place(start + offset))
            pieces.append(checked(parse(inner), Scope(variables, self.definitions), None))
            at = hole.end()
        pieces.append(whole.text[at:].rstrip())
        if any("{" in p or "}" in p for p in pieces if isinstance(p, str)):
            raise fail("rules/value", "a brace in a text has no partner", found.span)
        return Template(tuple(pieces))


def definitions(fields: Fields, known: Map[str, Definition]) -> dict[str, Definition]:
    """The entries of `define`, each of which may use those above it."""
    out = dict(known)
    entries = fields.entries("define")
    for number, (key, node) in enumerate(entries):
        if not VARIABLE.fullmatch(str(key.value)) or key.value in out:
            raise fail(
                "rules/repeated" if key.value in out else "rules/value",
                f"'{key.value}' is defined already" if key.value in out else f"'{key.value}' is no name",
                key.span,
            )
        if key.value in BUILT_IN:
            raise fail("rules/value", f"'{key.value}' is of the language, and would never mean the definition", key.span, fix="choose another name")
        inner = Fields(node, f"the definition '{key.value}'", DEFINITION, fields.sink)
        of = tuple((str(k.value), _sort(v)) for k, v in inner.entries("of"))
        later = frozenset(str(k.value) for k, _ in entries[number:])
        body = Reader(out, later).expression(_needed(inner, "as"), dict(of), expected=None, may_ask=True)
        out[key.value] = Definition(key.value, of, body, asked(body, out))
    return out


def _needed(fields: Fields, key: str) -> Scalar:
    fields.node_of(key, required=True)
    return fields.scalar(key)


def _sort(node: Node) -> Sort:
    value = node.value if isinstance(node, Scalar) else None
    if value in PLAIN:
        return PLAIN[value]
    return fact(_relation(node))


def _relation(node: Node) -> str:
    value = node.value if isinstance(node, Scalar) else None
    if value not in RELATIONS:
        near = get_close_matches(str(value), RELATIONS, n=1)
        raise fail(
            "rules/unknown-name",
            f"no relation is called '{value}'",
            node.span,
            fix=f"did you mean '{near[0]}'?" if near else "docs/facts.md lists them",
        )
    return value


# --- patterns ----------------------------------------------------------------------------------------------------


def pattern(node: Node, *, ends: tuple[str, ...] = (), resource: str | None = None) -> Pattern:
    """`access`, or `{access: {space: [shared, tensor], mode: write}}`. `ends`: which of the ends may stand here. `resource`: the
    relation of the fact that the word `resource` names."""
    if isinstance(node, Scalar):
        return Pattern(node.value, span=node.span) if node.value in ends else Pattern(_relation(node), span=node.span)
    if not isinstance(node, Mapping) or len(node.entries) != 1:
        raise fail("rules/value", "a pattern is one relation with conditions on its columns", node.span, fix="write {access: {mode: write}}")
    ((name, inner),) = node.entries
    if name.value in ends:
        if not (isinstance(inner, Mapping) and not inner.entries):
            raise fail("rules/value", f"'{name.value}' has no columns", inner.span)
        return Pattern(name.value, span=name.span)
    relation = RELATIONS[_relation(name)]
    if not isinstance(inner, Mapping):
        raise fail("rules/value", "behind a relation stand conditions on its columns", inner.span, fix="write {} for none")
    columns = []
    for key, value in inner.entries:
        column = relation.column(str(key.value))
        if column is None:
            near = get_close_matches(str(key.value), [c.name for c in relation.columns], n=1)
            fix = f"did you mean '{near[0]}'?" if near else f"its columns: {', '.join(c.name for c in relation.columns)}"
            raise fail("rules/unknown-column", f"facts of '{relation.name}' have no column '{key.value}'", key.span, fix=fix)
        items = value.items if isinstance(value, Sequence) else (value,)
        columns.append((column.name, tuple(_value(i, column, resource) for i in items)))
    return Pattern(relation.name, tuple(columns), name.span)


def _value(node: Node, column: Column, resource: str | None):
    if not isinstance(node, Scalar):
        raise fail("rules/value", f"a value of '{column.name}' is a word, a number, true or false", node.span)
    value = node.value
    if column.sort in RELATIONS:
        if value == RESOURCE and resource is not None:
            if resource != column.sort:
                raise fail("rules/sort", f"'{column.name}' is a fact of '{column.sort}', the resource is one of '{resource}'", node.span)
            return RESOURCE
        if value == "none" and column.optional:
            return None
        return str(value)
    if value == "none" and column.optional:
        return None
    if column.many or column.sort == EXPR:
        raise fail("rules/value", f"a pattern says nothing of '{column.name}', which is an expression", node.span, fix="say it in 'where'")
    wanted = {INT: int, BOOL: bool, TEXT: str}[column.sort]
    if type(value) is not wanted:
        raise fail(
            "rules/value",
            f"'{column.name}' is {'an integer' if wanted is int else 'true or false' if wanted is bool else 'a word'}",
            node.span,
        )
    if column.values and value not in column.values:
        near = get_close_matches(value, column.values, n=1)
        raise fail(
            "rules/unknown-word",
            f"'{column.name}' is never '{value}'",
            node.span,
            fix=f"did you mean '{near[0]}'?" if near else f"it is one of {', '.join(column.values)}",
        )
    return value


# --- shapes ------------------------------------------------------------------------------------------------------


def relation(fields: Fields, read: Reader) -> tuple[Relation, dict[str, Sort]]:
    """The shape and what its variables are."""
    fields.node_of("match", required=True)
    match = []
    for key, node in fields.entries("match"):
        if not VARIABLE.fullmatch(str(key.value)):
            raise fail("rules/value", f"'{key.value}' is no name", key.span)
        match.append((str(key.value), pattern(node)))
    _few(match, MAX_MATCHED, "facts that are matched together", fields.node_of("match"))
    if not match:
        raise fail("rules/value", "'match' names no fact", fields.node_of("match").span, fix="match the kernel: {k: {kernel: {}}}")
    variables = {name: fact(p.relation) for name, p in match}
    where = read.expression(fields.scalar("where"), variables)
    assume = read.expression(fields.scalar("assume"), variables)
    require = read.expression(_needed(fields, "require"), variables, may_ask=True)
    return Relation(tuple(match), where, assume, require), variables


def _few(items, most: int, what: str, node: Node) -> None:
    if len(items) > most:
        raise fail("rules/value", f"a rule has at most {most} {what}, here are {len(items)}", node.span, fix="make several rules of it")


def path(fields: Fields, read: Reader) -> tuple[Path, dict[str, Sort]]:
    start = pattern(fields.node_of("from", required=True), ends=("start",))
    end = pattern(fields.node_of("to", required=True), ends=("end",))
    passed = fields.node_of("must_pass", required=True)
    passes = tuple(map(pattern, passed.items if isinstance(passed, Sequence) else (passed,)))
    _few(passes, MAX_PATTERNS, "patterns of what must be passed", passed)
    for p in (start, end, *passes):
        if p.relation not in HAPPENING and p.relation not in ENDS:
            raise fail(
                "rules/value",
                f"a path leads over what happens, '{p.relation}' does not",
                p.span,
                fix=f"it may be {', '.join(sorted(HAPPENING))}",
            )
    of = fields.text("of", "anyone")
    if of not in WHO:
        raise fail("rules/value", f"'of' is one of {', '.join(WHO)}", fields.node_of("of").span)
    if fields.text("after_last", "from") != "from":
        raise fail("rules/value", "'after_last' is 'from': what is passed stands behind the last of them", fields.node_of("after_last").span)
    variables = {n: fact(p.relation) for n, p in (("from", start), ("to", end)) if p.relation not in ENDS}
    within = fields.text("within", "kernel")
    if within not in WITHIN:
        raise fail("rules/value", "'within' is 'kernel' or 'agent'", fields.node_of("within").span)
    met = fields.node_of("met")
    if met is not None and not (isinstance(met, Scalar) and met.value is True and WHO[of] == "writer" and within == "agent"):
        raise fail("rules/value", "'met' is true, of what each writer passes within an agent", met.span)
    where = read.expression(fields.scalar("where"), variables)
    return Path(start, end, passes, WHO[of], where, within == "kernel", met is not None), variables


def protocol(fields: Fields, read: Reader) -> tuple[Protocol, dict[str, Sort]]:
    resource = pattern(fields.node_of("resource", required=True))
    if resource.relation in HAPPENING:
        raise fail("rules/value", f"a resource lasts, '{resource.relation}' happens", resource.span)
    events = []
    for key, node in fields.entries("events"):
        one = pattern(node, resource=resource.relation)
        if one.relation not in HAPPENING:
            raise fail("rules/value", f"an event happens, '{one.relation}' does not", one.span)
        events.append((str(key.value), one))
    if events:
        _few(events, MAX_PATTERNS, "events", fields.node_of("events"))
    found = fields.scalar("automaton")
    if found is None:
        raise fail("rules/key", f"{fields.what} lacks the key 'automaton'", fields.node.span)
    automaton.compiled(found.passage(), tuple(n for n, _ in events))
    variables = {"resource": fact(resource.relation), "event": fact("event")}
    where = read.expression(fields.scalar("where"), variables)
    shape = Protocol(resource, tuple(events), str(found.value), where, found.span)
    return shape, variables | {"came": WORD, "expected": WORD}
