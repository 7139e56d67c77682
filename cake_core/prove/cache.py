"""Proofs that were made before: by the content of a kernel's facts, a question or a whole rule, and the prover that answered it.

Only what was proved is kept, so that a rule or a pack that asks otherwise is asked. A file a kernel, in the user's cache folder (`CAKE_CACHE`
names another one, or is empty for none), with a sum over what it says; a file that is damaged, and a folder that can't be read or
written, is no cache, and never an error.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cake_core.frozen import thawed
from cake_core.sha256 import sha256

if TYPE_CHECKING:
    from cake_core.facts import Rows
    from cake_core.rules import Rule

#: Kernels that are kept; the oldest go first.
MOST = 512
#: Relations that the target and the words on roles have a say in, beside the facts.
BESIDE = ("limit", "capability", "role", "role_word", "share")


def content(rows: Rows) -> str:
    """All that rows are made of, as text: the same for the same rows, another one for others."""
    return "\n".join((repr(rows.facts), *(f"{r.relation} {r.id} {r.values}" for name in BESIDE for r in rows[name])))


def folder() -> Path | None:
    """Where proofs are kept; None: nowhere."""
    given = os.environ.get("CAKE_CACHE")
    if given is not None:
        return Path(given) / "proofs" if given else None
    base = os.environ.get("XDG_CACHE_HOME") or (Path.home() / ".cache" if os.environ.get("HOME") else None)
    return Path(base) / "cake" / "proofs" if base else None


@cache
def method() -> str:
    """The prover itself: its files and the solver's version. Another one proves anew."""
    h = sha256(_solver())
    for path in files():
        h.update(path.read_bytes())
    return h.hexdigest()


def files() -> list[Path]:
    """The source files that decide what is proved: of the prover, of the facts, of those who judge rules, and what all are written in."""
    core = Path(__file__).parents[1]
    return [
        *(p for room in ("facts", "ir", "prove", "rules", "smt") for p in sorted((core / room).glob("*.py"))),
        core / "effects.py",
        core / "frozen.py",
        core / "sha256.py",
    ]


def _solver() -> bytes:
    """What tells one solver from another, without importing it: its libraries, by size and time."""
    found = find_spec("z3")
    libraries = sorted(Path(found.origin).parent.glob("lib/*")) if found is not None and found.origin else []
    return repr([(p.name, p.stat().st_size, p.stat().st_mtime_ns) for p in libraries]).encode()


def _sum(questions: list[str], rules: dict[str, list[int]]) -> str:
    return sha256(json.dumps([questions, rules], sort_keys=True).encode()).hexdigest()


@thawed
class Proofs:
    """What was proved of one kernel: questions, and rules as a whole. `content`: all that its rows are made of, as text."""

    content: str
    questions: set[str] = field(default_factory=set)
    rules: dict[str, list[int]] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)
    path: Path | None = None
    _more: bool = False

    def __post_init__(self) -> None:
        if (place := folder()) is None:
            return
        key = sha256(f"{method()}\n{self.content}".encode()).hexdigest()
        self.path = place / f"{key}.json"
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            kept = json.loads(self.path.read_text(encoding="utf-8"))
            if kept["sum"] == _sum(kept["questions"], kept["rules"]):
                self.questions, self.rules = set(kept["questions"]), kept["rules"]

    def has(self, question: str) -> bool:
        return question in self.questions or question in self.fresh

    def add(self, question: str) -> None:
        self.fresh.add(question)

    def of(self, rule: Rule) -> tuple[int, int] | None:
        """How many matches of a rule were proved and what was looked at for it, if no match was left."""
        matches, steps = self.rules.get(_digest(rule), (None, 0))
        return None if matches is None else (matches, steps)

    def judged(self, rule: Rule, matches: int, steps: int) -> None:
        """Keep that a rule holds; arguments as `of` returns."""
        self.rules[_digest(rule)] = [matches, steps]
        self._more = True

    def save(self) -> None:
        """Write what is new, whole or not at all."""
        if self.path is None or not (self.fresh or self._more):
            return
        import tempfile

        self.questions, self.fresh, self._more = self.questions | self.fresh, set(), False
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path.parent, suffix=".part")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as f:
                    questions = sorted(self.questions)
                    json.dump({"questions": questions, "rules": self.rules, "sum": _sum(questions, self.rules)}, f)
                os.replace(name, self.path)
            except OSError:
                os.unlink(name)
                return
            self._shrink()

    def _shrink(self) -> None:
        kernels = sorted(self.path.parent.glob("*.json"), key=lambda p: p.stat().st_mtime)
        for old in kernels[:-MOST]:
            old.unlink(missing_ok=True)


def _digest(rule: Rule) -> str:
    """All that decides whether a rule holds; how bad it would be if it did not is no part of it."""
    return sha256(repr((rule.id, rule.pack, rule.capabilities, rule.rlimit, rule.definitions, rule.shape)).encode()).hexdigest()
