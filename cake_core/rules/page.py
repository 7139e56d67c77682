"""A rule as a page: what it matches in words, its expressions as written, its texts, and where a bad and a good one differ.

Behind `cake rules show` and `cake explain`. All of it is read from the rule's folder, so it needs no network and says what is judged.
"""

from __future__ import annotations

from difflib import SequenceMatcher, unified_diff
from pathlib import Path as File

from cake_core.frozen import frozen
from cake_core.rules.names import deprecation
from cake_core.rules.schema import Path, Pattern, Protocol, Relation, Rule, Status
from cake_core.rules.strict import Mapping, Node, Scalar, Sequence, read

#: Keys whose values are expressions or patterns, in the order in which they are read.
WRITTEN = ("where", "assume", "require", "must_pass", "of", "met", "within", "automaton", "message", "detail", "help")
#: Lines of a text around what differs that an excerpt shows.
AROUND = 2

OF = {"writer": "each thread that executed the first", "issuer": "the threads that execute the second", "anyone": "anyone"}


@frozen
class Example:
    """One text of a rule: its file name, its lines, and what is told of it (the golden), if anything is."""

    name: str
    text: str
    told: str = ""


@frozen
class Page:
    """`matches`: sentences; `written`: expressions by key, as they stand in the file; `avoid` and `prefer`: the nearest bad and good text where they
    differ, file name and numbered lines; `told`: the first line that is told of the bad one."""

    rule: Rule
    matches: tuple[str, ...]
    written: tuple[tuple[str, str], ...]
    definitions: tuple[tuple[str, str], ...]
    bad: tuple[Example, ...]
    good: tuple[Example, ...]
    gaps: tuple[Example, ...]
    avoid: tuple[str, str]
    prefer: tuple[str, str]
    told: str


def page(rule: Rule) -> Page:
    """The page of a rule that was loaded from a file. Raises CakeError where the file can't be read any more."""
    node = read(rule.path)
    bad, good, gaps = (examples(rule.path.parent, kind) for kind in ("bad", "good", "gap"))
    avoid, prefer, told = _nearest(bad, good)
    own = node.get("define")
    definitions = own.entries if isinstance(own, Mapping) else ()
    return Page(
        rule,
        tuple(_matches(rule)),
        tuple((key, _written(found)) for key in WRITTEN if (found := node.get(key)) is not None),
        tuple(_defined(str(k.value), v) for k, v in definitions if isinstance(v, Mapping)),
        bad,
        good,
        gaps,
        avoid,
        prefer,
        told,
    )


def examples(folder: File, kind: str) -> tuple[Example, ...]:
    """The texts of one kind beside a rule, in the order of their names; what can't be read is left to `cake rules test`."""
    out = []
    for path in sorted(folder.glob(f"{kind}_*.cake")):
        golden = path.with_suffix(".diag")
        told = golden.read_text(encoding="utf-8", errors="replace") if golden.is_file() else ""
        if path.is_file():
            out.append(Example(path.name, path.read_text(encoding="utf-8", errors="replace"), told))
    return tuple(out)


def record(page: Page) -> dict:
    """As JSON."""
    r = page.rule
    words = {k: str(getattr(r, k)) for k in ("kind", "level", "status", "precision", "category")}
    plain = {k: getattr(r, k) for k in ("id", "title", "pack", "version", "since", "owner", "why", "fix", "limits")}
    return {
        **plain,
        **words,
        "shape": type(r.shape).__name__.lower(),
        "matches": list(page.matches),
        "written": dict(page.written),
        "definitions": dict(page.definitions),
        "applies": {"capability": list(r.capabilities)},
        "covers": list(r.covers),
        "tags": list(r.tags),
        "until": r.until or None,
        "replaced_by": r.replaced_by or None,
        "related": [{"id": id, "type": type} for type, id in r.related],
        "references": [{"title": title, "url": url} for title, url in r.references],
        "budget": {"rlimit": r.rlimit},
        "path": str(r.path),
        "texts": {kind: [e.name for e in getattr(page, kind)] for kind in ("bad", "good", "gaps")},
        "avoid": {"text": page.avoid[0], "lines": page.avoid[1]},
        "prefer": {"text": page.prefer[0], "lines": page.prefer[1]},
        "told": page.told,
    }


def explained(page: Page) -> str:
    """The page as text, for a terminal."""
    r = page.rule
    by = f", pack {r.pack} {r.version}" if r.pack else ""
    parts = [
        f"{r.id}: {r.title}",
        f"{r.kind} rule, level {r.level}, {r.status} since {r.since}, precision {r.precision}{by}, owner {r.owner}",
        *_block("Deprecated", going(r)),
        *_block("What is wrong and why", r.why),
        *_block("It matches", "\n".join(page.matches)),
        *(block for key in ("where", "assume") for block in _block(key.capitalize(), dict(page.written).get(key, ""))),
    ]
    for title, (name, lines) in (("Avoid", page.avoid), ("Prefer", page.prefer)):
        parts += [f"{title} ({name}):\n\n{_indented(lines)}"] if name else []
        parts += [f"which is told as:\n\n{_indented(page.told)}"] if title == "Avoid" and page.told else []
    parts += [
        *_block("Fix", r.fix),
        *_block("Not decided", r.limits),
        *_block("Applies where the target offers", ", ".join(r.capabilities)),
        *_block("Proves, with all others that cover it", ", ".join(r.covers)),
        *_block("Related rules", "\n".join(f"{id}, {type}" for type, id in r.related)),
        *_block("References", "\n".join(f"{title}{f', {url}' if url else ''}" for title, url in r.references)),
        *_block("Tests", ", ".join(e.name for e in (*page.bad, *page.good, *page.gaps))),
    ]
    return "\n\n".join(parts) + "\n"


