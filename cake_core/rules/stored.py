"""The built-in packs as they were read, kept beside each as `pack.json`: a start takes them from there.

Reading a pack, its YAML, its expressions, their sorts, takes some milliseconds a rule. What was made of it is data, so it is kept: with the sha256 of all that
it was made of, and of no use where that or the version of Cake differs; the pack is read then. Packs of others are always read: what stands in their
`rule.yaml` is what is judged. `python -m cake_core.rules.store` writes the files anew; a test compares them with what reading gives.

The file has two lines: of what it was made and how, and the objects, each by the numbers of those in front of it that it consists of. Equal ones
stand there once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

from cake_core import __version__
from cake_core.diagnostics.categories import Category
from cake_core.rules import ast
from cake_core.rules import schema as of
from cake_core.rules.check import Definition
from cake_core.rules.sorts import Sort
from cake_core.sha256 import sha256
from cake_core.source import Span

FILE = "pack.json"

#: What a pack consists of, beside texts, numbers, truth values and None. An object is written as the place of its class here and its parts.
CLASSES: tuple[type, ...] = (
    *(tuple, dict, frozenset),
    *(Category, of.Kind, of.Level, of.Precision, of.Status),
    *(of.Pack, of.Need, of.Note, of.Removed, of.Rule, of.Author, of.Also, of.Template, of.Pattern, of.Relation, of.Path, of.Protocol),
    *(Definition, Sort, Span),
    *(
        ast.Literal,
        ast.Name,
        ast.Field,
        ast.Call,
        ast.Unary,
        ast.Binary,
        ast.Member,
        ast.Listed,
        ast.Choice,
        ast.Over,
        ast.Quantified,
        ast.Count,
        ast.Fold,
    ),
)


def sources(folder: Path) -> list[Path]:
    """The files that a pack is read from, `pack.yaml` first; nothing else has a say in what it is."""
    return [folder / "pack.yaml", *sorted(folder.glob("rules/*"))]


def digest(folder: Path) -> str:
    """The sha256 of those files, by name and content. Raises OSError where one can't be read: of a folder in `rules`, its `rule.yaml` is."""
    whole = sha256()
    for path in sources(folder):
        data = (path / "rule.yaml" if path.parent != folder else path).read_bytes()
        whole.update(f"{path.name}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()


def stored(folder: Path, shown: str, distribution: str) -> of.Pack | None:
    """The pack in `folder` as it was read last, None where that is not known; arguments as of `load_pack`."""
    try:
        first, _, objects = (folder / FILE).read_text(encoding="utf-8").partition("\n")
        if json.loads(first) != head(folder, shown, objects):
            return None
        pack = unpacked(json.loads(objects))
    except (OSError, ValueError):
        return None
    rules = tuple(replace(r, path=folder / "rules" / r.path / "rule.yaml") for r in pack.rules)
    return replace(pack, folder=folder, rules=rules, distribution=distribution)


def head(folder: Path, shown: str, objects: str) -> dict[str, str]:
    """What makes the objects good for a folder: by which Cake and what it knows of classes, from which files, and that they are whole."""
    form = repr([(cls.__name__, *(f.name for f in fields(cls))) if is_dataclass(cls) else cls.__name__ for cls in CLASSES])
    return {"cake": __version__, "form": _sha256(form), "shown": shown, "files": digest(folder), "objects": _sha256(objects)}


def _sha256(text: str) -> str:
    return sha256(text.encode()).hexdigest()


# --- objects -----------------------------------------------------------------------------------------------------


def unpacked(objects: list) -> object:
    """The last of the objects that `store.py` takes a pack apart into."""
    makers = [_maker(cls) for cls in CLASSES]
    made: list = []
    for x in objects:
        made.append(makers[x[0]]([made[n] for n in x[1:]]) if x.__class__ is list else x)
    return made[-1]


def _maker(cls: type) -> Callable[[list], object]:
    """An object of its parts. What is frozen has its slots filled: `__init__` would look at each part again."""
    if cls is dict:
        return lambda parts: dict(zip(parts[::2], parts[1::2], strict=True))
    if cls is tuple or cls is frozenset:
        return cls
    if issubclass(cls, str):
        return lambda parts: cls(parts[0])
    new, fill = cls.__new__, tuple(getattr(cls, f.name).__set__ for f in fields(cls))

    def make(parts: list) -> object:
        out = new(cls)
        for put, part in zip(fill, parts, strict=True):
            put(out, part)
        return out

    return make
