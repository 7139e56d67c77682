"""`rule.yaml` to a record. Everything that is wrong with a file is found in one run; nothing of it is executed."""

from __future__ import annotations

import re
from pathlib import Path

from cake_core.diagnostics import Sink, fail
from cake_core.diagnostics.categories import Category
from cake_core.rules import shapes
from cake_core.rules.arithmetic import MAX_RLIMIT, RLIMIT
from cake_core.rules.check import Definition
from cake_core.rules.fields import Fields
from cake_core.rules.schema import SCHEMA, Also, Author, Kind, Level, Precision, Rule, Status, Template
from cake_core.rules.sorts import Sort, fact
from cake_core.rules.strict import Mapping, Scalar, read
from cake_core.rules.versions import VERSION

ID = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*/[a-z0-9]+(?:-[a-z0-9]+)*")
#: Keys of what stands inside a rule.
AUTHOR = ("name", "kind", "run")
PLACE = ("at", "over", "say")
APPLIES = ("capability",)
REFERENCE = ("title", "url")
OTHER = ("id", "type")
BUDGET = ("rlimit",)
#: Who an author can be.
AUTHORS = ("human", "agent")
#: How a rule came from another one. `renamed`: it is the other one, under a new id. Or, `follows`: what it finds often follows from what the other one
#: finds, and is told behind it.
RELATED = ("renamed", "merged", "derived", "obsolete", "similar", "follows")

COMMON = (
    *("schema", "id", "title", "kind", "level", "status", "precision", "since", "owner", "authors", "applies", "shape", "define"),
    *("message", "help", "fix", "why", "detail", "limits", "at", "also", "references", "budget", "related", "tags", "covers", "category", "until", "replaced_by"),
)
SHAPES = {
    "relation": (shapes.relation, ("match", "where", "assume", "require")),
    "path": (shapes.path, ("from", "to", "must_pass", "of", "met", "after_last", "within", "where")),
    "protocol": (shapes.protocol, ("resource", "events", "automaton", "where")),
}
#: Categories of findings by kinds of rules; a rule may state another one.
CATEGORIES = {
    Kind.SAFETY: Category.PROGRAM_SAFETY,
    Kind.LEGALITY: Category.HARDWARE_CONFORMANCE,
    Kind.PORTABILITY: Category.HARDWARE_CONFORMANCE,
    Kind.PERFORMANCE: Category.PERFORMANCE_ANALYSIS,
    Kind.STYLE: Category.OPTIMIZATION_GUIDANCE,
}


def load_rule(path: Path, known: dict[str, Definition] | None = None, name: str | None = None) -> Rule:
    """The rule of one file. `known`: the definitions of its pack; `name`: what findings call the file. Raises CakeError."""
    node = read(path, name)
    sink = Sink()
    rule = None
    with sink.collecting():
        rule = _rule(node, path, known or {}, sink)
    sink.stop_if_errors()
    return rule


def _rule(node: Mapping, path: Path, known: dict[str, Definition], sink: Sink) -> Rule:
    found = node.get("shape")
    shape = "path" if node.get("must_pass") else "protocol" if node.get("automaton") else "relation"
    if found is not None:
        shape = found.value if isinstance(found, Scalar) else None
    if shape not in SHAPES:
        raise fail("rules/value", f"'shape' is one of {', '.join(SHAPES)}", found.span)
    make, own = SHAPES[shape]
    fields = Fields(node, "a rule" if shape == "relation" else f"a {shape} rule", (*COMMON, *own), sink)
    schema(fields)
    id = rule_id(fields, "id")
    reader = shapes.Reader(shapes.definitions(fields, known))
    with sink.collecting():
        done, variables = make(fields, reader)
    sink.stop_if_errors()
    texts = {}
    for key in ("message", "help", "detail"):
        with sink.collecting():
            texts[key] = reader.template(fields.scalar(key), variables)
    if texts.get("message") is None and not sink.items:
        raise fail("rules/key", f"{fields.what} lacks the key 'message'", node.span)
    status, until, replaced_by = _status(fields)
    return Rule(
        id=id,
        title=fields.text("title"),
        kind=fields.one_of("kind", Kind),
        level=fields.one_of("level", Level),
        status=status,
        precision=fields.one_of("precision", Precision),
        since=_version(fields, "since"),
        owner=fields.text("owner"),
        shape=done,
        message=texts.get("message"),
        help=texts.get("help"),
        fix=_fix(fields, texts.get("help")),
        why=" ".join(fields.text("why").split()),
        detail=texts.get("detail"),
        limits=" ".join(fields.text("limits", "").split()),
        at=_at(fields, variables, shape),
        also=_also(fields, reader, variables),
        capabilities=_capabilities(fields),
        definitions=reader.definitions,
        references=_references(fields),
        rlimit=_budget(fields),
        tags=fields.texts("tags"),
        covers=fields.texts("covers"),
        category=_category(fields),
        path=path,
        span=node.get("id").span,
        authors=_authors(fields),
        related=_related(fields),
        until=until,
        replaced_by=replaced_by,
    )


def _category(fields: Fields) -> Category:
    """Of the seven, what it states, or what goes with its kind."""
    if fields.node_of("category") is not None:
        return fields.one_of("category", Category)
    if fields.one_of("kind", Kind) is Kind.PERFORMANCE and fields.one_of("level", Level) is Level.INFO:
        return Category.OPTIMIZATION_GUIDANCE
    return CATEGORIES[fields.one_of("kind", Kind)]


