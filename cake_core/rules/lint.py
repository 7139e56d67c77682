"""What `cake rules lint` says of rules: style, what is unfinished or unused, conditions that a pattern could hold, rules that say the same.

None of it changes what a rule judges. Errors are what is left to do; warnings what readers will miss; notes advice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass

from cake_core.diagnostics import Diagnostic, Severity
from cake_core.facts.relations import BOOL, INT, RELATIONS, TEXT
from cake_core.rules import ast
from cake_core.rules.schema import Pack, Path, Pattern, Precision, Protocol, Relation, Rule, Template
from cake_core.rules.strict import Mapping, Scalar, read
from cake_core.source import Span

#: Words that a rule is scaffolded with.
TODO = re.compile(r"\bTODO\b")
#: A message that begins so is advice, which stands in `help`.
ADVICE = re.compile(r"(?:use|add|put|write|move|remove|insert|do not|don't|please|consider|try|make sure|ensure)\b")
#: A slug says the hazard, not that something is checked.
CHECKS = re.compile(r"(?:check|no|must|should|rule|require|ensure|verify)-")
#: Links whose page changes under the reader.
MOVING = re.compile(r"/(?:blob|tree|raw)/(?:main|master|trunk|develop|HEAD)/|[/@](?:main|master|latest|HEAD)(?:/|$)")
TITLE = 100


def lint(packs: Iterable[Pack], rules: Iterable[Rule]) -> tuple[Diagnostic, ...]:
    """What is said of `rules`, which are of these packs, in the order of packs and rules. Rules are compared with all others of all packs."""
    packs, chosen = tuple(packs), {r.id for r in rules}
    out: list[Diagnostic] = []
    for pack in packs:
        for rule in pack.rules:
            if rule.id in chosen:
                out += [*_unfinished(rule), *_style(rule), *_missing(rule), *_unused(rule), *_patterns(rule)]
        if pack.rules and all(r.id in chosen for r in pack.rules):
            out += _unused_of_pack(pack)
    return (*out, *_overlaps([r for p in packs for r in p.rules], chosen))


def _said(code: str, severity: Severity, message: str, rule: Rule, span: Span | None = None, **more) -> Diagnostic:
    return Diagnostic(code, message, span or rule.span, severity, **more)


# --- words -------------------------------------------------------------------------------------------------------


def _texts(rule: Rule) -> Iterator[tuple[str, str]]:
    """Texts of a rule by their keys; a value of a kernel stands as `{}`."""
    for key in ("title", "owner", "why", "limits"):
        yield key, getattr(rule, key)
    for key in ("message", "help", "detail"):
        if (template := getattr(rule, key)) is not None:
            yield key, "".join(p if isinstance(p, str) else "{}" for p in template.pieces)
    if rule.help is None or rule.fix != "".join(p for p in rule.help.pieces if isinstance(p, str)):  # without a text of its own it is `help`
        yield "fix", rule.fix
    yield from (("references", f"{title} {url}") for title, url in rule.references)
    yield from (("authors", author.name) for author in rule.authors)


def _unfinished(rule: Rule) -> Iterator[Diagnostic]:
    keys = dict.fromkeys(key for key, text in _texts(rule) if TODO.search(text))
    if keys:
        fix = "write what they ask for, or take the line away"
        yield _said("rules/unfinished", Severity.ERROR, f"'{rule.id}' still says TODO, in {', '.join(repr(k) for k in keys)}", rule, fix=fix)
    for path in sorted(rule.path.parent.glob("*TODO*")):
        yield _said(
            "rules/unfinished",
            Severity.ERROR,
            f"'{path.name}' has no name yet",
            rule,
            Span(str(path), 1, 1, 1, 2),
            fix="say in the name what it shows",
        )


def _style(rule: Rule) -> Iterator[Diagnostic]:
    for key, text in _texts(rule):
        for wrong, fix in _wrong(key, text):
            yield _said("rules/style", Severity.WARNING, f"'{key}' of '{rule.id}' {wrong}", rule, fix=fix)
    slug = rule.id.partition("/")[2]
    if found := CHECKS.match(slug):
        yield _said("rules/style", Severity.WARNING, f"the slug '{slug}' says a check", rule, fix=f"name the hazard: without '{found.group()}'")


def _wrong(key: str, text: str) -> Iterator[tuple[str, str]]:
    words = text.strip()
    if key in ("message", "help", "detail", "fix") and re.match(r"[A-Z][a-z]", words):
        yield "begins with a capital", "begin in lower case"
    if key in ("message", "help", "detail", "fix", "title") and words.endswith(".") and not words.endswith(".."):
        yield "ends with a period", "leave it out"
    if key == "title" and not re.match(r"[A-Z0-9'`{]", words):
        yield "begins in lower case", "begin with a capital"
    if key == "title" and len(words) > TITLE:
        yield f"has {len(words)} characters", f"at most {TITLE}: the rest goes into 'why'"
    if key == "message" and '"' in words:
        yield "has double quotes", "names stand in single quotes, code in backticks"
    if key == "message" and ADVICE.match(words):
        yield "is advice", "state the fact; advice goes into 'help'"
    if key in ("why", "limits") and words and not words.endswith((".", "?", "!")):
        yield "does not end its last sentence", "end it with a period"
    if key == "references" and MOVING.search(words):
        yield "links to a page that changes", "link to a version: a tag, a commit, a numbered document"


def _missing(rule: Rule) -> Iterator[Diagnostic]:
    missing = []
    if not rule.references:
        missing.append(("references", "name the document and section that say so"))
    if rule.help is None:
        missing.append(("help", "say what to write instead"))
    if not rule.limits and rule.precision is not Precision.PROOF:
        missing.append(("limits", "say where it is wrong, or does not look"))
    for key, fix in missing:
        yield _said("rules/incomplete", Severity.WARNING, f"'{rule.id}' has no '{key}'", rule, fix=fix)


# --- definitions -------------------------------------------------------------------------------------------------


def _expressions(rule: Rule) -> Iterator[ast.Node]:
    match rule.shape:
        case Relation(where=where, assume=assume, require=require):
            yield from (e for e in (where, assume, require) if e is not None)
        case Path(where=where) | Protocol(where=where):
            yield from (e for e in (where,) if e is not None)
    templates: list[Template] = [t for t in (rule.message, rule.help, rule.detail) if t is not None]
    for also in rule.also:
        templates.append(also.say)
        yield from (e for e in (also.over and also.over.where,) if e is not None)
    yield from (p for t in templates for p in t.pieces if not isinstance(p, str))


def _called(node: ast.Node) -> set[str]:
    own = {node.name} if isinstance(node, ast.Call) else set()
    return own.union(*map(_called, ast.kids(node)))


def _used(rule: Rule) -> set[str]:
    """Definitions that a rule uses, those of definitions among them."""
    found = set().union(*map(_called, _expressions(rule))) & rule.definitions.keys()
    while more := set().union(*(_called(rule.definitions[n].body) for n in found)) & rule.definitions.keys() - found:
        found |= more
    return found


def _defined(path) -> tuple[tuple[str, Span], ...]:
    node = read(path).get("define")
    return tuple((str(k.value), k.span) for k, _ in node.entries if isinstance(k, Scalar)) if isinstance(node, Mapping) else ()


def _unused(rule: Rule) -> Iterator[Diagnostic]:
    used = _used(rule)
    for name, span in _defined(rule.path):
        if name not in used:
            yield _said("rules/unused", Severity.WARNING, f"'{rule.id}' defines '{name}' and does not use it", rule, span, fix="take it away")


def _unused_of_pack(pack: Pack) -> Iterator[Diagnostic]:
    used = set().union(*map(_used, pack.rules))
    for name, span in _defined(pack.folder / "pack.yaml"):
        if name not in used:
            yield Diagnostic("rules/unused", f"no rule of the pack '{pack.name}' uses '{name}'", span, Severity.WARNING, fix="take it away")


# --- conditions that a pattern could hold ------------------------------------------------------------------------


def _patterns(rule: Rule) -> Iterator[Diagnostic]:
    """A fact that a pattern leaves out is never looked at, and a reader sees at once what the rule is about."""
    variables = dict(_variables(rule))
    where = rule.shape.where
    for part in _conjuncts(where) if where is not None else ():
        for var, column, value in _plain(part):
            relation = RELATIONS.get(variables.get(var, ""))
            found = relation.column(column) if relation is not None else None
            if found is not None and found.sort in (INT, BOOL, TEXT) and not found.many:
                message = f"a condition of '{rule.id}' could stand in the pattern of '{var}'"
                yield _said("rules/pattern", Severity.NOTE, message, rule, part.span, fix=f"write {{{variables[var]}: {{.., {column}: {value}}}}}")


def _variables(rule: Rule) -> Iterator[tuple[str, str]]:
    match rule.shape:
        case Relation(match=match):
            yield from ((name, p.relation) for name, p in match)
        case Path(start=start, end=end):
            yield from (("from", start.relation), ("to", end.relation))


def _conjuncts(node: ast.Node) -> Iterator[ast.Node]:
    if isinstance(node, ast.Binary) and node.op == "and":
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _plain(node: ast.Node) -> Iterator[tuple[str, str, str]]:
    """Variable, column and value of a condition on one column alone."""
    match node:
        case ast.Field(ast.Name(var), column) if node.sort is not None and node.sort.kind == BOOL:
            yield var, column, "true"
        case ast.Unary("not", ast.Field(ast.Name(var), column)):
            yield var, column, "false"
        case ast.Binary("==", ast.Field(ast.Name(var), column), ast.Literal(value)) | ast.Binary(
            "==", ast.Literal(value), ast.Field(ast.Name(var), column)
        ):
            yield var, column, _value(value)
        case ast.Member(ast.Field(ast.Name(var), column), ast.Listed(items)) if all(isinstance(i, ast.Literal) for i in items):
            yield var, column, f"[{', '.join(_value(i.value) for i in items)}]"


def _value(value: object) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


# --- rules that say the same -------------------------------------------------------------------------------------


def _overlaps(rules: list[Rule], chosen: set[str]) -> Iterator[Diagnostic]:
    """Rules of relations that match the same facts, of which one requires all that the other does."""
    keys = [(r, _key(r)) for r in rules if isinstance(r.shape, Relation)]
    for n, (a, (about, asked)) in enumerate(keys):
        for b, (other, more) in keys[n + 1 :]:
            if about != other or not {a.id, b.id} & chosen or not (asked <= more or more <= asked):
                continue
            small, large = (a, b) if asked <= more else (b, a)
            at = small if small.id in chosen else large
            message = f"'{small.id}' requires nothing that '{large.id}' does not"
            yield _said("rules/overlap", Severity.NOTE, message, at, fix="make one rule of them, or let one match what the other leaves out")


def _key(rule: Rule) -> tuple[object, frozenset]:
    """What a rule is about and what it requires, its variables numbered."""
    names = {name: f"${i}" for i, (name, _) in enumerate(rule.shape.match)}
    used = sorted(_used(rule))
    shape = tuple((p.relation, tuple(sorted((c, tuple(map(repr, v))) for c, v in p.columns))) for _, p in rule.shape.match)
    defined = tuple((n, _tree(rule.definitions[n].body, {})) for n in used)
    conditions = [frozenset(_tree(p, names) for p in _conjuncts(e)) if e is not None else frozenset() for e in (rule.shape.where, rule.shape.assume)]
    return (shape, defined, *conditions, rule.capabilities), frozenset(_tree(p, names) for p in _conjuncts(rule.shape.require))


def _tree(node: object, names: dict[str, str]) -> object:
    """An expression as nested tuples, without places and sorts."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if is_dataclass(node) and not isinstance(node, Pattern):
        return type(node).__name__, *(_tree(getattr(node, f.name), names) for f in fields(node) if f.name not in ("span", "sort"))
    if isinstance(node, tuple):
        return tuple(_tree(n, names) for n in node)
    return type(node).__name__, node
