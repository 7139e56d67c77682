"""A review as a comment of a pull request. What a branch wrote stands in it as code, so that no name of it is a link, a mention or a heading."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cake_core.diagnostics import Diagnostic, Severity
from cake_core.review.difference import Row
from cake_core.review.packs import Compared, Fate
from cake_core.review.review import Difference, Review
from cake_core.review.steps import asked, step

#: Rows of a table in a comment, which has a limit of its own; the command prints all.
MOST_ROWS = 50


def comment(review: Review) -> str:
    refused = [d for d in review.findings if d.severity is Severity.ERROR]
    others = [d for d in review.findings if d.severity is not Severity.ERROR]
    parts = [f"## Rule review: {review.verdict}", _versions(review.difference)]
    if refused:
        parts += [f"### Refused for {len(refused)} reason{'s' if len(refused) != 1 else ''}", _findings(refused)]
    if others:
        parts += ["### To look at", _findings(others)]
    parts += [_rules(review.difference), _verdicts(review.difference.kernels), _costs(review.difference)]
    return "\n\n".join(p for p in parts if p) + "\n"


def code(text: object) -> str:
    """A text as code on one line, whatever stands in it."""
    plain = " ".join(str(text).split())
    fence = "`" * (max(map(len, re.findall("`+", plain)), default=0) + 1)
    pad = " " if plain.startswith("`") or plain.endswith("`") or not plain else ""
    return f"{fence}{pad}{plain}{pad}{fence}"


def cell(text: object) -> str:
    """The same in a table, whose cells end at a stroke, in code too."""
    return code(text).replace("|", "\\|")


def _versions(d: Difference) -> str:
    if not d.changed:
        return f"No pack differs from {code(d.base[:12])}."
    lines = [f"Compared with {code(d.base[:12])}.", "", "| pack | from | to | step | its changes ask for |", "| --- | --- | --- | --- | --- |"]
    for pack in d.changed:
        lines.append(f"| {cell(pack.name)} | {' | '.join(_version(pack))} |")
    return "\n".join(lines)


def _version(pack: Compared) -> tuple[str, str, str, str]:
    old, new = pack.versions
    if old is None or new is None:
        return old or "none", new or "none", "", ""
    found = step(old, new)
    return old, new, "back" if found is None else str(found), str(asked(old, pack.step))


def _findings(findings: Iterable[Diagnostic]) -> str:
    return "\n".join(map(_finding, findings))


def _finding(d: Diagnostic) -> str:
    at = f" {code(f'{d.span.file}:{d.span.line}')}" if d.span is not None else ""
    lines = [f"- **{d.code}**{at}: {code(d.message)}"]
    lines += [f"  - {what}: {code(said)}" for what, said in (("why", d.why), ("fix", d.fix)) if said]
    return "\n".join(lines)


def _rules(d: Difference) -> str:
    rows = []
    for pack in d.changed:
        for p in pack.pairs:
            if p.fate is Fate.SAME:
                continue
            name = cell(p.id) + (f" to {cell(p.new.id)}" if p.fate is Fate.RENAMED else "")
            said = "; ".join([*(f"{c.part}: {c.say}" for c in p.changes), *(f"{n} {how}" for n, how in p.texts)])
            rows.append(f"| {name} | {p.fate} | {p.step} | {cell(said) if said else ''} |")
    return _table("### Rules", ("rule", "is", "step", "by"), rows)


def _verdicts(found: Iterable[Row]) -> str:
    rows = []
    for r in (r for r in found if r.what != "same"):
        old, new = (t.verdict if t is not None else "" for t in (r.old, r.new))
        rows.append(f"| {cell(r.id)} | {cell(r.text)} | {r.what} | {old} | {new} |")
    return _table("### Verdicts on kernels", ("rule", "kernel", "", "before", "now"), rows)


def _costs(d: Difference) -> str:
    rows = []
    for id, (old, new) in d.costs.items():
        cells = [str(getattr(c, k)) if c is not None else "" for k in ("steps", "most") for c in (old, new)]
        rows.append(f"| {cell(id)} | {' | '.join(cells)} |")
    return _table("### Steps of the solver", ("rule", "all, before", "all, now", "largest, before", "largest, now"), rows)


def _table(title: str, columns: tuple[str, ...], rows: list[str]) -> str:
    if not rows:
        return ""
    left = len(rows) - MOST_ROWS
    more = [f"\n{left} more; `cake rules review` prints all."] if left > 0 else []
    return "\n".join([title, "", f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}", *rows[:MOST_ROWS], *more])
