"""Two versions of the packs of a repository: which rules are new, gone, renamed or others than they were, and which step of the version that asks for."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePosixPath

from cake_core.frozen import frozen
from cake_core.review.compare import Change, Direction, binding, changes
from cake_core.review.snapshot import Held
from cake_core.review.steps import Step
from cake_core.rules import Pack, Rule, selected
from cake_core.rules.packs import GROUP, LOCAL
from cake_core.rules.stored import FILE as STORED


class Fate(StrEnum):
    """What became of a rule, in one word."""

    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"
    LOOSENED = "loosened"
    TIGHTENED = "tightened"
    UNKNOWN = "unknown"
    REWRITTEN = "rewritten"
    WORDS = "only words"
    TEXTS = "only texts"
    SAME = "same"


@frozen
class Pair:
    """A rule in both versions; None where it is not there. `texts`: names of files beside the rule that are not as they were, with how."""

    id: str
    old: Rule | None
    new: Rule | None
    changes: tuple[Change, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()

    @property
    def fate(self) -> Fate:
        if self.old is None:
            return Fate.ADDED
        if self.new is None:
            return Fate.REMOVED
        if self.old.id != self.new.id:
            return Fate.RENAMED
        directions = {c.direction for c in self.changes}
        for direction, fate in _FATES.items():
            if direction in directions:
                return fate
        return Fate.TEXTS if self.texts else Fate.SAME

    @property
    def step(self) -> Step:
        match self.fate:
            case Fate.SAME:
                return Step.NONE
            case Fate.WORDS | Fate.TEXTS | Fate.REWRITTEN:
                return Step.PATCH
            case Fate.REMOVED | Fate.RENAMED | Fate.LOOSENED | Fate.UNKNOWN if binding(self.old):
                return Step.MAJOR
        return Step.MINOR

    @property
    def judges(self) -> bool:
        """Whether what it judges, or may, is another thing than before: a rule that is new, or not shown to be the same."""
        return self.new is not None and (self.old is None or any(c.direction is not Direction.WORDS for c in self.changes))

    @property
    def looser(self) -> bool:
        return self.new is None or any(c.direction.dangerous for c in self.changes)


_FATES = {
    Direction.LOOSER: Fate.LOOSENED,
    Direction.UNKNOWN: Fate.UNKNOWN,
    Direction.TIGHTER: Fate.TIGHTENED,
    Direction.SAME: Fate.REWRITTEN,
    Direction.WORDS: Fate.WORDS,
}


@frozen
class Compared:
    """A pack in both versions, None where it is not there or can't be read. `files`: whether any of its files differs."""

    name: str
    old: Held | None
    new: Held | None
    pairs: tuple[Pair, ...]
    files: bool

    @property
    def step(self) -> Step:
        """What its changes ask for."""
        return max([*(p.step for p in self.pairs), Step.PATCH if self.files else Step.NONE], default=Step.NONE)

    @property
    def versions(self) -> tuple[str | None, str | None]:
        return tuple(h.pack.version if h is not None and h.pack is not None else None for h in (self.old, self.new))


def compared(old: tuple[Held, ...], new: tuple[Held, ...]) -> tuple[Compared, ...]:
    """Packs of two versions, sorted by name: of one folder together if they have one name or can't be read, what is left by their names. A
    second pack of one name stands for itself."""
    left, pairs = list(old), []
    for held in new:
        same = next((h for h in left if h.folder == held.folder and (_name(h) == _name(held) or None in (h.pack, held.pack))), None)
        if same is not None:
            left.remove(same)
        pairs.append((same, held))
    for i, (before, held) in enumerate(pairs):
        if before is None and (moved := next((h for h in left if _name(h) == _name(held)), None)) is not None:
            left.remove(moved)
            pairs[i] = (moved, held)
    pairs += [(h, None) for h in left]
    return tuple(sorted((_pack(_name(b or a), a, b) for a, b in pairs), key=lambda c: (c.name, (c.new or c.old).folder)))


def _name(held: Held) -> str:
    return held.pack.name if held.pack is not None else held.folder


def _written(held: Held) -> dict[str, bytes]:
    """The files that somebody writes: the stored form is made of them, by the Cake of its time, and the gate holds it against them."""
    return {path: data for path, data in held.files.items() if path != STORED}


