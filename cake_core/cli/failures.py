"""What `cake rules new --from` reads: findings, mutants and failures of kernels, and the rule that is drafted of one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from cake_core.cli.host import registry
from cake_core.cli.judged import rules_of
from cake_core.cli.output import read_source
from cake_core.cli.reduce import Texts, formatted
from cake_core.frozen import frozen
from cake_core.source import Source

#: Most bytes of a file that is read.
MOST = 16 << 20


@frozen
class Failure:
    """`bad`, `good`: the kernel and its repaired twin; `line`: of the bad text as it was given; `what`: words; `code`: of a finding; `fault`: of the event
    machine."""

    bad: Source
    good: Source | None = None
    line: int | None = None
    what: str = ""
    code: str | None = None
    fault: str | None = None


def read(file: str, text: str | None, fixed: str | None, number: int | None, arch: str | None, kernel: str | None = None) -> Failure:
    """The failure that a JSON file speaks of. Raises click.UsageError for what it is not, click.FileError, CakeError."""
    path = Path(file)
    try:
        with open(path, "rb") as f:
            data = f.read(MOST + 1)  # of a device there is no end
        whole = json.loads(data) if len(data) <= MOST else None
    except OSError as error:
        raise click.FileError(file, error.strerror) from None
    except (ValueError, RecursionError):
        raise click.UsageError(f"--from: '{file}' is no JSON") from None
    if not isinstance(whole, dict):
        raise click.UsageError(f"--from: '{file}' is no object; 'cake rules new --help' says what it may be")
    if "mutants" in whole:
        found = _mutant(whole, text, number, arch, kernel)
    elif "kernel" in whole:
        bad = _file(path, _word(whole, "kernel") or "")
        repaired = _word(whole, "fixed")
        good = read_source(_file(path, repaired)) if repaired else None
        line = whole.get("line") if type(whole.get("line")) is int else None
        found = Failure(read_source(bad), good, line, _word(whole, "what") or "", None, _word(whole, "fault"))
    else:
        found = _finding(path, whole, text, number)
    return replace(found, good=read_source(fixed)) if fixed is not None else found


def _finding(path: Path, whole: dict, text: str | None, number: int | None) -> Failure:
    listed = whole.get("diagnostics", [whole])
    told = [d for d in listed if isinstance(d, dict) and isinstance(d.get("code"), str)] if isinstance(listed, list) else []
    if not told:
        raise click.UsageError(f"--from: '{path}' holds no finding, no mutants and no 'kernel'")
    if number is not None and number > len(told):
        raise click.UsageError(f"--number: there are {len(told)} findings")
    d = told[number - 1] if number is not None else next((d for d in told if d.get("severity") == "error"), told[0])
    span = d.get("span") if isinstance(d.get("span"), dict) else {}
    name = text or span.get("file")
    if not isinstance(name, str):
        raise click.UsageError(f"--from: finding '{d['code']}' names no text; name it with --text")
    line = span.get("line") if type(span.get("line")) is int else None
    return Failure(read_source(text or _file(path, name)), None, line, str(d.get("message", "")), d["code"])


def _mutant(whole: dict, text: str | None, number: int | None, arch: str | None, kernel: str | None) -> Failure:
    """A mutant is made again: the list says which operator changed what."""
    from cake_core.ir.nodes import Program
    from cake_core.ir.printer import program_text
    from cake_core.mutate import mutants
    from cake_core.pipeline import frontend

    if text is None:
        raise click.UsageError("--text: of which kernel are the mutants?")
    listed = [m for m in whole["mutants"] if isinstance(m, dict) and m.get("operator") != "none"] if isinstance(whole["mutants"], list) else []
    if number is not None and number > len(listed):
        raise click.UsageError(f"--number: there are {len(listed)} mutants")
    one = listed[number - 1] if number is not None else next((m for m in listed if m.get("outcome") == "missed"), None)
    if one is None:
        raise click.UsageError("--from: no mutant is missed; choose one with --number")
    front = frontend(read_source(text), registry(), arch or whole.get("arch"), kernel=kernel)
    key = one.get("operator"), one.get("what"), one.get("line")
    edit = next((e for e in mutants(front.derived, front.typed, registry()) if (e.operator, e.what, e.span.line) == key), None)
    if edit is None:
        raise click.UsageError(f"--from: '{text}' has no such mutant: {one.get('operator')}, {one.get('what')}")
    bad, good = (program_text(Program(front.program.version, True, (k,))) for k in (edit.kernel, front.derived))
    fault = one["machine"].get("kind") if isinstance(one.get("machine"), dict) else None
    return Failure(Source("mutant.cake", bad), Source(text, good), None, f"{edit.operator}: {edit.what}", None, fault)


def _word(whole: dict, key: str) -> str | None:
    found = whole.get(key)
    if found is not None and not isinstance(found, str):
        raise click.UsageError(f"--from: '{key}' is a text")
    return found


def _file(beside: Path, name: str) -> str:
    """A path as it is, or beside the file that names it."""
    other = beside.parent / name
    return str(other) if not Path(name).exists() and other.exists() else name


# --- the draft ---------------------------------------------------------------------------------------------------


def drafted(new, found: Failure, arch: str | None, kernel: str | None, tries: int, on_step):
    """The rule with its texts, made small where an oracle speaks of them; and what became of that, as JSON. Raises CakeError, click.UsageError."""
    from cake_core.reduce import Pair, minimise
    from cake_core.rules.draft import body

    book = rules_of()
    texts = Texts(book, arch, {}, kernel=kernel)
    pair = Pair.of(*(texts.canonical(s) if s is not None else None for s in (found.bad, found.good)))
    oracle, kept = _oracle(texts.check, found, pair)
    small, asked = pair, 0
    if oracle is not None:
        done = minimise(pair, oracle, tries, on_step)
        small, asked = done.pair, done.tries
    bad, good = (formatted(t) if t is not None else None for t in (small.bad, small.good))
    rows = [texts.check.rows(t) if t is not None else None for t in (bad, good)]
    if rows[0] is None or good is not None and rows[1] is None:
        which = found.bad.name if rows[0] is None else found.good.name
        raise click.UsageError(f"'{which}' has no facts that a rule could speak of: 'cake check {which}' says why")
    line = _line(texts.check, found, bad, kept)
    words = "\n".join(w for w in (found.what, f"kept while the text was made smaller: {kept}" if asked > 1 else "") if w)
    slug = new.id.partition("/")[2].replace("-", "_")
    drafts = {f"bad_{slug}.cake": bad} | ({f"good_{slug}.cake": good} if good is not None else {})
    lines = [len(pair.bad.splitlines()), len(bad.splitlines())]
    if oracle is None:
        said = "nothing shows by itself that the text goes wrong, so it is as it was: make it smaller by hand, or with 'cake reduce'"
    elif asked <= 1:
        said = f"'{kept}' is not what the text shows where the repaired one does not: it is as it was"
    else:
        said = f"the bad text went from {lines[0]} lines to {lines[1]} in {asked} tries, keeping '{kept}'"
    said += "" if good is not None else "; there is no good text: repair the bad one, and keep it as 'good_WHY.cake'"
    record = {"kept": kept if asked > 1 else None, "tries": asked, "lines": {"before": lines[0], "after": lines[1]}, "said": said}
    return replace(new, body=body(rows[0], rows[1], line, words), texts=drafts), record


def _oracle(check, found: Failure, pair):
    """Who says that the text goes wrong, and what it is called: the finding, else what the event machine shows. None where neither does."""
    from cake_core.machine import Kind
    from cake_core.reduce import fault_oracle, finding_oracle
    from cake_core.reduce.oracles import faults

    if found.fault is not None and found.fault not in list(Kind):
        raise click.UsageError(f"--from: 'fault' is one of {', '.join(Kind)}")
    if found.code is not None:
        return finding_oracle(check, found.code, pair.bad, pair.good), found.code
    shown = [k for k in faults(check, pair.bad) if pair.good is None or k not in faults(check, pair.good)]
    kind = Kind(found.fault) if found.fault is not None else next(iter(shown), None)
    if kind is None:
        return None, None
    accepted = not check.errors(pair.bad)
    return fault_oracle(check, kind, pair.bad, accepted=accepted), str(kind)


def _line(check, found: Failure, bad: str, kept: str | None) -> int | None:
    """Where the small text goes wrong: at the finding, at the second site of the fault, or at the line that was named and is still there."""
    from cake_core.reduce.oracles import shown

    if found.code is not None:
        rules = [r for p in check.book.packs for r in p.rules if r.id == found.code]
        told = [v.finding for v in check.verdicts(bad, rules)] if rules else check.told(bad, check.book.rules, prove=False)
        spans = [d.span for d in told if d is not None and d.code == found.code and d.span is not None]
        return spans[0].line if spans else None
    if kept is not None:
        for fault in shown(check, bad):
            site = fault.second or fault.first or next((s for s, _ in fault.blocked), None)
            if str(fault.kind) == kept and site is not None and site.event is not None:
                return site.event.span.line
    lines = found.bad.text.splitlines()
    named = lines[found.line - 1].strip() if found.line is not None and 0 < found.line <= len(lines) else None
    return next((n for n, text in enumerate(bad.splitlines(), 1) if text.strip() == named), None)
