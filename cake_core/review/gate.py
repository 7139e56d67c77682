"""Whether a change of packs may be merged: what is refused, each as a finding. What the comparison leaves open is refused too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from cake_core.diagnostics import Diagnostic, Severity
from cake_core.review.compare import binding, edited
from cake_core.review.difference import Cost, Row, costs
from cake_core.review.packs import Compared, Fate, Pair, gone
from cake_core.review.snapshot import Snapshot
from cake_core.review.steps import Step, asked, next_version, step
from cake_core.rules import Outcome, Pack, Rule, load_pack
from cake_core.rules.schema import Level, Status
from cake_core.rules.store import written
from cake_core.rules.stored import FILE, stored
from cake_core.rules.versions import numbers
from cake_core.source import Span

#: Characters of a soundness note: fewer give no reason.
NOTE = 20
#: Owners that nobody could ask.
NOBODY = frozenset(
    ["agent", "ai", "anonymous", "bot", "me", "n/a", "nobody", "none", "owner", "somebody", "someone", "tba", "tbd", "todo", "unknown", "various"]
)


def refusals(
    head: Snapshot, packs: Iterable[Compared], rows: Iterable[Row], zoo: Iterable[Row], unread: tuple[tuple[str, ...], tuple[str, ...]]
) -> list[Diagnostic]:
    """All that speaks against a change, warnings among them. `rows`: verdicts on the texts beside rules, `zoo`: on kernels; `unread`: kernels of
    the zoo and others that nothing was judged of."""
    rows, zoo = list(rows), list(zoo)
    packs = list(packs)
    out = [*_odd(head), *_twice(packs)]
    covered = {c for p in packs for q in p.pairs if q.old is not None and binding(q.old) for c in q.old.covers} | _elsewhere(packs)
    for pack in packs:
        out += [*_unread(pack), *_stored(head, pack)]
        if not pack.files:
            continue
        for pair in pack.pairs:
            out += [*_pair(pair, pack), *_first(pair, pack, covered)]
        out += _budgets(pack, [*rows, *zoo])
        out += _tombs(pack)
        out += _version(pack)
    rules = {p.id: p.new for c in packs for p in c.pairs if p.new is not None}
    out += _zoo(zoo, rules)
    if any(p.judges for c in packs for p in c.pairs):
        out += _unjudged(*unread)
    return out


def _at(pack: Compared, name: str = "pack.yaml") -> Span:
    held = pack.new or pack.old
    return Span((PurePosixPath(held.folder) / name).as_posix(), 1, 1, 1, 2)


# --- files -------------------------------------------------------------------------------------------------------


def _odd(head: Snapshot) -> Iterator[Diagnostic]:
    for path, kind in head.odd:
        what = {"link": "is a symbolic link", "module": "is another repository"}.get(kind, "has a name that is not read")
        fix = "put the file itself there" if kind != "name" else "give it a name in UTF-8, without '..', '.git' and backslashes"
        yield Diagnostic("review/odd-file", f"'{path}' {what}", Span(path, 1, 1, 1, 2), fix=fix)


def _twice(packs: list[Compared]) -> Iterator[Diagnostic]:
    seen: dict[str, Compared] = {}
    for pack in (p for p in packs if p.new is not None and p.new.pack is not None):
        for word in {pack.new.pack.name, pack.new.pack.namespace}:
            if (other := seen.setdefault(word, pack)) is not pack:
                why = f"in '{other.new.folder}' and in '{pack.new.folder}'"
                yield Diagnostic("rules/repeated", f"two packs are called '{word}'", _at(pack), why=why, fix="take one of them away")


def _unread(pack: Compared) -> Iterator[Diagnostic]:
    if pack.new is not None:
        yield from pack.new.findings
    if pack.old is not None and pack.old.findings:
        first = pack.old.findings[0]
        yield Diagnostic(
            "review/base",
            f"the pack in '{pack.old.folder}' can't be read as it was before",
            first.span,
            why=f"of the old version: {first.message}",
            fix="mend the pack on the base first; where it is the engine that changed, change engine and pack in two steps, each of which reads what was there before",
        )


def _stored(head: Snapshot, pack: Compared) -> Iterator[Diagnostic]:
    """A stored form is taken for the pack where it is of these files: it must be what reading them gives, or it hides what is judged."""
    if pack.new is None or pack.new.pack is None or FILE not in pack.new.files:
        return
    place = head.place / pack.new.folder
    if stored(place, place.name, "") is None:  # it is of other files, or of another Cake, and nobody takes it
        return
    if written(load_pack(place, place.name), place.name).encode() != pack.new.files[FILE]:
        message = f"'{FILE}' of the pack '{pack.name}' says something else than its rules"
        yield Diagnostic("review/stored", message, _at(pack, FILE), fix="write it anew: python -m cake_core.rules.store")


# --- rules -------------------------------------------------------------------------------------------------------


def _pair(pair: Pair, pack: Compared) -> Iterator[Diagnostic]:
    if pair.fate is Fate.SAME:
        return
    if pair.old is not None:
        yield from _loosened(pair, pack)
        yield from _tests(pair, pack)
    if pair.new is not None:
        yield from _owner(pair.new)
        yield from _authors(pair)
    if pair.old is not None and pair.new is not None and pair.old.owner != pair.new.owner:
        message = f"'{pair.new.id}' was owned by '{pair.old.owner}' and is now by '{pair.new.owner}'"
        yield Diagnostic("review/owner", message, pair.new.span, Severity.WARNING, fix="let the old owner agree")


def _loosened(pair: Pair, pack: Compared) -> Iterator[Diagnostic]:
    if not binding(pair.old) or not (pair.looser or pair.fate is Fate.RENAMED) or _noted(pair, pack):
        return
    said = "; ".join(f"{c.part}: {c.say}" for c in pair.changes if c.direction.dangerous)
    became = {Fate.REMOVED: "is no more", Fate.RENAMED: f"is now '{pair.new.id if pair.new else ''}'"}.get(pair.fate, "may let more pass than before")
    yield Diagnostic(
        "review/loosened",
        f"the stable rule '{pair.id}' {became}, and no soundness note says why that is safe",
        pair.new.span if pair.new is not None else _at(pack),
        why=said or None,
        fix=_note_of(pair.id, pack),
    )


def _elsewhere(packs: list[Compared]) -> set[str]:
    """Categories that rules of packs cover which are as they were: such a pack has no pairs."""
    there = [p.old.pack for p in packs if not p.pairs and p.old is not None and p.old.pack is not None]
    return {c for pack in there for r in pack.rules if binding(r) for c in r.covers}


def _first(pair: Pair, pack: Compared, covered: set[str]) -> Iterator[Diagnostic]:
    """A category that no rule covers is told as not proved. The first rule that covers it makes it proved, by what that rule asks and no more."""
    if pair.new is None or not binding(pair.new) or pair.old is not None and binding(pair.old) or _noted(pair, pack):
        return
    if first := [c for c in pair.new.covers if c not in covered]:
        yield Diagnostic(
            "review/loosened",
            f"'{pair.new.id}' is the first stable rule here that covers {', '.join(first)}, and no soundness note says why it proves that",
            pair.new.span,
            why="where it holds, and all others that cover the same, the category is told as proved",
            fix=_note_of(pair.new.id, pack).replace("mend the rule", "leave 'covers' out"),
        )


def _note_of(id: str, pack: Compared) -> str:
    own = pack.new.pack.version if pack.old is None or pack.old.pack is None else ""
    version = own or next_version(pack.old.pack.version, Step.MAJOR)
    return f"mend the rule, or write in pack.yaml under 'soundness': {{version: \"{version}\", rules: [{id}], note: why nothing wrong passes}}"


def _noted(pair: Pair, pack: Compared) -> bool:
    """Whether a note of this version, which was not there before, speaks of the rule."""
    if pack.new is None or pack.new.pack is None:
        return False
    before = pack.old.pack.soundness if pack.old is not None else ()
    own = pack.new.pack
    ids = {pair.id, *((pair.new.id,) if pair.new is not None else ())}
    said = {n.note for n in before}
    return any(n.version == own.version and ids & set(n.rules) and len(n.note) >= NOTE and n.note not in said for n in own.soundness)


def _tests(pair: Pair, pack: Compared) -> Iterator[Diagnostic]:
    """Texts of a rule that binds, and what is told of them, stay as they are while what it judges changes: they are its only witnesses."""
    if pair.new is None or not binding(pair.old):
        return
    touched = [(n, how) for n, how in pair.texts if how != "new" and n.endswith((".cake", ".diag"))]
    both = edited(pair.old, pair.new)
    told = all(n.endswith(".diag") for n, _ in touched)  # what is told has the words, and the name, of the rule
    if not touched or not both and (pair.fate is Fate.RENAMED or pair.fate is Fate.WORDS and told):
        return
    named = ", ".join(f"'{n}' is {how}" for n, how in touched)
    yield Diagnostic(
        "review/tests-edited",
        f"existing texts of '{pair.new.id}' are others than before{', and so is what it judges' if both else ''}: {named}",
        _at(pack, f"rules/{pair.new.id.partition('/')[2]}/{touched[0][0]}"),
        Severity.ERROR if both else Severity.WARNING,
        why="with both changed nothing is left that shows what the rule found" if both else None,
        fix="leave the texts as they are and add new ones; make two changes of it where old ones are wrong"
        if both
        else "look at each: they are the rule's tests",
    )


def nobody(name: str) -> bool:
    """Whether an owner's name is of no one who could be asked."""
    return name.strip().casefold() in NOBODY or sum(c.isalpha() for c in name) < 2


