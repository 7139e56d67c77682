"""PTX text to a binary, by NVIDIA's `ptxas` as a subprocess; what it says becomes findings at the `.cake` statement.

Its report, as ptxas 13.0 and 13.5 print it:

    ptxas FILE, line N; error   : ...                      also `fatal`; a line of the PTX file
    ptxas fatal   : ...                                    nothing of the file is meant (wrong target, wrong version)
    ptxas info    : (C7515) Potential Performance Loss: ... in the function 'f' in line N
    ptxas info    : Compiling entry function 'f' for 'T'
    ptxas info    : Function properties for f
        0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
    ptxas info    : Used 168 registers, used 8 barriers, 512 bytes smem

Advisories of the C75xx family say that it did not keep to the program as written (asynchronous groups serialised, waits
injected, a register request ignored): errors here, since the kernel that runs is not the one in the text.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from cake_core.diagnostics import CakeError, Diagnostic, Severity, fail
from cake_core.frozen import frozen
from cake_core.source import Span

WHEEL = "nvidia-cuda-nvcc"
EXTRA = "cake-compiler[assembler]"
TIMEOUT = 300.0  # seconds; a large kernel takes below one


@frozen
class Assembler:
    """A ptxas that answered. `version` such as `13.5.37`; `found` says by which rule."""

    path: Path
    version: str
    found: str


@frozen
class Usage:
    """What the assembler reports of one function. Bytes a thread but `shared` (static, a CTA); `barriers` are named barriers."""

    registers: int = 0
    barriers: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0


@frozen
class Report:
    """The assembler's words, taken apart: `usage` by function, findings with spans."""

    usage: dict[str, Usage]
    diagnostics: tuple[Diagnostic, ...]


@frozen
class Assembled:
    cubin: bytes
    assembler: Assembler
    usage: Usage  # of the entry
    diagnostics: tuple[Diagnostic, ...]  # warnings and notes; errors are raised


# --- which assembler ---------------------------------------------------------------------------------------------


def find_assembler(path: str | os.PathLike | None = None, environ: Mapping[str, str] = os.environ) -> Assembler:
    """The first of: `path`, the variable CAKE_PTXAS, the wheel nvidia-cuda-nvcc, `ptxas` on PATH.

    Raises CakeError `assemble/no-assembler`; a path that was asked for and does not work is not replaced by another.
    """
    tried = []
    for found, candidate in _candidates(path, environ):
        asked_for = found in ("path", "CAKE_PTXAS")
        if candidate is None:
            tried.append(found)
        elif version := probe(candidate):
            return Assembler(candidate, version, found)
        elif asked_for:
            raise fail("assemble/no-assembler", f"'{candidate}' ({found}) is no working ptxas", fix="name an executable ptxas, or leave it out to search the usual places")
        else:
            tried.append(f"{found} ({candidate} does not run)")
    raise fail(
        "assemble/no-assembler",
        "no ptxas was found",
        why=f"a cubin needs NVIDIA's assembler; looked at {', '.join(tried)}",
        fix=f"pip install '{EXTRA}', or set CAKE_PTXAS; '--emit ptx' needs none",
    )


def _candidates(path: str | os.PathLike | None, environ: Mapping[str, str]):
    if path:
        yield "path", Path(path)
        return
    if named := environ.get("CAKE_PTXAS"):
        yield "CAKE_PTXAS", Path(named)
        return
    yield f"wheel {WHEEL}", wheel_ptxas()
    on_path = shutil.which("ptxas", path=environ.get("PATH"))
    yield "PATH", Path(on_path) if on_path else None


def wheel_ptxas() -> Path | None:
    """ptxas of the PyPI wheel, from the wheel's own list of files: nothing of it is imported."""
    try:
        files = distribution(WHEEL).files or ()
    except PackageNotFoundError:
        return None
    names = {"ptxas", "ptxas.exe"}
    return next((Path(p) for f in files if f.name in names and (p := f.locate()) and Path(p).is_file()), None)


