"""`cake-baseline.json`: how many findings of which rules texts had when they were looked at last, so that new ones are seen.

    {"schema": 1, "counts": {"kernels/copy.cake": {"acme/few-slots": 3}}}

Texts are named from the folder of the file. Only rules whose findings may be let pass stand in it (`suppressions.py`); more of them than are
counted are told, fewer are stale, which is an error until the file is written anew. Findings that a comment lets pass are not counted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from cake_core.check.suppressions import refusal
from cake_core.diagnostics import Diagnostic, fail
from cake_core.frozen import thawed
from cake_core.rules import Rulebook
from cake_core.source import Span

SCHEMA = 1
NAME = "cake-baseline.json"
#: Of a file that counts: larger ones are none of ours.
MAX_BYTES = 4 * 1024 * 1024


@thawed
class Baseline:
    """`counts`: findings by text and rule; `seen`: what was found of texts that were looked at whole."""

    path: Path
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    seen: dict[str, dict[str, int]] = field(default_factory=dict)

    def key(self, file: str) -> str:
        """A text's name in the file."""
        return Path(os.path.relpath(os.path.abspath(file), os.path.abspath(self.path.parent))).as_posix()

    def of(self, file: str) -> dict[str, int]:
        """Findings of a text that are let pass, by rule."""
        return self.counts.get(self.key(file), {})

    def stale(self, book: Rulebook) -> Iterator[Diagnostic]:
        """An error for each entry that counts more than there is. What was not looked at, or by no rule that is judged, is left alone."""
        judged, known = {r.id for r in book.rules}, {r.id for p in book.packs for r in p.rules}
        for file, rules in sorted(self.counts.items()):
            gone = not (self.path.parent / file).is_file()
            for id, count in sorted(rules.items()):
                if id not in known or gone:
                    yield self._stale(f"'{id}' in '{file}', which is not there" if gone else f"'{id}' in '{file}', a rule that is not there")
                elif file in self.seen and id in judged and self.seen[file].get(id, 0) < count:
                    now = self.seen[file].get(id, 0)
                    yield self._stale(f"{count} finding{'s' if count != 1 else ''} of '{id}' in '{file}', there {'is' if now == 1 else 'are'} {now}")

    def _stale(self, what: str) -> Diagnostic:
        why = "what is counted and not there would let as many new findings pass"
        return Diagnostic("rules/baseline-stale", f"the baseline '{self.path}' counts {what}", why=why, fix="run it with --prune-baseline")

    def prune(self, book: Rulebook) -> None:
        """Take out what is stale."""
        judged, known = {r.id for r in book.rules}, {r.id for p in book.packs for r in p.rules}

        def left(file: str, id: str, count: int) -> int:
            return min(count, self.seen[file].get(id, 0)) if file in self.seen and id in judged else count

        there = {f: rules for f, rules in self.counts.items() if (self.path.parent / f).is_file()}
        self.counts = {f: {i: n for i, c in rules.items() if i in known and (n := left(f, i, c))} for f, rules in there.items()}
        self.write()

    def renew(self) -> None:
        """Count what was found in the texts that were looked at; those of others are kept."""
        self.counts |= self.seen
        self.write()

    def write(self) -> None:
        """Raises OSError."""
        counts = {f: dict(sorted(rules.items())) for f, rules in sorted(self.counts.items()) if rules}
        text = json.dumps({"schema": SCHEMA, "counts": counts}, indent=2, ensure_ascii=False) + "\n"
        self.path.write_text(text, encoding="utf-8")


def read(path: Path, book: Rulebook) -> Baseline:
    """The file, strictly. Raises CakeError `rules/baseline`, and OSError where there is none."""
    if path.exists() and (not path.is_file() or path.stat().st_size > MAX_BYTES):
        raise _wrong(path, f"it is no file of at most {MAX_BYTES} bytes")
    try:
        data = json.loads(path.read_bytes().decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"it is no JSON: {' '.join(str(error).split())[:120]}") from None
    if not isinstance(data, dict) or data.keys() != {"schema", "counts"} or not isinstance(data["counts"], dict):
        raise _wrong(path, "it has 'schema' and 'counts', and nothing else")
    if data["schema"] != SCHEMA or isinstance(data["schema"], bool):
        raise _wrong(path, f"this version reads schema {SCHEMA}")
    known = {r.id for p in book.packs for r in p.rules}
    for file, rules in data["counts"].items():
        if not isinstance(rules, dict):
            raise _wrong(path, f"'{file}' has no counts by rule")
        for id, count in rules.items():
            if type(count) is not int or count < 1:
                raise _wrong(path, f"the count of '{id}' in '{file}' is no positive integer")
            if id in known and (refused := refusal(id, book, None)) is not None:
                raise _wrong(path, f"{refused.message}: {refused.why}")
    return Baseline(path, data["counts"])


def _unique(pairs: list[tuple[str, object]]) -> dict:
    out: dict = {}
    for key, value in pairs:
        if key in out:
            raise ValueError(f"the key '{key}' stands twice")
        out[key] = value
    return out


def _wrong(path: Path, what: str):
    at = Span(str(path), 1, 1, 1, 2)
    return fail("rules/baseline", f"'{path}' is no baseline: {what}", at, fix="mend it, or write it anew with --write-baseline")