def _owner(rule: Rule) -> Iterator[Diagnostic]:
    agents = {a.name.casefold() for a in rule.authors if a.kind == "agent"}
    name = rule.owner.strip()
    if nobody(name):
        wrong = f"'{rule.id}' has no owner" if not name else f"'{name}' is nobody who could answer for '{rule.id}'"
    elif name.casefold() in agents:
        wrong = f"'{name}', who owns '{rule.id}', is an agent"
    else:
        return
    yield Diagnostic("review/owner", wrong, rule.span, fix="name a person, or a group that has a name")


def _authors(pair: Pair) -> Iterator[Diagnostic]:
    rule = pair.new
    agents = [a for a in rule.authors if a.kind == "agent"]
    for a in agents:
        if not a.run.strip():
            yield Diagnostic(
                "review/provenance",
                f"'{a.name}', an agent and author of '{rule.id}', has no run",
                rule.span,
                fix="write {name: .., kind: agent, run: ..}: which of its runs wrote the rule",
            )
    before = [a for a in (pair.old.authors if pair.old is not None else ()) if a.kind == "agent"]
    for a in before:
        if a not in agents:
            yield Diagnostic(
                "review/provenance", f"'{rule.id}' no longer says that '{a.name}', an agent, is an author", rule.span, fix="say it again"
            )
    if agents and pair.old is None and rule.status is not Status.DRAFT:
        yield Diagnostic(
            "review/agent-status",
            f"'{rule.id}' is new, an agent is its author, and its status is {rule.status}",
            rule.span,
            why="what an agent writes starts as a draft; its owner promotes it in a change of its own",
            fix="write 'status: draft'",
        )


