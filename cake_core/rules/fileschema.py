"""JSON Schema (draft 2020-12) of `rule.yaml`, `pack.yaml` and `cake.toml`, made of the tables that the loaders read them by: for editors.

What a schema says is the structure: keys, kinds of values, words, columns of relations. What expressions mean, and what two keys say together
beyond that, the loader finds. `docs/schema` has them as files; `cake rules schema` prints them.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from cake_core.diagnostics.categories import Category
from cake_core.facts.relations import BOOL, EXPR, HAPPENS, INT, RELATIONS, TEXT, Column
from cake_core.rules import load, packfile, settings, shapes
from cake_core.rules.arithmetic import MAX_RLIMIT
from cake_core.rules.predicates import SIGNATURES
from cake_core.rules.schema import SCHEMA, Kind, Level, Precision, Status
from cake_core.rules.sorts import HAPPENING
from cake_core.rules.versions import BOUND, FULL, VERSION

DRAFT = "https://json-schema.org/draft/2020-12/schema"
TEXT_ = {"type": "string", "pattern": r"\S"}
TEXTS = {"type": "array", "items": {"type": "string"}}
_BOUND = rf"\s*({BOUND.pattern})\s*"
#: Bounds of a version, with commas between.
RANGE = {"type": "string", "pattern": f"^{_BOUND}(,{_BOUND})*$"}
#: A text that is parsed: YAML reads `true` and `3` as what they look like.
EXPRESSION = {"type": ["string", "boolean", "integer"], "pattern": r"\S"}
#: What a rule has to have, whatever its shape, and what its shape adds.
REQUIRED = ("schema", "id", "title", "kind", "level", "status", "precision", "since", "owner", "message", "why")
SHAPE_REQUIRED = {"relation": ("match", "require"), "path": ("from", "to", "must_pass"), "protocol": ("resource", "automaton")}


def rule_schema() -> dict:
    """Of `rule.yaml`."""
    forms = _rule_forms()
    keys = {shape: (*load.COMMON, *own) for shape, (_, own) in load.SHAPES.items()}
    named = lambda shape: {"properties": {"shape": {"const": shape}}, "required": ["shape"]}  # noqa: E731
    unnamed = {"not": {"required": ["shape"]}}
    path = {"required": ["must_pass"]}
    protocol = {"required": ["automaton"], "not": path}
    by_keys = {"path": path, "protocol": protocol, "relation": {"not": {"anyOf": [path, {"required": ["automaton"]}]}}}
    shaped = [
        {
            "if": {"anyOf": [named(shape), {"allOf": [unnamed, by_keys[shape]]}]},
            "then": {"required": list(SHAPE_REQUIRED[shape]), "propertyNames": {"enum": list(keys[shape])}},
        }
        for shape in load.SHAPES
    ]
    deprecated = {
        "if": {"properties": {"status": {"const": str(Status.DEPRECATED)}}},
        "then": {"required": ["until"]},
        "else": {"not": {"anyOf": [{"required": [k]} for k in ("until", "replaced_by")]}},
    }
    properties = {k: forms[k] for k in dict.fromkeys(k for of in keys.values() for k in of)}
    return {
        "$schema": DRAFT,
        "title": "rule.yaml, a rule of Cake",
        "type": "object",
        "properties": properties,
        "required": list(REQUIRED),
        "additionalProperties": False,
        "allOf": [*shaped, deprecated],
        "$defs": {
            "lasting": _pattern(r for r in RELATIONS if r not in HAPPENING),
            "happening": _pattern(r for r in RELATIONS if r in HAPPENING),
            **{f"column-{c.name}": _column(c) for c in HAPPENS},
            "any": {"anyOf": [{"$ref": "#/$defs/lasting"}, {"$ref": "#/$defs/happening"}]},
        },
    }


def pack_schema() -> dict:
    """Of `pack.yaml`."""
    forms = _pack_forms()
    return {
        "$schema": DRAFT,
        "title": "pack.yaml, a pack of rules of Cake",
        "type": "object",
        "properties": {k: forms[k] for k in packfile.PACK},
        "required": ["schema", "name", "namespace", "version", "suites"],
        "additionalProperties": False,
    }


def project_schema() -> dict:
    """Of `cake.toml`."""
    need = {"anyOf": [{"type": "string"}, _object(settings.PACK, {"name": {"type": "string"}, "version": {"anyOf": [RANGE, {"const": ""}]}}, ("name",))]}
    level = _words(Level, "what a finding means")
    waiver = _object(settings.WAIVER, {k: TEXT_ for k in settings.WAIVER} | {"level": level}, settings.WAIVER)
    rules = {
        "suite": TEXT_ | {"description": "what is judged; without it 'default'"},
        "packs": _list(need) | {"description": "packs that have to be there"},
        "levels": {"type": "object", "additionalProperties": level, "description": "of a rule, or of all rules of a namespace"},
        "waivers": _list(waiver) | {"description": "stable rules of safety or legality below their level, with a reason and who answers for it"},
    }
    tables = {"rules": _object(settings.RULES, rules)}
    return {"$schema": DRAFT, "title": "cake.toml, what a project says of rules"} | _object(settings.TABLES, tables)


def _rule_forms() -> dict[str, dict]:
    happening, lasting, whatever = ({"$ref": f"#/$defs/{name}"} for name in ("happening", "lasting", "any"))
    id = _matching(load.ID)
    return {
        "schema": {"const": SCHEMA},
        "id": id | {"description": "namespace of the pack, name of the folder"},
        "title": TEXT_ | {"description": "what is wrong where the rule does not hold"},
        "kind": _words(Kind, "safety and legality fail builds and are never let pass; the others are advice"),
        "level": _words(Level, "what a finding means to a build"),
        "status": _words(Status, "a new rule is a draft"),
        "precision": _words(Precision, "how often a finding is right"),
        "since": _matching(VERSION) | {"description": "the version of the pack that has it first"},
        "owner": TEXT_ | {"description": "the person or the named group who answers for it"},
        "authors": _list(_object(load.AUTHOR, {"name": TEXT_, "kind": {"enum": list(load.AUTHORS)}, "run": TEXT_}, ("name",))),
        "applies": _object(load.APPLIES, {"capability": TEXTS}) | {"description": "what the target must offer"},
        "shape": {"enum": list(load.SHAPES)},
        "define": _definitions(),
        "message": EXPRESSION | {"description": "the fact; expressions stand in braces"},
        "help": EXPRESSION | {"description": "the advice in this kernel; expressions stand in braces"},
        "fix": {"type": "string", "description": "the advice in general; needed where `help` has braces"},
        "why": TEXT_ | {"description": "what the rule protects"},
        "detail": EXPRESSION | {"description": "the reason in this kernel; expressions stand in braces"},
        "limits": {"type": "string", "description": "what is not decided"},
        "at": TEXT_ | {"description": "the variable at which a finding stands"},
        "also": _list(
            _object(load.PLACE, {"at": TEXT_, "over": EXPRESSION, "say": EXPRESSION}, ("say",))
            | {"oneOf": [{"required": ["at"]}, {"required": ["over"]}], "description": "a further place of a finding"}
        ),
        "references": _list(_object(load.REFERENCE, {"title": TEXT_, "url": {"type": "string"}}, ("title",))),
        "budget": _object(load.BUDGET, {"rlimit": {"type": "integer", "minimum": 1, "maximum": MAX_RLIMIT}}),
        "related": _list(_object(load.OTHER, {"id": id, "type": {"enum": list(load.RELATED)}}, load.OTHER)),
        "tags": TEXTS,
        "covers": TEXTS | {"description": "categories that are proved where this rule, and every other that covers them, holds"},
        "category": _words(Category, "of its findings; without it the one that goes with `kind`"),
        "until": _matching(VERSION) | {"description": "of a deprecated rule: the version of the pack that no longer has it"},
        "replaced_by": id | {"description": "of a deprecated rule: what takes its place"},
        "match": {
            "type": "object",
            "propertyNames": _matching(shapes.VARIABLE),
            "additionalProperties": whatever,
            "minProperties": 1,
            "maxProperties": shapes.MAX_MATCHED,
            "description": "facts by the names that the rule gives them",
        },
        "where": EXPRESSION | {"description": "which of what matches is meant"},
        "assume": EXPRESSION | {"description": "what is taken for granted of it"},
        "require": EXPRESSION | {"description": "what must hold"},
        "from": _or_end(happening, "start"),
        "to": _or_end(happening, "end"),
        "must_pass": {"anyOf": [happening, {"type": "array", "items": happening, "maxItems": shapes.MAX_PATTERNS}]},
        "of": {"enum": list(shapes.WHO)},
        "met": {"const": True},
        "after_last": {"const": "from"},
        "within": {"enum": list(shapes.WITHIN)},
        "resource": lasting,
        "events": {"type": "object", "additionalProperties": happening, "maxProperties": shapes.MAX_PATTERNS},
        "automaton": TEXT_ | {"description": "a regular expression over the names of `events`"},
    }


def _pack_forms() -> dict[str, dict]:
    word = {"type": "string", "pattern": "^[a-z][a-z0-9]*(-[a-z0-9]+)*$"}
    id, version = _matching(load.ID), _matching(VERSION)
    need = {"anyOf": [TEXT_, _object(packfile.NEED, {"name": word, "version": RANGE}, ("name",))]}
    requires = {
        "cake": RANGE,
        "schema": {"const": SCHEMA},
        "packs": _list(need),
        "predicates": {"type": "array", "items": {"enum": list(SIGNATURES)}},
    }
    removed = {"id": id, "since": version, "reason": TEXT_, "replaced_by": id}
    return {
        "schema": {"const": SCHEMA},
        "name": word,
        "namespace": word,
        "version": _matching(FULL),
        "license": {"type": "string"},
        "requires": _object(packfile.REQUIRES, requires),
        "suites": {
            "type": "object",
            "required": ["default"],
            "additionalProperties": _list(_object(tuple(packfile.SUITE), {k: _words(of) for k, of in packfile.SUITE.items()})),
        },
        "removed": _list(_object(packfile.REMOVED, removed, ("id", "since", "reason"))),
        "soundness": _list(_object(packfile.NOTE, {"version": TEXT_, "rules": TEXTS, "note": TEXT_}, ("version", "note"))),
        "define": _definitions(),
    }


# --- parts -------------------------------------------------------------------------------------------------------


def _object(keys: tuple[str, ...], forms: dict[str, dict], required: tuple[str, ...] = ()) -> dict:
    return {"type": "object", "properties": {k: forms[k] for k in keys}, "required": list(required), "additionalProperties": False}


def _list(items: dict) -> dict:
    return {"type": "array", "items": items}


def _matching(pattern) -> dict:
    return {"type": "string", "pattern": f"^({pattern.pattern})$"}


def _words(of: type[StrEnum] | Iterable[StrEnum], description: str | None = None) -> dict:
    return {"enum": [str(w) for w in of]} | ({"description": description} if description else {})


def _definitions() -> dict:
    argument = {"enum": [*shapes.PLAIN, *RELATIONS]}
    one = _object(shapes.DEFINITION, {"of": {"type": "object", "additionalProperties": argument}, "as": EXPRESSION}, ("as",))
    return {"type": "object", "propertyNames": _matching(shapes.VARIABLE), "additionalProperties": one, "description": "named conditions and numbers"}


def _or_end(pattern: dict, end: str) -> dict:
    return {
        "anyOf": [
            pattern,
            {"const": end},
            {"type": "object", "properties": {end: {"type": "object", "maxProperties": 0}}, "required": [end], "additionalProperties": False},
        ]
    }


def _pattern(relations: Iterable[str]) -> dict:
    """A relation's name, or that with conditions on its columns."""
    names = list(relations)
    whole = {
        "type": "object",
        "properties": {n: _columns(n) for n in names},
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    return {"anyOf": [{"enum": names}, whole]}


def _columns(relation: str) -> dict:
    of = RELATIONS[relation]
    return {
        "type": "object",
        "properties": {c.name: {"$ref": f"#/$defs/column-{c.name}"} if c in HAPPENS else _column(c) for c in of.columns},
        "additionalProperties": False,
        "description": of.doc,
    }


def _column(c: Column) -> dict:
    """A value, or a list of them; `none` of a column that may have none."""
    none = [{"const": "none"}] if c.optional else []
    if c.sort in RELATIONS:
        value = {"type": ["string", "boolean", "integer"]}
    elif c.many or c.sort == EXPR:
        value = {"anyOf": none} if none else False
    else:
        value = {INT: {"type": "integer"}, BOOL: {"type": "boolean"}, TEXT: {"enum": list(c.values)} if c.values else {"type": "string"}}[c.sort]
        value = {"anyOf": [value, *none]} if none and not (c.sort == TEXT and not c.values) else value
    return {"anyOf": [value, {"type": "array", "items": value}], "description": c.doc}