def schema(fields: Fields) -> None:
    found = fields.node_of("schema", required=True)
    if not isinstance(found, Scalar) or found.value != SCHEMA or isinstance(found.value, bool):
        raise fail("rules/schema", f"this version reads schema {SCHEMA}", found.span, fix=f"write 'schema: {SCHEMA}'")


def _version(fields: Fields, key: str) -> str:
    text = fields.text(key)
    if not VERSION.fullmatch(text):
        raise fail("rules/value", f"'{key}' is a version such as \"0.2\"", fields.node_of(key).span)
    return text


def _status(fields: Fields) -> tuple[Status, str, str]:
    """The status; of a deprecated rule the version of its pack that no longer has it, and the id of what takes its place, if anything does."""
    if isinstance(found := fields.node_of("status"), Scalar) and found.value == "removed":
        raise fail(
            "rules/value",
            "a rule that is removed has no file",
            found.span,
            why="it would be read and never judged",
            fix="delete the folder, and write {id: .., since: .., reason: ..} under 'removed' in pack.yaml",
        )
    status = fields.one_of("status", Status)
    for key in ("until", "replaced_by"):
        if status is not Status.DEPRECATED and (node := fields.node_of(key)) is not None:
            raise fail("rules/key", f"'{key}' is said of a deprecated rule", node.span, fix="leave it out, or write 'status: deprecated'")
    if status is not Status.DEPRECATED:
        return status, "", ""
    if fields.node_of("until") is None:
        raise fail(
            "rules/key",
            "a deprecated rule lacks the key 'until'",
            found.span,
            why="who names the rule is told how long it stays",
            fix="write the version of the pack that no longer has it",
        )
    return status, _version(fields, "until"), rule_id(fields, "replaced_by") if fields.node_of("replaced_by") else ""


def rule_id(fields: Fields, key: str) -> str:
    """The id of a rule, of this pack or another one."""
    text = fields.text(key)
    if not ID.fullmatch(text):
        raise fail("rules/id", f"'{text}' is no id", fields.node_of(key).span, fix="write namespace/slug, in small letters, digits and '-'")
    return text


def _related(fields: Fields) -> tuple[tuple[str, str], ...]:
    """(type, id) of each: how this rule came from the other one."""
    out = []
    for node in fields.mappings("related"):
        one = Fields(node, "a related rule", OTHER, fields.sink)
        if one.text("type") not in RELATED:
            raise fail("rules/value", f"'type' is {', '.join(RELATED[:-1])} or {RELATED[-1]}", node.get("type").span)
        out.append((one.text("type"), rule_id(one, "id")))
    return tuple(out)


def _fix(fields: Fields, help: Template | None) -> str:
    """Advice for whoever asks what the rule means: `fix`, or `help` where no value of a kernel stands in it."""
    if (said := fields.text("fix", "")) or help is None:
        return said
    if any(not isinstance(p, str) for p in help.pieces):
        raise fail("rules/key", f"{fields.what} lacks the key 'fix'", fields.node.get("help").span, why="'help' speaks of one kernel, 'fix' of all")
    return "".join(help.pieces)


def _at(fields: Fields, variables: dict[str, Sort], shape: str) -> str:
    """The variable whose fact a finding points at: the first of a match, the end of a path, the event of a protocol."""
    usual = {"path": "to" if "to" in variables else "from", "protocol": "event"}.get(shape) or next(iter(variables), "")
    at = fields.text("at", usual)
    if fields.node_of("at") is not None and at not in variables:
        raise fail("rules/value", f"'at' is one of {', '.join(variables)}", fields.node_of("at").span)
    return at


def _also(fields: Fields, reader: shapes.Reader, variables: dict[str, Sort]) -> tuple[Also, ...]:
    out = []
    for node in fields.mappings("also"):
        inner = Fields(node, "a further place", PLACE, fields.sink)
        at, over = inner.text("at", "") or None, inner.scalar("over")
        if (at is None) == (over is None):
            raise fail("rules/key", "a further place has 'at', a variable, or 'over', facts", node.span)
        if at is not None and at not in variables:
            raise fail("rules/value", f"'at' is one of {', '.join(variables)}", node.get("at").span)
        facts = reader.over(over, variables) if over is not None else None
        known = variables if facts is None else {**variables, facts.var: fact(facts.relation)}
        inner.node_of("say", required=True)
        out.append(Also(at, facts, reader.template(inner.scalar("say"), known)))
    return tuple(out)


def _capabilities(fields: Fields) -> tuple[str, ...]:
    found = fields.node_of("applies")
    return () if found is None else Fields(found, "'applies'", APPLIES, fields.sink).texts("capability")


def _authors(fields: Fields) -> tuple[Author, ...]:
    out = []
    for node in fields.mappings("authors"):
        one = Fields(node, "an author", AUTHOR, fields.sink)
        if (kind := one.text("kind", "human")) not in AUTHORS:
            raise fail("rules/value", "'kind' of an author is human or agent", node.get("kind").span)
        out.append(Author(one.text("name"), kind, one.text("run", "")))
    return tuple(out)


def _references(fields: Fields) -> tuple[tuple[str, str], ...]:
    out = []
    for node in fields.mappings("references"):
        one = Fields(node, "a reference", REFERENCE, fields.sink)
        out.append((one.text("title"), one.text("url", "")))
    return tuple(out)


def _budget(fields: Fields) -> int:
    found = fields.node_of("budget")
    return RLIMIT if found is None else Fields(found, "'budget'", BUDGET, fields.sink).integer("rlimit", RLIMIT, most=MAX_RLIMIT)