# --- budgets and verdicts ----------------------------------------------------------------------------------------


def _budgets(pack: Compared, rows: list[Row]) -> Iterator[Diagnostic]:
    pairs = {p.id: p for p in pack.pairs if p.new is not None}
    taken = costs(rows)
    for id, pair in pairs.items():
        now: Cost | None = taken.get(id, (None, None))[1]
        rule = pair.new
        if pair.old is not None and rule.rlimit > pair.old.rlimit and not _noted(pair, pack):
            yield Diagnostic(
                "review/budget",
                f"the budget of '{id}' is raised from {pair.old.rlimit} to {rule.rlimit} steps, and no note says why",
                rule.span,
                fix=_note_of(id, pack).replace("why nothing wrong passes", "why it takes more"),
            )
        if pair.judges and now is not None and now.most > rule.rlimit:
            yield Diagnostic(
                "review/budget",
                f"a question of '{id}' takes {now.most} steps of the solver, its budget is {rule.rlimit}",
                rule.span,
                why="on one text of twenty or more it is as expensive as that",
                fix="ask less, by a narrower match, or state a budget",
            )


def _zoo(rows: list[Row], rules: dict[str, Rule]) -> Iterator[Diagnostic]:
    for row in (r for r in rows if r.zoo):
        rule = rules.get(row.id)
        if rule is None or row.what == "new" and row.new.verdict in (Outcome.PROVED, Outcome.INAPPLICABLE):
            continue
        if row.what == "same" and row.new.verdict != Outcome.ERROR:  # without an answer twice, nothing is known
            continue
        before = row.old.verdict if row.old is not None else "not judged"
        draft = rule.status is Status.DRAFT or row.old is None and rule.level is not Level.ERROR
        line, message = next(iter(row.new.told), (0, None))
        yield Diagnostic(
            "review/zoo",
            f"'{row.id}' on {row.text} was {before} and is {row.new.verdict}",
            rule.span,
            Severity.WARNING if draft else Severity.ERROR,
            why=f"line {line}: {message}" if message and line else message,
            fix="a kernel that is known to be right stays as it is judged: mend the rule",
        )


