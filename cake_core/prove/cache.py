"""Proofs that were made before: by the content of a kernel's facts, a question, and the prover that answered it.

Only what was proved is kept, so that a rule or a pack that asks otherwise is asked. A file a kernel, in the user's cache folder (`CAKE_CACHE`
names another one, or is empty for none), with a sum over its questions; a file that is damaged, and a folder that can't be read or
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

from cake_core.frozen import thawed
from cake_core.sha256 import sha256

#: Kernels that are kept; the oldest go first.
MOST = 512


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
    """The source files that decide what is proved: of the prover, of the facts, and what both are written in."""
    core = Path(__file__).parents[1]
    return [
        *(p for room in ("facts", "ir", "prove", "smt") for p in sorted((core / room).glob("*.py"))),
        core / "effects.py",
        core / "sha256.py",
        core / "rules" / "predicates.py",
    ]


def _solver() -> bytes:
    """What tells one solver from another, without importing it: its libraries, by size and time."""
    found = find_spec("z3")
    libraries = sorted(Path(found.origin).parent.glob("lib/*")) if found is not None and found.origin else []
    return repr([(p.name, p.stat().st_size, p.stat().st_mtime_ns) for p in libraries]).encode()


def _sum(questions: list[str]) -> str:
    return sha256("\n".join(questions).encode()).hexdigest()


@thawed
class Proofs:
    """Questions about one kernel that were answered by a proof. `content`: its facts as text."""

    content: str
    known: set[str] | None = None
    fresh: set[str] = field(default_factory=set)
    path: Path | None = None

    def __post_init__(self) -> None:
        if (place := folder()) is not None:
            key = sha256(f"{method()}\n{self.content}".encode()).hexdigest()
            self.path = place / f"{key}.json"

    def has(self, question: str) -> bool:
        if self.known is None:
            self.known = set()
            if self.path is not None:
                with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
                    kept = json.loads(self.path.read_text(encoding="utf-8"))
                    if kept["sum"] == _sum(kept["questions"]):
                        self.known = set(kept["questions"])
        return question in self.known or question in self.fresh

    def add(self, question: str) -> None:
        self.fresh.add(question)

    def save(self) -> None:
        """Write what is new, whole or not at all."""
        if self.path is None or not self.fresh:
            return
        import tempfile

        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path.parent, suffix=".part")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as f:
                    questions = sorted((self.known or set()) | self.fresh)
                    json.dump({"questions": questions, "sum": _sum(questions)}, f)
                os.replace(name, self.path)
            except OSError:
                os.unlink(name)
                return
            self._shrink()
        self.known, self.fresh = (self.known or set()) | self.fresh, set()

    def _shrink(self) -> None:
        kernels = sorted(self.path.parent.glob("*.json"), key=lambda p: p.stat().st_mtime)
        for old in kernels[:-MOST]:
            old.unlink(missing_ok=True)