def going(rule: Rule) -> str:
    """Of a deprecated rule, how long it stays and what to use."""
    if rule.status is not Status.DEPRECATED:
        return ""
    said, _, instead = deprecation(rule)
    return "; ".join(part for part in (said, instead) if part)


def _block(title: str, text: str) -> list[str]:
    from textwrap import fill

    if not text:
        return []
    return [f"{title}:\n" + "\n".join(fill(line, 100, initial_indent="  ", subsequent_indent="  ") for line in text.splitlines())]


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


# --- what is matched, in words -----------------------------------------------------------------------------------


def _matches(rule: Rule):
    match rule.shape:
        case Relation(match=match):
            for name, pattern in match:
                yield f"{name}: {said(pattern)}"
        case Path() as p:
            over = "" if p.hand_offs else ", inside of one agent"
            yield f"every way from {said(p.start)} to {said(p.end)}{over}"
            yield f"must pass {' or '.join(map(said, p.must_pass))}, executed by {OF[p.of]}"
        case Protocol() as p:
            yield f"each {p.resource.relation} sees events as: {p.automaton}"
            for name, pattern in p.events:
                yield f"{name}: {said(pattern)}"


def said(pattern: Pattern) -> str:
    """`an access with space shared or tensor, mode write`."""
    article = "an" if pattern.relation[0] in "aeiou" else "a"
    if pattern.relation in ("start", "end"):
        return f"the {pattern.relation}"
    columns = ", ".join(f"{name} {' or '.join(map(_value, values))}" for name, values in pattern.columns)
    return f"{article} {pattern.relation}{f' with {columns}' if columns else ''}"


def _value(value: object) -> str:
    return (
        {True: "true", False: "false", None: "none"}.get(value, str(value)) if not isinstance(value, int) or isinstance(value, bool) else str(value)
    )


def _defined(name: str, node: Mapping) -> tuple[str, str]:
    """`total(bar: barrier)` and its body."""
    of, body = node.get("of"), node.get("as")
    arguments = ", ".join(f"{k.value}: {_written(v)}" for k, v in of.entries) if isinstance(of, Mapping) else ""
    return f"{name}({arguments})", _written(body) if body is not None else ""


def _written(node: Node) -> str:
    """A value of the file on one line, or its lines as they are."""
    match node:
        case Scalar(value=bool() as value):
            return "true" if value else "false"
        case Scalar(value=value):
            return str(value).strip()
        case Sequence(items=items):
            return f"[{', '.join(map(_written, items))}]"
        case Mapping(entries=entries):
            return f"{{{', '.join(f'{k.value}: {_written(v)}' for k, v in entries)}}}"
    raise AssertionError(type(node).__name__)


# --- the nearest bad and good text -------------------------------------------------------------------------------


def _nearest(bad: tuple[Example, ...], good: tuple[Example, ...]) -> tuple[tuple[str, str], tuple[str, str], str]:
    """Where the bad and the good text that differ least do, name and lines of each, and the first line that is told of the bad one."""
    nothing = ("", "")
    if not bad:
        return nothing, nothing, ""
    a, b = min(((a, b) for a in bad for b in good), key=lambda pair: _changes(*pair), default=(bad[0], None))
    told = a.told.partition("\n")[0]
    left, right = a.text.splitlines(), b.text.splitlines() if b is not None else []
    changed = [op for op in SequenceMatcher(None, left, right, autojunk=False).get_opcodes() if op[0] != "equal"]
    if b is None or not changed:
        return (a.name, _excerpt(a.text, 0, len(left))), nothing, told
    first, last = changed[0], changed[-1]
    return (a.name, _excerpt(a.text, first[1], last[2])), (b.name, _excerpt(b.text, first[3], last[4])), told


def _changes(a: Example, b: Example) -> tuple[int, str, str]:
    lines = list(unified_diff(a.text.splitlines(), b.text.splitlines(), lineterm="", n=0))
    return sum(line[0] in "+-" for line in lines), a.name, b.name


def _excerpt(text: str, start: int, end: int) -> str:
    """Lines `start` .. `end` - 1 with those around, numbered; of a long stretch the two ends."""
    lines = text.splitlines()
    first, last = max(start - AROUND, 0), min(end + AROUND, len(lines))
    shown = [f"{n + 1:>3} | {lines[n]}" for n in range(first, last)]
    return "\n".join(shown if len(shown) <= 24 else [*shown[:12], "...", *shown[-11:]])
