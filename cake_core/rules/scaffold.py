"""New rules and packs: what `cake rules new` writes. Nothing that is there is overwritten.

The texts stand in `templates/`, so that they are read as what they are. Each shape's is a whole rule with its texts, about something simple,
to be changed word by word.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping as Map
from pathlib import Path
from string import Template

from cake_core.diagnostics import fail
from cake_core.diagnostics.categories import OWN
from cake_core.diagnostics.json import dumps
from cake_core.frozen import frozen
from cake_core.rules import packs
from cake_core.rules.fileschema import pack_schema, rule_schema
from cake_core.rules.load import ID
from cake_core.rules.schema import Author
from cake_core.rules.strict import CONTROL, Mapping, Scalar, Sequence, read

TEMPLATES = Path(__file__).parent / "templates"
#: Files of a pack's repository, and their templates: one called as a project's own would be read by tools that look for such.
REPOSITORY = {"README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md", "pyproject.toml": "project.toml"}
SHAPES = ("relation", "path", "protocol")
#: What an owner is called until there is one; `cake rules lint` and `cake rules review` refuse it.
NOBODY = "TODO"
#: What to do where a namespace belongs to a pack that can't be changed here.
COPY = "choose a namespace of your own, or name the pack's folder in a checkout of it with --pack"


@frozen
class New:
    """A rule to be: `folder` is that of its pack, which may not be there yet; `owner` a person or a named group. `body`: for a drafted one, what
    stands between the head and the words; `texts`: its texts by file name."""

    id: str
    folder: Path
    shape: str = "relation"
    owner: str = NOBODY
    author: Author = Author(NOBODY, "human", "")
    body: str = ""
    texts: Map[str, str] | None = None


def pack_of(id: str) -> Path:
    """Where a rule goes if nobody says where, from the working directory on: into the pack of its namespace that is there, that of a checkout
    that is installed or of the project, or a new one in a folder of its own. Raises CakeError `rules/pack` where the pack is installed as a copy."""
    name = id.partition("/")[0]
    package = f"cake_rules_{name.replace('-', '_')}"
    if (here := Path(package)).exists():
        return here
    if (found := packs.home(name)) is None:
        return Path(f"cake-rules-{name}") / package
    folder, said, free = found
    if not free:
        raise fail("rules/pack", f"the namespace '{name}' is that of {said}, which is installed as a copy", fix=COPY)
    return Path(os.path.relpath(folder)) if folder.resolve().is_relative_to(Path.cwd()) else folder


def files(new: New, version: str) -> dict[Path, str]:
    """The files that are to be written, by their paths; those of the pack where there is none yet. `version`: of Cake. Raises CakeError `rules/id`, and
    `rules/pack` where something of it is there already."""
    if not ID.fullmatch(new.id):
        raise fail("rules/id", f"'{new.id}' is no id", fix="write namespace/slug, in small letters, digits and '-'; the slug says the hazard")
    name, slug = new.id.split("/")
    place = new.folder if new.folder.name else new.folder.resolve()
    _fits(new.id, place)
    major, minor = re.findall(r"\d+", version)[:2]
    folder = place / "rules" / slug
    if folder.exists():
        raise fail("rules/pack", f"'{folder}' is there already", fix="choose another slug, or change the rule that is there")
    words = {"name": name, "package": place.name, "major": major, "minor": minor, "next": str(int(minor) + 1)}
    words |= {"id": new.id, "owner": f'"{plain(new.owner)}"', "author": _author(new.author), "since": _since(place), "body": new.body}
    words["schema"] = _schema(place)
    out = {} if (place / "pack.yaml").exists() else _pack(place, words)
    kind = "drafted" if new.body else new.shape
    out[folder / "rule.yaml"] = _filled(TEMPLATES / kind / "rule.yaml", words)
    texts = new.texts if new.texts is not None else {p.name: p.read_text(encoding="utf-8") for p in sorted((TEMPLATES / new.shape).glob("*.cake"))}
    return out | {folder / name: text for name, text in texts.items()}


def _fits(id: str, folder: Path) -> None:
    """A rule is of its pack's namespace, and no removed rule's id is used again."""
    name = id.partition("/")[0]
    if not (folder / "pack.yaml").exists():
        if name in OWN and name != "core":
            raise fail("rules/id", f"the namespace '{name}' is that of codes of the compiler", fix="choose another one")
        if (found := packs.home(name)) is not None:
            raise fail("rules/pack", f"the namespace '{name}' is that of {found[1]}", fix=COPY)
        return
    node = read(folder / "pack.yaml")
    own = node.get("namespace")
    if isinstance(own, Scalar) and own.value != name:
        raise fail("rules/id", f"'{id}' is not in the pack's namespace '{own.value}'", own.span, fix=f"call it '{own.value}/{id.partition('/')[2]}'")
    removed = node.get("removed")
    for gone in removed.items if isinstance(removed, Sequence) else ():
        was = gone.get("id") if isinstance(gone, Mapping) else None
        if isinstance(was, Scalar) and was.value == id:
            raise fail("rules/id", f"'{id}' was the id of a rule that is removed", was.span, fix="an id is never used again: choose another one")


def _pack(folder: Path, words: Map[str, str]) -> dict[Path, str]:
    """Of a pack that is new; of the repository around it what is not there."""
    out = {folder / "__init__.py": "", folder / "pack.yaml": _filled(TEMPLATES / "pack" / "pack.yaml", words)}
    out |= {folder.parent / n: _filled(TEMPLATES / "pack" / there, words) for n, there in REPOSITORY.items()}
    out |= {folder.parent / f"{n}.schema.json": dumps(made()) for n, made in (("rule", rule_schema), ("pack", pack_schema))}
    return {path: text for path, text in out.items() if not path.exists()}


def _schema(place: Path) -> str:
    """Where a rule's file finds its JSON Schema: beside the pack, or in the documentation of the repository around it."""
    for up, folder in enumerate(place.resolve().parents if (place / "pack.yaml").exists() else ()):
        for name in ("rule.schema.json", "docs/schema/rule.schema.json"):
            if (folder / name).is_file():
                return "../" * (3 + up) + name
    return "../../../rule.schema.json"


def _since(folder: Path) -> str:
    """MAJOR.MINOR of the pack that is there, or of a new one."""
    try:
        text = (folder / "pack.yaml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return "0.1"
    found = re.search(r'(?m)^version: "?(\d+\.\d+)', text)
    return found.group(1) if found else "0.1"


def _filled(path: Path, words: Map[str, str]) -> str:
    return Template(path.read_text(encoding="utf-8")).substitute(words)


def _author(author: Author) -> str:
    run = f', run: "{plain(author.run)}"' if author.run else ""
    return f'{{name: "{plain(author.name)}", kind: {author.kind}{run}}}'


def plain(text: str) -> str:
    """What can stand between quotes in YAML."""
    return CONTROL.sub(" ", re.sub(r'["\\\n\r]', " ", text))
