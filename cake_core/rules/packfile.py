"""`pack.yaml` to a record, with the rules beside it. Everything that is wrong with a pack is found in one run; nothing of it is executed.

What a pack holds is its own: a link to a file somewhere else would be neither hashed with it nor installed with it, and is refused.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from cake_core import __version__
from cake_core.diagnostics import Sink, fail
from cake_core.diagnostics.categories import OWN
from cake_core.rules import shapes
from cake_core.rules.check import Definition
from cake_core.rules.fields import Fields
from cake_core.rules.load import load_rule, rule_id, schema
from cake_core.rules.schema import SCHEMA, Kind, Level, Need, Note, Pack, Precision, Removed, Rule, Status
from cake_core.rules.strict import MAX_BYTES as MAX_FILE
from cake_core.rules.strict import Mapping, Node, Scalar, Sequence, read
from cake_core.rules.versions import FULL, VERSION, admits, numbers, wrong_bound

PACK = ("schema", "name", "namespace", "version", "license", "requires", "suites", "removed", "soundness", "define")
NEED = ("name", "version")
REMOVED = ("id", "since", "reason", "replaced_by")
NOTE = ("version", "rules", "note")
REQUIRES = ("cake", "schema", "packs", "predicates")
#: Of one pack: its rules, the bytes of their files together, and the findings after which the rest is not read.
MAX_RULES = 500
MAX_BYTES = 1024 * 1024
MAX_FINDINGS = 100
#: Of a file beside a rule: a text longer than that is read by nobody.
MAX_TEXT = 4 * 1024 * 1024
SUITE = {"status": Status, "precision": Precision, "kind": Kind, "level": Level}


def load_pack(folder: Path, shown: str | None = None, distribution: str = "") -> Pack:
    """The pack in `folder`. `shown`: what findings call the folder. Raises CakeError with all that is wrong with its files."""
    shown = shown or str(folder)
    file = folder / "pack.yaml"
    if not file.is_file():
        raise fail("rules/pack", f"'{shown}' is no rule pack: it has no 'pack.yaml'")
    if file.is_symlink():
        raise _link(f"{shown}/pack.yaml")
    sink = Sink()
    node = read(file, f"{shown}/pack.yaml")
    fields = Fields(node, "a pack", PACK, sink)
    schema(fields)
    needs: tuple[Need, ...] = ()
    with sink.collecting():  # a pack for another engine may well have keys that this one does not know
        needs = _requires(fields, sink)
    name, namespace, version = _word(fields, "name"), _word(fields, "namespace"), _full(fields, "version")
    if namespace in OWN and namespace != "core":  # of the compiler's own codes: a rule there would be taken for one of them
        raise fail("rules/pack", f"the namespace '{namespace}' is the compiler's own", fields.node_of("namespace").span, fix="choose another one")
    known = shapes.definitions(fields, {})
    rules, files = _rules(folder, shown, known, (name, namespace, version), sink)
    suites, removed = _suites(fields), _removed(fields, namespace, sink)
    _tombs(rules, removed, namespace, sink)
    notes = tuple(_note(n, sink) for n in fields.mappings("soundness"))
    if not files and not removed and not sink.items:
        sink.error("rules/pack", f"the pack '{name}' has no rules", node.span, fix="a rule stands in 'rules/SLUG/rule.yaml'")
    sink.stop_if_errors()
    return Pack(name, namespace, version, fields.text("license", ""), folder, tuple(rules.values()), suites, removed, notes, distribution, needs)


def _word(fields: Fields, key: str) -> str:
    """A name in small letters: of a file, a finding, a line of a table."""
    text = fields.text(key)
    if not all(p.isascii() and p.isalnum() and p.islower() for p in text.split("-")) or not text[:1].isalpha():
        raise fail("rules/value", f"'{text}' is no {key} of a pack", fields.node_of(key).span, fix="write small letters, digits and '-'")
    return text


def _full(fields: Fields, key: str) -> str:
    text = fields.text(key)
    if not FULL.fullmatch(text):
        raise fail("rules/value", f"'{key}' is a version such as \"0.2.0\"", fields.node_of(key).span)
    return text


def _link(shown: str):
    return fail("rules/pack", f"'{shown}' is a link", why="what a pack holds is hashed and installed with it", fix="put the file itself there")


# --- rules -------------------------------------------------------------------------------------------------------


def _rules(folder: Path, shown: str, known: dict[str, Definition], own: tuple[str, str, str], sink: Sink) -> tuple[dict[str, Rule], list[Path]]:
    """The rules by id, and their files. `own`: name, namespace and version of the pack."""
    name, namespace, version = own
    rules: dict[str, Rule] = {}
    files: list[Path] = []
    with sink.collecting():
        files = _rule_files(folder, shown)
    read = 0
    for path in files:
        if len(sink.items) > MAX_FINDINGS or (read := read + _size(path)) > MAX_BYTES:
            wrong = f"has more than {MAX_FINDINGS} findings" if len(sink.items) > MAX_FINDINGS else f"has more than {MAX_BYTES} bytes of rules"
            sink.error("rules/pack", f"'{shown}' {wrong}: the rest is not read", fix="mend these first" if sink.items else "make several packs of it")
            break
        with sink.collecting():
            rule = load_rule(path, known, f"{shown}/rules/{path.parent.name}/rule.yaml")
            _belongs(rule, namespace, path.parent.name)
            if rule.until and numbers(version) >= numbers(rule.until):
                raise fail(
                    "rules/pack",
                    f"'{rule.id}' was to be gone with version {rule.until} of the pack, this is {version}",
                    rule.span,
                    fix="take it away and list it under 'removed', or say a later version",
                )
            rules[rule.id] = replace(rule, pack=name, version=version)
    return rules, files


def _size(path: Path) -> int:
    """How much of a file is read: nothing of one that is too large, or not there, which is told when it is read."""
    try:
        size = path.stat().st_size
    except OSError:
        return 0
    return size if size <= MAX_FILE else 0


def _rule_files(folder: Path, shown: str) -> list[Path]:
    """The file of each rule. Nothing is passed over: what stands in `rules` is a folder with a `rule.yaml`, else the pack can't be read."""
    out = []
    try:
        if (folder / "rules").is_symlink():
            raise _link(f"{shown}/rules")
        for entry in sorted(os.scandir(folder / "rules"), key=lambda e: e.name):
            if entry.is_symlink():
                raise _link(f"{shown}/rules/{entry.name}")
            if entry.is_dir() and not entry.name.startswith((".", "__")):
                found = {e.name: e for e in os.scandir(entry.path)}
                if "rule.yaml" not in found:
                    raise fail("rules/pack", f"'{shown}/rules/{entry.name}' has no 'rule.yaml'", fix="write one, or take the folder away")
                if link := next((n for n, e in sorted(found.items()) if e.is_symlink()), None):
                    raise _link(f"{shown}/rules/{entry.name}/{link}")
                if odd := next((n for n, e in sorted(found.items()) if not (e.is_dir() or e.is_file() and e.stat().st_size <= MAX_TEXT)), None):
                    raise fail("rules/pack", f"'{shown}/rules/{entry.name}/{odd}' is no file of at most {MAX_TEXT} bytes", fix="take it away")
                out.append(Path(entry.path, "rule.yaml"))
                if len(out) > MAX_RULES:
                    raise fail("rules/pack", f"'{shown}' has more than {MAX_RULES} rules", fix="make several packs of it")
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


