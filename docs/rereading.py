"""Machine code that was changed, one instruction at a time: whether the re-reader refuses it, and whether the emulator finds it.

    python docs/rereading.py [--each 80] [--kernel gemm_sm90 ..] [--page]     changes, asks both, and writes docs/rereading.json and rereading.md

Drawn are changes of the kind that an error of lowering makes, kind by kind, in instructions that keep books: what computes with floats is left alone.
Each is read back as a build would, and whatever comes of that executed without a GPU at a small shape, and at another one if that shows nothing. `docs/rereading.toml` says why one that neither
finds may pass: the first entry whose patterns fit.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from random import Random

from cake_core.emulate.device import Api
from cake_core.emulate.outcome import Unsupported
from cake_core.emulate.turns import turns_of
from cake_core.facts import facts_of
from cake_core.lower import lower
from cake_core.pipeline import build, frontend
from cake_core.plugins import load_registry
from cake_core.reread import reread
from cake_core.runtime import driver
from cake_core.runtime.errors import LaunchError
from cake_core.runtime.execute import run_artifact
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[1]
DATA, PAGE, REASONS = (Path(__file__).with_name(f"rereading.{end}") for end in ("json", "md", "toml"))
SEED = 3
#: Kernel by file, target, a shape that takes each ring round more than once and leaves tails, and another one where that shows nothing.
KERNELS = {
    "gemm_sm90": ("gemm", "sm90", {"M": 260, "N": 264, "K": 328}, {"M": 900, "N": 520, "K": 72}),
    "gemm_sm100": ("gemm", "sm100", {"M": 600, "N": 264, "K": 328}, {"M": 900, "N": 520, "K": 72}),
    "softmax_cluster": ("softmax", "sm90", {"R": 5, "C": 66000}, {"R": 7, "C": 32776}),
    "attn_fwd_sm90": ("attention", "sm90", {"B": 1, "H": 2, "HK": 1, "TQ": 200, "TK": 300}, {"B": 2, "H": 2, "HK": 1, "TQ": 378, "TK": 378}),
    "gemm_sm80": ("gemm", "sm80", {"M": 130, "N": 136, "K": 264}, {"M": 250, "N": 248, "K": 136}),
}
#: Instructions of warps after which a run is taken to have no end.
MOST = 1_000_000
STATEMENT = re.compile(r"^  (?:@(!?)(%p\d+) )?([a-z][\w.:]*)(?: (.*))?;$")
REGISTER, NUMBER = re.compile(r"%[a-z]+\d+"), re.compile(r"(?<![%\w$.])-?\d+\b(?!\w)")
#: What computes with floats; `ret` ends all.
ASIDE = re.compile(r"^(ret|(mov|add|sub|mul|fma|max|min|neg|abs|ex2|lg2|rcp|rsqrt|sqrt|tanh|cvt|selp|setp|div)\S*\.(f32|f16|bf16|f16x2|bf16x2)\S*)$")
#: Instructions whose one effect is their result.
PURE = frozenset("abs add and cvt cvta div mad max min mov mul neg not or rem selp setp shl shr sub xor".split())  # noqa: SIM905
OTHER = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq"}
#: First operands that are read; of all other instructions the first one is the result.
READS_FIRST = ("st", "red", "mbarrier.init", "mbarrier.try_wait", "cp", "bar", "tcgen05", "stmatrix", "fence", "setmaxnreg", "bra")


@cache
def registry():
    return load_registry()


@cache
def made(name: str):
    """What was built, lowered, and the facts of a kernel."""
    folder, arch, *_ = KERNELS[name]
    path = ROOT / "kernels" / folder / f"{name}.cake"
    source = Source(path.name, path.read_text(encoding="utf-8"))
    front = frontend(source, registry(), arch)
    return build(source, registry(), arch, read_back=False), lower(front.typed, registry(), front.arch), facts_of(front.typed, registry(), front.arch)


def changes(text: str, draw: Random) -> dict[str, list[tuple[int, str]]]:
    """By kind, lines (from 0) and what is written instead."""
    lines, found = text.splitlines(), defaultdict(list)
    for n, line in enumerate(lines):
        if (m := STATEMENT.match(line)) is None or ASIDE.match(m[3]):
            continue
        for kind, new in _of(line, m, lines[n + 1] if n + 1 < len(lines) else "", draw):
            found[kind].append((n, new))
    return found


def _of(line: str, m: re.Match, after: str, draw: Random):
    negated, guard, opcode, operands = m.groups()
    operands = operands or ""
    at, data = (
        line.index(operands) if operands else 0,
        operands.find("{") if opcode.startswith(("wgmma", "tcgen05.ld", "ldmatrix", "stmatrix")) else -1,
    )
    end = operands.find("}") if data >= 0 else -1

    def put(where: re.Match, new: str) -> str:
        return line[: at + where.start()] + new + line[at + where.end() :]

    for c in NUMBER.finditer(operands):
        value, width = int(c.group()), 64 if opcode.endswith("64") else 32
        what = "offset" if operands[: c.start()].endswith("+") else "constant"
        yield f"{what} + 1", put(c, str(value + 1))
        yield f"{what} x 2", put(c, str(value * 2 or 2))
        yield (
            f"bit of a{'n' * (what == 'offset')} {what}",
            put(c, str(value ^ 1 << draw.randrange(width if value >> 16 else max(value.bit_length(), 3)))),
        )
    if guard:
        yield "predicate inverted", line.replace(f"@{negated}{guard}", f"@{'' if negated else '!'}{guard}", 1)
        if opcode != "bra":
            yield "predicate dropped", line.replace(f"@{negated}{guard} ", "", 1)
    words = opcode.split(".")
    if words[0] == "setp" and words[1] in OTHER:
        yield "comparison", line.replace(opcode, ".".join([words[0], OTHER[words[1]], *words[2:]]), 1)
    if words[0] in ("add", "sub"):
        yield "operation", line.replace(opcode, ".".join(["sub" if words[0] == "add" else "add", *words[1:]]), 1)
    if words[0] in ("shl", "shr"):
        yield "operation", line.replace(opcode, f"shr.u{words[-1][1:]}" if words[0] == "shl" else f"shl.b{words[-1][1:]}", 1)
    if not guard or opcode != "bra":
        yield "removed", "  // removed"
    registers = [c for c in REGISTER.finditer(operands) if not data <= c.start() < end or data < 0]
    if not opcode.startswith(READS_FIRST) and registers and not registers[0].start():
        registers = registers[1:]
    for c in registers:
        kind, number = re.fullmatch(r"(%[a-z]+)(\d+)", c.group()).groups()
        if int(number):
            yield "another register", put(c, f"{kind}{max(int(number) - draw.choice((1, 2, 3)), 0)}")
    flat = [x.strip() for x in operands.split(",")]
    if words[0] in ("sub", "shl", "shr", "div", "rem") and len(flat) == 3:
        yield "operands swapped", f"  {opcode} {flat[0]}, {flat[2]}, {flat[1]};"
    if (behind := STATEMENT.match(after)) and opcode != "bra" and behind[3] != "bra" and set(REGISTER.findall(line)) & set(REGISTER.findall(after)):
        yield "order", f"{after}\n{line}"


def idle(text: str) -> set[int]:
    """Lines of which nothing that has an effect reads the result."""
    reads, pure = {}, {}
    for n, line in enumerate(text.splitlines()):
        if m := STATEMENT.match(line):
            found = REGISTER.findall(line)
            first = found.index(r) if (r := next(iter(REGISTER.findall(m[4] or "")), None)) else 0
            if m[3].split(".")[0] in PURE:
                pure[n] = found[first]
                found = found[:first] + found[first + 1 :]
            reads[n] = set(found)
    live, left = set(), dict(pure)
    while True:
        needed = {r for n, of in reads.items() if n not in pure or n in live for r in of}
        more = {n for n, r in left.items() if r in needed}
        if not more:
            return set(left)
        live |= more
        left = {n: r for n, r in left.items() if n not in more}


def changed(text: str, n: int, new: str) -> str:
    lines = text.splitlines()
    lines[n : n + new.count("\n") + 1] = new.split("\n")
    return "\n".join(lines) + "\n"


def refused(name: str, text: str) -> tuple[list[str], bool]:
    """What the re-reader tells, and whether all roles were followed."""
    built, lowered, facts = made(name)
    reading = reread(replace(lowered, ptx=text), facts, registry().rereads, built.arch)
    return sorted({d.code for d in reading.findings}), not reading.left


def executed(name: str, text: str) -> list[str]:
    """What the emulator tells: codes, and `wrong output`; of the second shape where there is nothing at the first."""
    _, _, *shapes = KERNELS[name]
    return next((told for shape in shapes if (told := _executed(name, text, shape))), [])


def _executed(name: str, text: str, shape: dict[str, int]) -> list[str]:
    built, _, _ = made(name)
    found: list = []
    api = Api(
        registry().emulates,
        built.arch.compute_capability,
        lambda g: found.extend(g.findings),
        lambda: turns_of("adversarial"),
        multiprocessors=8,
        most=MOST,
    )
    said = replace(built.manifest, unproved=(), allowed_unproved=(), hashes={})
    with tempfile.TemporaryDirectory() as scratch, driver.use(api):
        for file, data in ({**built.files, "kernel.ptx": text.encode(), "manifest.json": said.to_json().encode()}).items():
            (Path(scratch) / file).write_bytes(data)
        try:
            report = run_artifact(Path(scratch), ROOT / "kernels" / KERNELS[name][0] / f"{name}.py", [shape], 0, text=True)
        except (Unsupported, LaunchError) as error:
            return [f"not executed: {error}"]
    return sorted({f.code for f in found}) + ["wrong output"] * any(not o.ok for r in report.results for o in r.outputs)


def drawn(name: str, each: int) -> list[tuple[str, int, str]]:
    """Changes of a kernel, round after round one of each kind: (kind, line, what is written instead)."""
    draw = Random(f"{SEED} {name}")
    groups = changes(made(name)[1].ptx, draw)
    for group in groups.values():
        draw.shuffle(group)
    rounds = max(map(len, groups.values()))
    return [(kind, *groups[kind][i]) for i in range(rounds) for kind in sorted(groups) if i < len(groups[kind])][:each]


def judged(name: str, kind: str, n: int, new: str) -> dict:
    text = made(name)[1].ptx
    told, followed = refused(name, changed(text, n, new))
    ran = executed(name, changed(text, n, new))
    old = "\n".join(text.splitlines()[n : n + new.count("\n") + 1])
    what = "removed" if new.strip().startswith("//") else "changed"
    role = "nothing reads what it computes" if n in idle(text) else what
    return {"kernel": name, "kind": kind, "line": n + 1, "old": old, "new": new, "of": role, "reread": told, "followed": followed, "emulator": ran}


def campaign(task: tuple[str, int]) -> list[dict]:
    name, each = task
    return [judged(name, *change) for change in drawn(name, each)]


# --- the page ----------------------------------------------------------------------------------------------------------


def reason_of(row: dict, reasons: list[dict]) -> str | None:
    """Why neither finds it."""
    for entry in reasons:
        if all(re.search(pattern, row[field]) for field, pattern in entry.items() if field != "why"):
            return entry["why"]
    return None


def lost(row: dict) -> bool:
    return not row["reread"] and not row["emulator"]


def table(rows: list[dict], by: str, names: list[str]) -> list[str]:
    lines = [
        f"| {by} | changes | refused when read back | of them found by the emulator | found by the emulator alone | by neither |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in [*names, "all"]:
        of = [r for r in rows if name in (r[by], "all")]
        counts = Counter((bool(r["reread"]), bool(r["emulator"])) for r in of)
        cells = len(of), counts[True, True] + counts[True, False], counts[True, True], counts[False, True], counts[False, False]
        lines.append(f"| {f'`{name}`' if name in KERNELS else name} | {' | '.join(map(str, cells))} |")
    return [*lines, ""]


def page(rows: list[dict], reasons: list[dict]) -> str:
    lines = [
        "# Machine code, changed",
        "",
        "Written by `python docs/rereading.py`. PTX of real kernels with one instruction changed, as an error of lowering might: whether the build refuses it, since it",
        "[reads its own machine code back](proof.md#what-finds-an-error-of-the-compiler), and whether the [emulator](emulator.md) finds it at a small shape, or at another one, by a finding or a wrong output.",
        "Changed is what keeps books: numbers, addresses, predicates, order; what computes with floats is left alone. Kinds are drawn in turn, places at random.",
        "",
        *table(rows, "kind", sorted({r["kind"] for r in rows})),
        *table(rows, "kernel", list(KERNELS)),
        "What the emulator alone finds is which elements of tensors threads load and store, their guards at edges, which values they move and which thread has which: the re-reader asks where",
        "they go in shared memory, together. What it alone finds needs a third shape to show, or another schedule.",
        "",
        "## By neither",
        "",
        "| why | changes | for example |",
        "| --- | ---: | --- |",
    ]
    groups = defaultdict(list)
    for r in rows:
        if lost(r):
            groups[reason_of(r, reasons) or "**not explained**"].append(r)
    for why, of in sorted(groups.items(), key=lambda x: -len(x[1])):
        r = of[0]
        old, new = (re.sub(r"\{[^}]*\}", "{..}", x.strip()).replace("\n", " ").replace("|", "\\|") for x in (r["old"], r["new"]))
        lines.append(f"| {why} | {len(of)} | `{r['kernel']}`, {r['kind']}: `{old}` -> `{new}` |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=80, help="changes of a kernel")
    parser.add_argument("--kernel", action="append", help="this one only, the others stay; may be repeated")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--page", action="store_true", help="write the page from what is there")
    given = parser.parse_args()
    rows = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else []
    if not given.page:
        wanted = [k for k in KERNELS if not given.kernel or k in given.kernel]
        rows = [r for r in rows if r["kernel"] not in wanted]
        with ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
            for done in pool.map(campaign, [(k, given.each) for k in wanted]):
                rows += done
                rows.sort(key=lambda r: list(KERNELS).index(r["kernel"]))
                DATA.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    reasons = tomllib.loads(REASONS.read_text(encoding="utf-8"))["reason"] if REASONS.exists() else []
    PAGE.write_text(page(rows, reasons), encoding="utf-8")
    open_ = [r for r in rows if lost(r) and reason_of(r, reasons) is None]
    print(f"{len(rows)} changes, {sum(map(lost, rows))} found by neither, {len(open_)} of them without a reason")
    sys.exit(1 if open_ else 0)


if __name__ == "__main__":
    main()
