"""The safety categories: what of a kernel has to be proved, what may stay open, and what is told where a proof is missing.

A build ends where a category that has to be proved is not, unless it is told to let that pass; then the manifest says so. Some
categories no stable rule settles, in any kernel: what data in memory decide, for one. They stand in the manifest as unproved and end no
build. A category that a kernel has nothing of is not among its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from cake_core.diagnostics import Diagnostic, Severity
from cake_core.facts import Rows
from cake_core.facts.ending import ends
from cake_core.facts.schema import While, walk
from cake_core.frozen import frozen
from cake_core.rules import Outcome, Rule, Verdict


@frozen
class Category:
    """A class of faults. `required`: a build ends where it is not proved; else it may stay open. `concerns`: whether a kernel can have one."""

    name: str
    required: bool = True
    concerns: Callable[[Rows], bool] = lambda rows: True


def _refilled(rows: Rows) -> bool:
    """An engine writes shared memory that threads use."""
    touched = [(r["buffer"], r["proxy"], r["mode"]) for r in rows["access"] if r["space"] == "shared"]
    by_threads = {b for b, proxy, _ in touched if proxy == "generic"}
    return any(b in by_threads for b, proxy, mode in touched if proxy != "generic" and mode == "write")


def _loaded_beside_writes(rows: Rows) -> bool:
    """A number from memory says where a tensor is touched, or whether, that is written."""
    touched = [r for r in rows["access"] if r["space"] == "global"]
    written = {r["buffer"] for r in touched if r["mode"] == "write"}
    return any(r["buffer"] in written and (r["loaded"] or rows.find("event", r["event"])["loaded"]) for r in touched)


def _shares(rows: Rows) -> bool:
    return any(r["alias"] for r in rows["buffer"])


def _whiles(rows: Rows) -> Iterator[While]:
    facts = rows.facts
    return (n for block in (facts.before, facts.after, *(r.body for r in facts.roles)) for n in walk(block) if isinstance(n, While))


CATEGORIES = (
    Category("deadlock"),
    Category("data races"),
    Category("barrier phases"),
    Category("completion of asynchronous operations"),
    Category("reads of what no one has written"),
    Category("races between CTAs"),
    Category("bounds of unclipped accesses"),
    Category("index overflow"),
    Category("that buffers which share bytes are in use at different times", concerns=_shares),
    Category("what one buffer holds behind writes to another one in its bytes", False, _shares),
    Category("fences before engines write what threads have read", False, _refilled),
    Category(
        "races between CTAs, where numbers from memory decide",
        False,
        lambda rows: any(r["space"] == "global" and r["mode"] == "write" and rows.find("event", r["event"])["loaded"] for r in rows["access"]),
    ),
    Category("order in a CTA of what touches global memory, where numbers from memory decide", False, _loaded_beside_writes),
    Category("bounds of indices that are read from memory", False, lambda rows: any(r["loaded"] for r in rows["access"])),
    Category("overflow of numbers that are read from memory", False, lambda rows: any(r["loaded"] for r in rows["event"])),
    Category("that loops end which go by what they read", False, lambda rows: any(not ends(w) for w in _whiles(rows))),
    Category("what workspaces hold at the end", False, lambda rows: any(r["mode"] == "workspace" for r in rows["buffer"])),
)

#: The names, in the order of manifests: first those that have to be proved.
SAFETY = tuple(c.name for c in CATEGORIES)
REQUIRED = tuple(c.name for c in CATEGORIES if c.required)

_RIGHT = (Outcome.PROVED, Outcome.INAPPLICABLE)


@frozen
class Account:
    """Of one kernel: its categories by what became of them. `allowed`: of the unproved ones, those that only a permission lets pass."""

    proved: tuple[str, ...] = ()
    unproved: tuple[str, ...] = SAFETY
    allowed: tuple[str, ...] = REQUIRED


def account(rules: Collection[Rule], verdicts: Collection[Verdict], rows: Rows) -> Account:
    """Proved are the categories of which every rule that speaks of them was judged, and none is broken or undecided."""
    right = {v.rule.id for v in verdicts} - {v.rule.id for v in verdicts if v.outcome not in _RIGHT}
    covered = {c for r in rules for c in r.covers} - {c for r in rules if r.id not in right for c in r.covers}
    own = [c.name for c in CATEGORIES if c.concerns(rows)]
    unproved = tuple(c for c in own if c not in covered)
    return Account(tuple(c for c in own if c in covered), unproved, tuple(c for c in unproved if c in REQUIRED))


def told(verdicts: Collection[Verdict], allow: Collection[str]) -> list[Diagnostic]:
    """The findings of verdicts, without those that `not_analysed` tells together. An undecided rule is a warning where all that it covers
    is allowed to be unproved. One run that goes wrong is told once: not by a rule that follows another one which tells the same run."""
    found = [_let_pass(v, allow) for v in verdicts if v.finding is not None and not _outside(v)]
    return [d for d in found if d.witness is None or not any(_says(other, d) for other in found)]


def _says(other: Diagnostic, d: Diagnostic) -> bool:
    return other.code in d.follows and other.severity is d.severity and (other.span, other.witness) == (d.span, d.witness)


def not_analysed(of: Account, verdicts: Collection[Verdict], rows: Rows, allow: Collection[str]) -> list[Diagnostic]:
    """What is told of the categories that have to be proved and are not, where no error of a rule says it: an error, or of those in
    `allow` a warning."""
    wrong = [v for v in verdicts if v.outcome not in _RIGHT]
    said = {c for v in wrong if not _outside(v) and v.finding is not None and v.finding.severity is Severity.ERROR for c in v.rule.covers}
    missing = [c for c in of.allowed if c not in said]
    refused, passed = ([c for c in missing if (c in allow) is let] for let in (False, True))
    return [_missing(which, s, wrong, rows) for s, which in ((Severity.ERROR, refused), (Severity.WARNING, passed)) if which]


def _missing(categories: list[str], severity: Severity, wrong: list[Verdict], rows: Rows) -> Diagnostic:
    concerned = [v for v in wrong if set(v.rule.covers) & set(categories)]
    first = next((v for v in concerned if _outside(v)), concerned[0] if concerned else None)
    if first is None:
        reason = "no rule that is judged covers what is left open"
    else:
        reason = first.answer.reason if _outside(first) else first.finding.message
    rules = ", ".join(dict.fromkeys(f"'{v.rule.id}'" for v in concerned))
    places = [*([first.answer.at] if first is not None and first.answer is not None else []), *(v.finding.span for v in concerned)]
    fix = "write the loop or the stage in a form that docs/proof.md names"
    return Diagnostic(
        "rules/not-analysed",
        f"'{rows.facts.kernel}' is not proved: {reason}",
        next((s for s in places if s is not None and s.line), rows["kernel"][0].span),
        severity,
        why=f"left open: {', '.join(categories)}" + (f"; not decided: {rules}" if rules else ""),
        fix=fix if severity is Severity.WARNING else f"{fix}; to build it all the same, {_options(categories)}",
    )


def _let_pass(v: Verdict, allow: Collection[str]) -> Diagnostic:
    mine = [c for c in SAFETY if c in v.rule.covers and c in REQUIRED]
    if v.outcome is not Outcome.UNKNOWN or not mine or v.finding.severity is not Severity.ERROR:
        return v.finding
    if all(c in allow for c in mine):
        return replace(v.finding, severity=Severity.WARNING)
    return replace(v.finding, fix=v.finding.fix or f"decide it by what the text says, or build it all the same, {_options(mine)}")


def _outside(v: Verdict) -> bool:
    """The method does not speak of such a kernel."""
    return v.outcome is Outcome.UNKNOWN and v.answer is not None and v.answer.outside and any(c in REQUIRED for c in v.rule.covers)


# --- categories on the command line ------------------------------------------------------------------------------


def _options(categories: Collection[str]) -> str:
    return " ".join(f"--allow-unproved {c.replace(' ', '-')}" for c in categories)


def named(text: str) -> str | None:
    """The category that is meant by its words, with blanks or hyphens between; None: there is none."""
    words = " ".join(text.replace("-", " ").split()).lower()
    return next((c for c in SAFETY if c.lower() == words), None)