# --- what a pack asks for ----------------------------------------------------------------------------------------


def _requires(fields: Fields, sink: Sink) -> tuple[Need, ...]:
    """The packs that must be there too; the engine must be one of those that are asked for."""
    from cake_core.rules.predicates import SIGNATURES

    if (node := fields.node_of("requires")) is None:
        return ()
    inner = Fields(node, "'requires'", REQUIRES, sink)
    if (found := inner.node_of("cake")) is not None:
        _range(inner.text("cake"), found)
        if not admits(inner.text("cake"), __version__):
            raise fail("rules/pack", f"the pack asks for Cake {inner.text('cake')}, this is {__version__}", found.span)
    if inner.integer("schema", SCHEMA) != SCHEMA:
        raise fail(
            "rules/pack",
            f"the pack asks for schema {inner.integer('schema', SCHEMA)} of rules, this Cake reads {SCHEMA}",
            inner.node_of("schema").span,
        )
    for name in inner.texts("predicates"):
        if name not in SIGNATURES:
            raise fail(
                "rules/pack",
                f"this version has no predicate '{name}'",
                inner.node_of("predicates").span,
                why="without it the pack would say less than it promises",
            )
    return _needs(inner, sink)


def _needs(fields: Fields, sink: Sink) -> tuple[Need, ...]:
    """Names of packs, or `{name, version}` with a range."""
    found = fields.node_of("packs")
    if found is None:
        return ()
    if not isinstance(found, Sequence):
        raise fail("rules/value", "'packs' is a list of names, or of {name, version}", found.span)
    out = []
    for item in found.items:
        if isinstance(item, Mapping):
            one = Fields(item, "a pack that is needed", NEED, sink)
            range = one.text("version", "")
            if range:
                _range(range, one.node_of("version"))
            out.append(Need(_word(one, "name"), range))
        elif isinstance(item, Scalar) and isinstance(item.value, str):
            out.append(Need(item.value))
        else:
            raise fail("rules/value", "'packs' is a list of names, or of {name, version}", item.span)
    return tuple(out)


