"""What a rule is, as data: the records that the loader makes of `rule.yaml` and `pack.yaml`, schema 1."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path as File

from cake_core.diagnostics.categories import Category
from cake_core.frozen import frozen
from cake_core.rules import ast
from cake_core.rules.check import Definition
from cake_core.source import Span

SCHEMA = 1
#: In a pattern of a protocol: the fact that the protocol is about.
RESOURCE = "resource"


class Level(StrEnum):
    """What a finding means to a build."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    OFF = "off"


class Status(StrEnum):
    """How mature a rule is. A draft runs if it is named, a preview if previews are asked for; findings of both fail nothing. A deprecated
    rule is judged as a stable one until it is gone. What is removed is no rule but an entry of its pack, `Removed`."""

    DRAFT = "draft"
    PREVIEW = "preview"
    STABLE = "stable"
    DEPRECATED = "deprecated"


class Kind(StrEnum):
    SAFETY = "safety"
    LEGALITY = "legality"
    PERFORMANCE = "performance"
    PORTABILITY = "portability"
    STYLE = "style"


class Precision(StrEnum):
    """`proof`: decides; `high`: seldom wrong; `heuristic`: a hint."""

    PROOF = "proof"
    HIGH = "high"
    HEURISTIC = "heuristic"


@frozen
class Pattern:
    """Facts of `relation` whose columns are one of the listed values each. The relations "start" and "end" are the two ends of
    every thread's way, and have no columns."""

    relation: str
    columns: tuple[tuple[str, tuple[object, ...]], ...] = ()
    span: Span | None = None


@frozen
class Relation:
    """For every way to match facts, with `where`: wherever `assume` holds, `require` holds."""

    match: tuple[tuple[str, Pattern], ...]
    where: ast.Node | None
    assume: ast.Node | None
    require: ast.Node


@frozen
class Path:
    """On every way from `start` to `end`, in one agent and over hand-offs between agents, one of `must_pass` stands. `of`: who must
    execute it: "writer" (all that executed `start`), "issuer" (those that execute `end`), "anyone". `where`: of which pairs. `met`: where fewer threads execute `end`, those that passed
    it meet them behind it."""

    start: Pattern
    end: Pattern
    must_pass: tuple[Pattern, ...]
    of: str
    where: ast.Node | None
    hand_offs: bool = True
    met: bool = False


@frozen
class Protocol:
    """Each fact of `resource` sees events as `automaton` says, a regular expression over the names of `events`; `where` says
    which events are of the resource."""

    resource: Pattern
    events: tuple[tuple[str, Pattern], ...]
    automaton: str
    where: ast.Node | None
    span: Span


@frozen
class Template:
    """A text with values in it: pieces that stand as they are, and typed expressions."""

    pieces: tuple[str | ast.Node, ...]


@frozen
class Also:
    """Further places of a finding: those of the facts that `over` gives, or that of one variable, and what is there."""

    at: str | None
    over: ast.Over | None
    say: Template


@frozen
class Author:
    """Who wrote a rule. `kind`: "human" or "agent"; `run`: of an agent, which of its runs, so that what it did can be looked up."""

    name: str
    kind: str
    run: str


@frozen
class Rule:
    """One rule. `path`: its file; `pack` and `version`: whose. `at`: the variable at whose fact a finding stands; `also`: further
    places with what is there; `detail`: what in this kernel is the reason; `covers`: safety categories that are proved where this rule, and all others that cover them, is; `category`: of its findings; `fix`: the advice in general; `capabilities`: without which it does not apply;
    `related`: (type, id); `until` and `replaced_by`: of a deprecated rule, the version that is without it, and what to use."""

    id: str
    title: str
    kind: Kind
    level: Level
    status: Status
    precision: Precision
    since: str
    owner: str
    shape: Relation | Path | Protocol
    message: Template
    help: Template | None
    fix: str
    why: str
    detail: Template | None
    limits: str
    at: str
    also: tuple[Also, ...]
    capabilities: tuple[str, ...]
    definitions: Mapping[str, Definition]
    references: tuple[tuple[str, str], ...]
    rlimit: int
    tags: tuple[str, ...]
    covers: tuple[str, ...]
    category: Category
    path: File
    span: Span
    authors: tuple[Author, ...] = ()
    pack: str = ""
    version: str = ""
    related: tuple[tuple[str, str], ...] = ()
    until: str = ""
    replaced_by: str = ""


@frozen
class Removed:
    """A rule that is no more: what whoever names it is told. `since`: the version of the pack that is without it; its id is never used again."""

    id: str
    since: str
    reason: str
    replaced_by: str | None


@frozen
class Note:
    """Why what `version` changed of `rules` lets nothing wrong pass: what a reviewer is told of a rule that is looser than before."""

    version: str
    rules: tuple[str, ...]
    note: str


@frozen
class Need:
    """A pack that must be there too. `range`: of its versions, "" for any."""

    name: str
    range: str = ""


@frozen
class Pack:
    """A pack. `suites`: name to selectors, each a mapping of status, precision, kind and level to a value. `distribution`: who brings it, "" of
    a folder that was named or is the project's."""

    name: str
    namespace: str
    version: str
    license: str
    folder: File
    rules: tuple[Rule, ...]
    suites: Mapping[str, tuple[Mapping[str, str], ...]]
    removed: tuple[Removed, ...] = ()
    soundness: tuple[Note, ...] = ()
    distribution: str = ""
    needs: tuple[Need, ...] = ()

    @property
    def source(self) -> str:
        """Where it is from, for a person: the distribution, or the folder."""
        return self.distribution or self.folder.as_posix()