def probe(path: Path) -> str | None:
    """Version of the ptxas at `path`, None if it does not run or is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return _probe(path, stat.st_mtime_ns, stat.st_size)


@cache
def _probe(path: Path, mtime: int, size: int) -> str | None:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace", timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"assembler.*?\bV(\d+(?:\.\d+)+)", done.stdout, re.DOTALL | re.IGNORECASE)
    return match[1] if done.returncode == 0 and match else None


# --- the run -----------------------------------------------------------------------------------------------------


def assemble(
    ptx: str,
    target: str,
    entry: str,
    *,
    lines: Sequence[Span | None] = (),
    roles: Sequence[tuple[str, Span]] = (),
    assembler: Assembler | None = None,
    timeout: float = TIMEOUT,
) -> Assembled:
    """Assemble `ptx` for `target` (the assembler's `-arch`).

    `lines`: the source span of each PTX line. `roles`: names and spans of the kernel's roles; the one whose span holds a
    line's statement is named in the finding. Raises CakeError with all findings if there is an error among them.
    """
    assembler = assembler or find_assembler()
    with tempfile.TemporaryDirectory(prefix="cake-") as folder:
        source, target_file = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, encoding="utf-8", newline="\n")
        command = [assembler.path, f"-arch={target}", "-v", "-O3", source.name, "-o", target_file.name]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            raise fail("assemble/timeout", f"ptxas did not end within {timeout:g} s", fix="unroll less: very long code is the usual cause") from None
        except OSError as error:
            raise fail("assemble/no-assembler", f"'{assembler.path}' could not be run: {error.strerror}") from None
        cubin = target_file.read_bytes() if done.returncode == 0 and target_file.is_file() else b""
    report = parse_report(done.stdout + done.stderr, lines, roles)
    findings = list(report.diagnostics)
    if not cubin and not any(d.severity is Severity.ERROR for d in findings):
        words = (done.stderr or done.stdout).strip() or "it said nothing"
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        findings.append(Diagnostic("assemble/ptxas-failed", f"ptxas {assembler.version} ended without a binary ({how})", why=words[-2000:]))
    if any(d.severity is Severity.ERROR for d in findings):
        raise CakeError(*findings)
    return Assembled(cubin, assembler, report.usage.get(entry, Usage()), tuple(findings))


# --- its words ---------------------------------------------------------------------------------------------------

MESSAGE = re.compile(r"^ptxas\s*(?:(?P<file>[^,]*), line (?P<line>\d+);)?\s*(?P<kind>info|warning|error|fatal|advisory)\s*:\s*(?P<text>.*)$")
ADVISORY = re.compile(r"^\((?P<code>C\d+)\)\s*(?P<text>.*)$")
SERIALISING = re.compile(r"C75\d\d$")
ENTRY = re.compile(r"^(?:Compiling entry function|Function properties for) '?(?P<name>[\w$.%]+)'?")
PROPERTIES = re.compile(r"^\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"^Used (\d+) registers(.*)$")
IN_LINE = re.compile(r"\b(?:in|around) line (\d+)")
FUNCTION = re.compile(r"\bin (?:the )?function '[^']+'(?: in line \d+)?")


def parse_report(text: str, lines: Sequence[Span | None] = (), roles: Sequence[tuple[str, Span]] = ()) -> Report:
    """Take the output of `ptxas -v` apart."""
    usage: dict[str, dict[str, int]] = {}
    findings: list[Diagnostic] = []
    function = ""
    for row in text.splitlines():
        if m := PROPERTIES.match(row):
            usage.setdefault(function, {}).update(zip(("stack", "spill_stores", "spill_loads"), map(int, m.groups()), strict=True))
            continue
        if not (m := MESSAGE.match(row)):
            continue
        kind, words = m["kind"], m["text"]
        if entry := ENTRY.match(words):
            function = entry["name"]
        elif used := USED.match(words):
            usage.setdefault(function, {}).update(registers=int(used[1]), **_amounts(used[2]))
        elif finding := _finding(kind, words, int(m["line"]) if m["line"] else None, lines, roles):
            findings.append(finding)
    usages = {name: Usage(**fields) for name, fields in usage.items()}
    findings += [_spill(name, u) for name, u in usages.items() if u.spill_stores or u.spill_loads]
    return Report(usages, tuple(dict.fromkeys(findings)))


def _amounts(text: str) -> dict[str, int]:
    barriers = re.search(r"used (\d+) barriers", text)
    shared = re.search(r"(\d+) bytes smem", text)
    return {"barriers": int(barriers[1]) if barriers else 0, "shared": int(shared[1]) if shared else 0}


def _finding(kind: str, words: str, line: int | None, lines: Sequence[Span | None], roles: Sequence[tuple[str, Span]]) -> Diagnostic | None:
    advisory = ADVISORY.match(words)
    if advisory is None and kind == "info" or words.startswith("Ptx assembly aborted"):
        return None
    if line is None and (m := IN_LINE.search(words)):
        line = int(m[1])
    span = lines[line - 1] if line and line <= len(lines) else None
    role = next((name for name, s in roles if span and s.file == span.file and (s.line, s.column) <= (span.line, span.column) <= (s.end_line, s.end_column)), None)
    stage = f"line {line} of the PTX" if line else None
    if advisory:
        family = bool(SERIALISING.match(advisory["code"]))
        said = FUNCTION.sub("", advisory["text"].removeprefix("Potential Performance Loss: ")).strip()
        code = "assemble/not-as-written" if family else "assemble/advisory"
        return Diagnostic(
            code,
            f"ptxas {advisory['code']}: {said.rstrip('.')}",
            span,
            Severity.ERROR if family else Severity.WARNING,
            role=role,
            stage=stage,
            why="the binary would not do what the text says: what the assembler moved, waited for or ignored costs the overlap or the registers that the kernel was written for" if family else None,
            fix=f"'cake explain {code}' lists the usual causes",
        )
    if kind in ("error", "fatal"):
        return Diagnostic(
            "assemble/ptxas-error",
            f"ptxas refused the PTX: {words.rstrip('.')}",
            span,
            role=role,
            stage=stage,
            why="the compiler wrote PTX that the assembler does not take for this target",
            fix="report it with the text and 'cake doctor'; '--emit ptx' shows the line",
        )
    return Diagnostic("assemble/ptxas-warning", f"ptxas: {words.rstrip('.')}", span, Severity.WARNING, role=role, stage=stage)


def _spill(function: str, u: Usage) -> Diagnostic:
    return Diagnostic(
        "assemble/spill",
        f"registers of '{function}' spill: {u.spill_stores} bytes stored and {u.spill_loads} bytes loaded a thread",
        severity=Severity.WARNING,
        resource="registers",
        why=f"{u.registers} registers a thread hold less than is alive at once; the rest goes through local memory",
        fix="use smaller fragments, fewer warps, or give the role more registers with 'regs'",
    )
