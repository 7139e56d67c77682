"""`rule.yaml` and `pack.yaml` to records. Everything that is wrong with a file is found in one run; nothing of it is executed."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import replace
from pathlib import Path

from cake_core.diagnostics import Sink, fail
from cake_core.diagnostics.categories import Category
from cake_core.rules import shapes
from cake_core.rules.arithmetic import RLIMIT
from cake_core.rules.check import Definition
from cake_core.rules.fields import Fields
from cake_core.rules.schema import SCHEMA, Also, Author, Kind, Level, Note, Pack, Precision, Removed, Rule, Status, Template
from cake_core.rules.sorts import Sort, fact
from cake_core.rules.strict import Mapping, Node, Scalar, read

ID = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*/[a-z0-9]+(?:-[a-z0-9]+)*")
VERSION = re.compile(r"\d+\.\d+(\.\d+)?")
AUTHOR = ("name", "kind", "run")
SUITE = ("status", "precision", "kind", "level")

COMMON = (
    *("schema", "id", "title", "kind", "level", "status", "precision", "since", "owner", "authors", "applies", "shape", "define"),
    *("message", "help", "fix", "why", "detail", "limits", "at", "also", "references", "budget", "related", "tags", "covers", "category", "until"),
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
PACK = ("schema", "name", "namespace", "version", "license", "requires", "suites", "removed", "soundness", "define")


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
    shape = found.value if isinstance(found, Scalar) else "path" if node.get("must_pass") else "protocol" if node.get("automaton") else "relation"
    if shape not in SHAPES:
        raise fail("rules/value", f"'shape' is one of {', '.join(SHAPES)}", found.span)
    make, own = SHAPES[shape]
    fields = Fields(node, "a rule" if shape == "relation" else f"a {shape} rule", (*COMMON, *own), sink)
    _schema(fields)
    id = fields.text("id")
    if not ID.fullmatch(id):
        raise fail("rules/id", f"'{id}' is no id", node.get("id").span, fix="write namespace/slug, in small letters, digits and '-'")
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
    status = fields.one_of("status", Status)
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
    )


def _category(fields: Fields) -> Category:
    """Of the seven, what it states, or what goes with its kind."""
    if fields.node_of("category") is not None:
        return fields.one_of("category", Category)
    if fields.one_of("kind", Kind) is Kind.PERFORMANCE and fields.one_of("level", Level) is Level.INFO:
        return Category.OPTIMIZATION_GUIDANCE
    return CATEGORIES[fields.one_of("kind", Kind)]


def _schema(fields: Fields) -> None:
    found = fields.node_of("schema", required=True)
    if not isinstance(found, Scalar) or found.value != SCHEMA or isinstance(found.value, bool):
        raise fail("rules/schema", f"this version reads schema {SCHEMA}", found.span, fix=f"write 'schema: {SCHEMA}'")


def _version(fields: Fields, key: str) -> str:
    text = fields.text(key)
    if not VERSION.fullmatch(text):
        raise fail("rules/value", f"'{key}' is a version such as \"0.2\"", fields.node_of(key).span)
    return text


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
        inner = Fields(node, "a further place", ("at", "over", "say"), fields.sink)
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
    return () if found is None else Fields(found, "'applies'", ("capability",), fields.sink).texts("capability")


def _authors(fields: Fields) -> tuple[Author, ...]:
    out = []
    for node in fields.mappings("authors"):
        one = Fields(node, "an author", AUTHOR, fields.sink)
        if (kind := one.text("kind", "human")) not in ("human", "agent"):
            raise fail("rules/value", "'kind' of an author is human or agent", node.get("kind").span)
        out.append(Author(one.text("name"), kind, one.text("run", "")))
    return tuple(out)


def _references(fields: Fields) -> tuple[tuple[str, str], ...]:
    out = []
    for node in fields.mappings("references"):
        one = Fields(node, "a reference", ("title", "url"), fields.sink)
        out.append((one.text("title"), one.text("url", "")))
    for node in fields.mappings("related"):
        one = Fields(node, "a related rule", ("id", "type"), fields.sink)
        if one.text("type") not in ("renamed", "merged", "derived", "obsolete", "similar"):
            raise fail("rules/value", "'type' is renamed, merged, derived, obsolete or similar", one.node.get("type").span)
    return tuple(out)


def _budget(fields: Fields) -> int:
    found = fields.node_of("budget")
    return RLIMIT if found is None else Fields(found, "'budget'", ("rlimit",), fields.sink).integer("rlimit", RLIMIT)


# --- packs -------------------------------------------------------------------------------------------------------


def load_pack(folder: Path, shown: str | None = None, distribution: str = "") -> Pack:
    """The pack in `folder`. `shown`: what findings call the folder. Raises CakeError with all that is wrong with its files."""
    shown = shown or str(folder)
    file = folder / "pack.yaml"
    if not file.is_file():
        raise fail("rules/pack", f"'{shown}' is no rule pack: it has no 'pack.yaml'")
    sink = Sink()
    node = read(file, f"{shown}/pack.yaml")
    fields = Fields(node, "a pack", PACK, sink)
    _schema(fields)
    name, namespace = fields.text("name"), fields.text("namespace")
    known = shapes.definitions(fields, {})
    requires = fields.node_of("requires")
    needs: tuple[str, ...] = ()
    if requires is not None:
        needs = _requires(Fields(requires, "'requires'", ("cake", "packs", "predicates"), sink))
    rules: dict[str, Rule] = {}
    version = fields.text("version")
    files = _rule_files(folder, shown)
    for path in files:
        with sink.collecting():
            rule = load_rule(path, known, f"{shown}/rules/{path.parent.name}/rule.yaml")
            _belongs(rule, namespace, path.parent.name)
            rules[rule.id] = replace(rule, pack=name, version=version)
    suites, removed = _suites(fields), tuple(map(_removed, fields.mappings("removed")))
    notes = tuple(_note(n, sink) for n in fields.mappings("soundness"))
    for gone in removed:
        if gone.id in rules:
            sink.error("rules/repeated", f"'{gone.id}' is removed and there", rules[gone.id].span)
    if not files and not removed:
        sink.error("rules/pack", f"the pack '{name}' has no rules", node.span, fix="a rule stands in 'rules/SLUG/rule.yaml'")
    sink.stop_if_errors()
    return Pack(name, namespace, version, fields.text("license", ""), folder, tuple(rules.values()), suites, removed, notes, distribution, needs)


def _rule_files(folder: Path, shown: str) -> list[Path]:
    """The file of each rule. Nothing is passed over: what stands in `rules` is a folder with a `rule.yaml`, else the pack can't be read."""
    out = []
    try:
        for entry in sorted(os.scandir(folder / "rules"), key=lambda e: e.name):
            file = Path(entry.path, "rule.yaml")
            if entry.is_dir() and not entry.name.startswith((".", "__")):
                if "rule.yaml" not in os.listdir(entry.path):
                    raise fail("rules/pack", f"'{shown}/rules/{entry.name}' has no 'rule.yaml'", fix="write one, or take the folder away")
                out.append(file)
            elif entry.name.endswith((".yaml", ".yml")):
                raise fail(
                    "rules/pack",
                    f"'{shown}/rules/{entry.name}' stands in no folder",
                    fix=f"a rule stands in 'rules/{Path(entry.name).stem}/rule.yaml'",
                )
    except FileNotFoundError:
        return []
    except OSError as error:
        raise fail("rules/pack", f"'{error.filename}' can't be read: {error.strerror}") from None
    return out