def _unjudged(zoo: tuple[str, ...], corpus: tuple[str, ...]) -> Iterator[Diagnostic]:
    for names, severity in ((zoo, Severity.ERROR), (corpus, Severity.WARNING)):
        for name in names:
            yield Diagnostic(
                "review/zoo",
                f"nothing is known of '{name}': it has no facts here",
                Span(name, 1, 1, 1, 2),
                severity,
                fix="`cake check` says why; plugins of its targets must be installed",
            )


# --- packs -------------------------------------------------------------------------------------------------------


def _tombs(pack: Compared) -> Iterator[Diagnostic]:
    if pack.old is None or pack.old.pack is None:
        return
    if pack.new is None:
        yield Diagnostic("review/tombstone", f"the pack '{pack.name}' is gone, with {len(pack.old.pack.rules)} rules", _at(pack), fix="bring it back")
        return
    if pack.new.pack is None:
        return
    old, new = pack.old.pack, pack.new.pack
    there, given_up = {r.id for r in new.rules}, gone(new)
    for rule in old.rules:
        if rule.id not in there and rule.id not in given_up:
            yield _tomb(pack, new, f"'{rule.id}' is gone and is not listed under 'removed'", rule.id)
    for id in sorted(gone(old)):
        if id in there:
            yield Diagnostic(
                "review/id-reused",
                f"'{id}' was given up and is the id of a rule again",
                next(r.span for r in new.rules if r.id == id),
                why="who named the old rule would get another one",
                fix="choose another id",
            )
        elif id not in given_up:
            yield _tomb(pack, new, f"'{id}' is no longer listed under 'removed'", id)
    for tomb in new.removed:
        if tomb.id in {r.id for r in old.rules} and numbers(tomb.since) != numbers(new.version):
            yield _tomb(pack, new, f"'{tomb.id}' is removed since {tomb.since}, and the version without it is {new.version}", tomb.id)


def _tomb(pack: Compared, new: Pack, message: str, id: str) -> Diagnostic:
    fix = f"write in pack.yaml under 'removed': {{id: {id}, since: \"{new.version}\", reason: .., replaced_by: ..}}"
    return Diagnostic("review/tombstone", message, _at(pack), fix=fix)


def _version(pack: Compared) -> Iterator[Diagnostic]:
    old, new = pack.versions
    if old is None or new is None:
        return
    needed, found = asked(old, pack.step), step(old, new)
    if found is not None and found >= needed:
        return
    largest = next((p for p in pack.pairs if p.step is pack.step), None)
    why = f"'{largest.id}' is {largest.fate}" if largest is not None and pack.step > Step.PATCH else "files of the pack are others than before"
    yield Diagnostic(
        "review/version",
        f"the version of '{pack.name}' goes from {old} to {new}, its changes ask for a {needed} step"
        if old != new
        else f"the version of '{pack.name}' is {old} as before, its changes ask for a {needed} step",
        _at(pack),
        why=why,
        fix=f'write version: "{next_version(old, pack.step)}"',
    )