def _pack(name: str, old: Held | None, new: Held | None) -> Compared:
    files = old is None or new is None or _written(old) != _written(new) or bool(_place(old, new))
    readable = all(h is None or h.pack is not None for h in (old, new))
    return Compared(name, old, new, _pairs(old, new) if readable and files else (), files)


def _pairs(old: Held | None, new: Held | None) -> tuple[Pair, ...]:
    a = {r.id: r for r in old.pack.rules} if old is not None else {}
    b = {r.id: r for r in new.pack.rules} if new is not None else {}
    said = successors(new.pack) if new is not None else {}
    renamed = {id: to for id, to in said.items() if id in a and id not in b and to in b}
    suites = _suites(old.pack, new.pack, renamed) if old is not None and new is not None else {}
    place = _place(old, new) if old is not None and new is not None else ()
    out = []
    for id in sorted(a.keys() | b.keys() - set(renamed.values()) | set(renamed.values()) & a.keys()):
        rule, now = a.get(id), b.get(renamed.get(id, id))
        if rule is None or now is None:
            out.append(Pair(id, rule, now))
            continue
        found = (*changes(rule, now), *suites.get(id, ()), *place)
        if any(c.direction is not Direction.WORDS for c in found):
            found = tuple(c for c in found if c.direction is not Direction.WORDS or c.part != "words")
        out.append(Pair(id, rule, now, found, _texts(rule, now, old, new)))
    return tuple(out)


def successors(pack: Pack) -> dict[str, str]:
    """By id that is no more: the rule that takes its place, by what the pack says is removed or by what the rule says that it was called."""
    renamed = {id: r.id for r in pack.rules for how, id in r.related if how == "renamed"}
    return renamed | {g.id: g.replaced_by for g in pack.removed if g.replaced_by}


def gone(pack: Pack) -> frozenset[str]:
    """Ids that a pack has given up: of removed rules, and old ones of renamed rules."""
    return frozenset(g.id for g in pack.removed) | frozenset(id for r in pack.rules for how, id in r.related if how == "renamed")


def _suites(old: Pack, new: Pack, renamed: dict[str, str]) -> dict[str, list[Change]]:
    """By old id: of which suites a rule is no more, or is now. A suite that is gone has no rules."""
    out: dict[str, list[Change]] = {}
    for suite in sorted(old.suites.keys() | new.suites.keys()):
        before, now = ({r.id for r in selected((p,), suite)} for p in (old, new))
        there = {r.id for r in new.rules}
        for rule in old.rules:
            id = renamed.get(rule.id, rule.id)
            if id in there and (rule.id in before) != (id in now):
                gone = rule.id in before
                say = f"{'no more ' if gone else ''}in the suite '{suite}'"
                out.setdefault(rule.id, []).append(Change("suites", Direction.LOOSER if gone else Direction.TIGHTER, say))
    return out


def _place(old: Held, new: Held) -> tuple[Change, ...]:
    """What loads a pack without being asked: the folder `.cake/rules` that it lies in, or a `pyproject.toml` that offers it. Where nothing does any
    more it is as it was, and judges nothing."""
    out = []
    if (project := _project(old.folder)) is not None and _project(new.folder) != project:
        out.append(Change("place", Direction.LOOSER, f"it lies in '{project}' no more, from where it was loaded"))
    if old.offered and not new.offered:
        out.append(Change("place", Direction.LOOSER, f"no 'pyproject.toml' offers it under '{GROUP}' any more"))
    return tuple(out)


def _project(folder: str) -> str | None:
    """The folder of a project's packs that a pack lies in; hidden ones are not read."""
    place = PurePosixPath(folder)
    return place.parent.as_posix() if place.parent.parts[-2:] == LOCAL.parts and not place.name.startswith(".") else None


def _texts(old_rule: Rule, new_rule: Rule, old: Held, new: Held) -> tuple[tuple[str, str], ...]:
    """Files beside a rule, what is told of its bad texts among them, that are not as they were."""
    a, b = beside(old_rule, old), beside(new_rule, new)
    return tuple((n, "new" if n not in a else "gone" if n not in b else "edited") for n in sorted(a.keys() | b.keys()) if a.get(n) != b.get(n))


def beside(rule: Rule, held: Held) -> dict[str, bytes]:
    """The files of a rule's folder without the rule, by name."""
    prefix = f"rules/{rule.id.partition('/')[2]}/"
    return {p.removeprefix(prefix): data for p, data in held.files.items() if p.startswith(prefix) and p != f"{prefix}rule.yaml"}