def _belongs(rule: Rule, namespace: str, folder: str) -> None:
    if rule.id.partition("/")[0] != namespace:
        raise fail("rules/id", f"'{rule.id}' is not in the pack's namespace '{namespace}'", rule.span)
    if rule.id.partition("/")[2] != folder:
        raise fail("rules/id", f"'{rule.id}' stands in the folder '{folder}'", rule.span, fix="a rule's folder has its slug as name")


def _requires(fields: Fields) -> tuple[str, ...]:
    """The packs that must be there too."""
    from cake_core.rules.predicates import SIGNATURES

    for name in fields.texts("predicates"):
        if name not in SIGNATURES:
            raise fail(
                "rules/pack",
                f"this version has no predicate '{name}'",
                fields.node.get("predicates").span,
                why="without it the pack would say less than it promises",
            )
    if (found := fields.node_of("cake")) is not None:
        _range(fields.text("cake"), found)
    return fields.texts("packs")


def _range(text: str, node: Node) -> None:
    """`>=0.1,<0.4` against this version."""
    from cake_core import __version__

    own = tuple(int(n) for n in re.findall(r"\d+", __version__)[:3])
    for part in (p.strip() for p in text.split(",")):
        found = re.fullmatch(r"(>=|<=|==|<|>)\s*(\d+(?:\.\d+){0,2})", part)
        if not found:
            raise fail("rules/value", f"'{part}' is no bound of a version", node.span, fix='write ">=0.1,<0.4"')
        bound = tuple(map(int, found.group(2).split(".")))
        mine = own[: len(bound)] if found.group(1) in ("==",) else own
        bound = bound + (0,) * (len(mine) - len(bound))
        if not {">=": mine >= bound, "<=": mine <= bound, "==": mine == bound, "<": mine < bound, ">": mine > bound}[found.group(1)]:
            raise fail("rules/pack", f"the pack asks for Cake {text}, this is {__version__}", node.span)


def _suites(fields: Fields) -> dict[str, tuple[dict[str, str], ...]]:
    out = {}
    kinds = {"status": Status, "precision": Precision, "kind": Kind, "level": Level}
    for key, node in fields.entries("suites"):
        holder = Fields(Mapping(((key, node),), key.span), "'suites'", (str(key.value),), fields.sink)
        selectors = []
        for one in holder.mappings(str(key.value)):
            inner = Fields(one, "a selector", SUITE, fields.sink)
            selectors.append({str(k.value): str(inner.one_of(str(k.value), kinds[str(k.value)])) for k, _ in one.entries if k.value in kinds})
        out[str(key.value)] = tuple(selectors)
    if "default" not in out:
        raise fail(
            "rules/pack",
            "the pack has no suite 'default'",
            (fields.node_of("suites") or fields.node).span,
            why="`cake check` and `cake build` judge the rules of that suite: of this pack, none",
            fix="write suites: {default: [{status: stable}]}",
        )
    return out


def _removed(node: Mapping) -> Removed:
    fields = Fields(node, "a removed rule", ("id", "since", "reason", "replaced_by"), Sink())
    return Removed(fields.text("id"), fields.text("since"), fields.text("reason"), fields.text("replaced_by", "") or None)


def _note(node: Mapping, sink: Sink) -> Note:
    fields = Fields(node, "a soundness note", ("version", "rules", "note"), sink)
    return Note(fields.text("version"), fields.texts("rules"), fields.text("note"))


def digest(folder: Path) -> str:
    """sha256 over the names and bytes of a pack's files."""
    whole = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        data = path.read_bytes()
        whole.update(f"{path.relative_to(folder).as_posix()}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()