def _range(text: str, node: Node) -> None:
    if (part := wrong_bound(text)) is not None:
        raise fail("rules/value", f"'{part}' is no bound of a version", node.span, fix='write ">=0.1,<0.4"')


# --- suites and what is removed ----------------------------------------------------------------------------------


def _suites(fields: Fields) -> dict[str, tuple[dict[str, str], ...]]:
    out = {}
    for key, node in fields.entries("suites"):
        holder = Fields(Mapping(((key, node),), key.span), "'suites'", (str(key.value),), fields.sink)
        selectors = []
        for one in holder.mappings(str(key.value)):
            inner = Fields(one, "a selector", tuple(SUITE), fields.sink)
            selectors.append({str(k.value): str(inner.one_of(str(k.value), SUITE[str(k.value)])) for k, _ in one.entries if k.value in SUITE})
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


def _removed(fields: Fields, namespace: str, sink: Sink) -> tuple[Removed, ...]:
    out: dict[str, Removed] = {}
    for node in fields.mappings("removed"):
        with sink.collecting():
            one = Fields(node, "a removed rule", REMOVED, sink)
            id, since = rule_id(one, "id"), one.text("since")
            if not VERSION.fullmatch(since):
                raise fail("rules/value", "'since' is a version such as \"0.2\"", one.node_of("since").span)
            if id.partition("/")[0] != namespace:
                raise fail("rules/id", f"'{id}' is not in the pack's namespace '{namespace}'", one.node_of("id").span)
            if id in out:
                raise fail("rules/repeated", f"'{id}' is removed twice", one.node_of("id").span)
            out[id] = Removed(id, since, one.text("reason"), rule_id(one, "replaced_by") if one.node_of("replaced_by") else None)
    return tuple(out.values())


def _note(node: Mapping, sink: Sink) -> Note:
    fields = Fields(node, "a soundness note", NOTE, sink)
    return Note(fields.text("version"), fields.texts("rules"), fields.text("note"))


def _tombs(rules: dict[str, Rule], removed: tuple[Removed, ...], namespace: str, sink: Sink) -> None:
    """An id that was given up is not used again, and what is said to take its place is there."""
    gone = {r.id for r in removed}
    for rule in rules.values():
        if rule.id in gone:
            sink.error(
                "rules/repeated",
                f"'{rule.id}' is removed and there",
                rule.span,
                why="who named the old rule would get another one",
                fix="choose another id",
            )
    for id, other in [*((r.id, r.replaced_by) for r in removed), *((r.id, r.replaced_by) for r in rules.values())]:
        if other and other.partition("/")[0] == namespace and other not in rules:
            span = rules[id].span if id in rules else None
            sink.error("rules/id", f"'{id}' is replaced by '{other}', which the pack does not have", span)
