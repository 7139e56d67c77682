"""The rules that a command judges: a suite of every pack, what is named beside it, and what the project says of their levels.

A suite is a choice among hints. Stable rules of safety and legality that a pack's default suite has are judged under any suite, and stay at
their level unless the project waives them, one by one, with a reason and an owner: nothing else makes a verifier look away.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from cake_core.diagnostics import Diagnostic, Severity, Sink
from cake_core.diagnostics.near import get_close_matches
from cake_core.frozen import frozen
from cake_core.rules.names import Named, named
from cake_core.rules.packs import find_packs
from cake_core.rules.schema import Kind, Level, Pack, Rule, Status
from cake_core.rules.settings import DEFAULT, FILE, Setting, Settings, Waiver
from cake_core.rules.versions import admits
from cake_core.source import Span

#: From what says nothing to what ends a build.
RANK = {Level.OFF: 0, Level.INFO: 1, Level.WARNING: 2, Level.ERROR: 3}


@frozen
class Rulebook:
    """The rules that a command judges, and the packs that they are from. `waivers`: what the project has below its level; `notes`: warnings
    about its settings; `lock`: the sha256 of the lock file that the packs were held to."""

    packs: tuple[Pack, ...]
    rules: tuple[Rule, ...]
    suite: str = DEFAULT
    waivers: tuple[Waiver, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    lock: str | None = None

    @property
    def versions(self) -> dict[str, str]:
        return {p.name: p.version for p in self.packs}


def rulebook(
    folders: tuple[Path, ...] = (), preview: bool = False, suite: str | None = None, also: tuple[str, ...] = (), settings: Settings | None = None
) -> Rulebook:
    """The rules of a suite of all packs, `folders` included. Raises CakeError.

    `preview`: the rules in preview too; `also`: ids of further rules, drafts among them; `suite`: before that of `settings`, which are what the
    project says. Without any, the default suites at the levels of the rules.
    """
    said, sink, packs = settings or Settings(), Sink(), find_packs(folders)
    _needed(packs, said, sink)
    name = suite or said.suite
    if not any(name in p.suites for p in packs):
        near = get_close_matches(name, {s for p in packs for s in p.suites}, n=1)
        fix = f"did you mean '{near[0]}'?" if near else None
        sink.error("config/unknown-suite", f"no pack has a suite '{name}'", None if suite else said.span, fix=fix)
    rules = {r.id: r for r in (*selected(packs, name), *(r for r in selected(packs) if firm(r)))}
    rules |= {r.id: r for p in packs for r in p.rules if preview and r.status is Status.PREVIEW}
    rules |= {r.id: r for id in also if (r := _rule(packs, id, None, sink)) is not None}
    waivers = _levels(packs, rules, said, sink)
    sink.stop_if_errors()
    return Rulebook(packs, tuple(rules[id] for id in sorted(rules)), name, waivers, tuple(sink.items))


def firm(rule: Rule) -> bool:
    """Whether a rule stands whatever a suite says, and below its level only with a waiver."""
    return rule.kind in (Kind.SAFETY, Kind.LEGALITY) and rule.status in (Status.STABLE, Status.DEPRECATED)


def selected(packs: tuple[Pack, ...], suite: str = DEFAULT) -> tuple[Rule, ...]:
    """The rules of a suite of every pack, of its default suite where it has none of this name, in the order of their ids."""
    out = [r for p in packs for r in p.rules if any(_fits(r, s) for s in p.suites.get(suite, p.suites.get(DEFAULT, ())))]
    return tuple(sorted(out, key=lambda r: r.id))


def _fits(rule: Rule, selector) -> bool:
    """Whether a selector takes a rule: a deprecated one wherever it takes a stable one, since it still has to hold; a draft only where it says so."""
    if rule.status is Status.DRAFT and "status" not in selector:
        return False
    return all(
        value == str(getattr(rule, key)) or key == "status" and value == "stable" and rule.status is Status.DEPRECATED
        for key, value in selector.items()
    )


# --- what a project says -----------------------------------------------------------------------------------------


def _needed(packs: tuple[Pack, ...], said: Settings, sink: Sink) -> None:
    there = {p.name: p for p in packs}
    for need in said.packs:
        other = there.get(need.name)
        if other is None:
            near = get_close_matches(need.name, there, n=1)
            fix = f"did you mean '{near[0]}'?" if near else "install it, or name its folder with --pack"
            sink.error("rules/pack", f"'{FILE}' asks for the pack '{need.name}', which is not there", said.span, fix=fix)
        elif need.range and not admits(need.range, other.version):
            what = f"'{FILE}' asks for the pack '{need.name}' {need.range}, there is {other.version} of {other.source}"
            sink.error("rules/pack", what, said.span, fix="install a version that fits")


def _levels(packs: tuple[Pack, ...], rules: dict[str, Rule], said: Settings, sink: Sink) -> tuple[Waiver, ...]:
    """Put the rules at the levels that the project says, and add those that it names. The waivers, by the ids that their rules have now."""
    spaces = {p.namespace for p in packs}
    whole = [s for s in said.levels if "/" not in s.name]
    for s in whole:
        if s.name not in spaces:
            near = get_close_matches(s.name, spaces, n=1)
            sink.error("config/unknown-rule", f"no pack has the namespace '{s.name}'", s.span, fix=f"did you mean '{near[0]}'?" if near else None)
        _lowered_whole(s, rules.values(), sink)
        for rule in [r for r in rules.values() if r.id.startswith(f"{s.name}/") and not (firm(r) and lower(s.level, r))]:
            rules[rule.id] = replace(rule, level=s.level)
    own = {r.id: r for p in packs for r in p.rules}
    _said_once(packs, said, sink)
    for s in (s for s in said.levels if s not in whole):
        if (rule := _rule(packs, s.name, s.span, sink)) is None:
            continue
        if firm(rule) and lower(s.level, own[rule.id]):
            sink.error(
                "config/waiver",
                f"'{rule.id}' is a stable rule of {rule.kind}, and '{s.level}' is below its level '{own[rule.id].level}'",
                s.span,
                why="what it finds would no longer end a build",
                fix=f'waive it: [[rules.waivers]] rule = "{rule.id}", level = "{s.level}", reason = "..", owner = ".."',
            )
        elif s.level is not Level.OFF or rule.id in rules:
            rules[rule.id] = replace(rules.get(rule.id, rule), level=s.level)
    return tuple(w for w in (_waived(packs, rules, w, sink) for w in said.waivers) if w is not None)


def _said_once(packs: tuple[Pack, ...], said: Settings, sink: Sink) -> None:
    """A rule may be named by two names, of which one is old."""
    names = [(s.name, s.span) for s in said.levels if "/" in s.name] + [(w.rule, w.span) for w in said.waivers]
    seen: dict[str, str] = {}
    for name, span in names:
        rule = named(packs, name).rule
        if rule is not None and seen.setdefault(rule.id, name) != name:
            sink.error("config/value", f"the level of '{rule.id}' is said twice, as '{seen[rule.id]}' and as '{name}'", span, fix="leave one out")


def _lowered_whole(s: Setting, rules: Iterable[Rule], sink: Sink) -> None:
    held = sorted(r.id for r in rules if r.id.startswith(f"{s.name}/") and firm(r) and lower(s.level, r))
    if held:
        sink.error(
            "config/waiver",
            f"'{s.name}' at '{s.level}' would have {len(held)} stable rule{'s' if len(held) > 1 else ''} of safety or legality below their level: '{held[0]}'"
            + (", .." if len(held) > 1 else ""),
            s.span,
            why="what they find would no longer end a build",
            fix="name the rules that are meant, and waive each that has to be",
        )


def _waived(packs: tuple[Pack, ...], rules: dict[str, Rule], w: Waiver, sink: Sink) -> Waiver | None:
    if (rule := _rule(packs, w.rule, w.span, sink)) is None:
        return None
    if not firm(rule):
        sink.error(
            "config/waiver",
            f"'{rule.id}' needs no waiver",
            w.span,
            why=f"it is a rule of {rule.kind}, {rule.status}",
            fix="write it under [rules.levels]",
        )
        return None
    if not lower(w.level, rule):
        sink.error("config/waiver", f"the waiver of '{rule.id}' waives nothing: '{w.level}' is not below '{rule.level}'", w.span, fix="leave it out")
        return None
    rules[rule.id] = replace(rule, level=w.level)
    return replace(w, rule=rule.id)


def lower(level: Level, rule: Rule) -> bool:
    return RANK[level] < RANK[rule.level]


def _rule(packs: tuple[Pack, ...], id: str, at: Span | None, sink: Sink) -> Rule | None:
    """The rule that is named; what there is to say of the name goes to the sink, an error where it names none."""
    of: Named = named(packs, id)
    if of.rule is None:
        sink.error("config/unknown-rule", of.said, at, why=of.why, fix=of.fix)
    elif of.said:
        sink.error("config/old-rule", of.said, at, severity=Severity.WARNING, why=of.why, fix=of.fix)
    return of.rule
