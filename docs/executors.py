"""Mutants of real kernels, executed: who finds what, the verifier beside those who run them.

    python docs/executors.py [--each 6] [--kernel gemm/gemm_sm90 ..] [--again]     judges, runs, and writes docs/executors.json and executors.md

Drawn are mutants of the derived form, operator by operator (`cake mutate`); what the compiler refuses as no kernel is left out. Each is judged by
the verifier and, whatever it says, built and executed without a GPU: its PTX by the emulator, its derived form by the simulator, each under two schedules. An executor finds a mutant if it tells of anything, or if an output is
wrong. `docs/executors.toml` says why where the two do not agree.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from random import Random

from cake_core.check import checked
from cake_core.cli.simulated import simulated
from cake_core.diagnostics import CakeError, Severity
from cake_core.elaborate import elaborate
from cake_core.emulate.device import Api
from cake_core.emulate.outcome import Unsupported
from cake_core.emulate.turns import turns_of
from cake_core.ir.nodes import Program
from cake_core.ir.printer import program_text
from cake_core.mutate import mutants
from cake_core.pipeline import build, frontend, prover
from cake_core.plugins import load_registry
from cake_core.runtime import driver
from cake_core.runtime.errors import LaunchError
from cake_core.runtime.execute import run_artifact
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[1]
DATA, PAGE, REASONS = (Path(__file__).with_name(f"executors.{end}") for end in ("json", "md", "toml"))
SEED = 11
#: Kernel, target, and shapes that take a ring round more than once and leave tails.
KERNELS: dict[tuple[str, str], list[dict[str, int]]] = {
    ("gemm/gemm_sm90", "sm90"): [{"M": 300, "N": 264, "K": 328}],
    ("gemm/gemm_sm80", "sm80"): [{"M": 130, "N": 136, "K": 264}],
    ("gemm/gemm_sm100", "sm100"): [{"M": 600, "N": 264, "K": 328}],
    ("gemm/gemm_sm100_pair", "sm100"): [{"M": 600, "N": 264, "K": 328}],
    ("gemm/gemm_sm100_nvf4", "sm100"): [{"M": 600, "N": 264, "KP": 256}],
    ("gemm/gemm_bias_gelu_sm90", "sm90"): [{"M": 900, "N": 264, "K": 136}],
    ("attention/attn_fwd_sm90", "sm90"): [{"B": 2, "H": 2, "HK": 1, "TQ": 300, "TK": 300}],
    ("kmeans/kmeans_assign_sm90", "sm90"): [{"NB": 1, "N": 1400, "K": 260}],
    ("moe/moe_grouped_sm90", "sm90"): [{"E": 3, "T": 500, "N": 264, "K": 328}],
    ("softmax/softmax_cluster", "sm90"): [{"R": 3, "C": 264}],
    ("softmax/softmax", "sm90"): [{"R": 7, "C": 72}],
    ("rmsnorm/rmsnorm", "sm80"): [{"R": 7, "C": 72}],
    ("quantize/quantize_e4m3", "sm90"): [{"R": 17, "C": 80}],
}
SCHEDULES = ("adversarial", "random:5")
EXECUTORS = ("emulator", "simulator")
#: Instructions of warps after which a run is taken to have no end: several times what the kernel itself takes at these shapes.
MOST = 400_000


def drawn(kernel: str, arch: str):
    """The front of a kernel and its mutants in an order of their own: round after round one of each operator."""
    registry = load_registry()
    path = ROOT / "kernels" / f"{kernel}.cake"
    front = frontend(Source(path.name, path.read_text(encoding="utf-8")), registry, arch)
    groups = defaultdict(list)
    for edit in mutants(front.derived, front.typed, registry):
        groups[edit.operator].append(edit)
    draw = Random(f"{SEED} {kernel}")
    for group in groups.values():
        draw.shuffle(group)
    names = list(groups)
    draw.shuffle(names)
    rounds = max(map(len, groups.values()))
    return registry, front, [groups[n][r] for r in range(rounds) for n in names if r < len(groups[n])]


def verdict(kernel, registry, arch) -> tuple[str, list[str]]:
    """accepted (all is proved), refused, or not analysed. Raises CakeError where the text is no kernel."""
    typed = elaborate(kernel, registry, arch, derived=True, overrides={})
    found = checked(typed, registry, arch, None, prover())
    errors = list(dict.fromkeys(d.code for d in found.findings if d.severity is Severity.ERROR))
    open_ = [d.code for d in found.findings if d.code == "rules/not-analysed"]
    return ("refused" if errors else "not analysed" if open_ else "accepted"), errors or open_


def executed(kernel, front, registry, plan, companion: Path, shapes: list[dict]) -> tuple[dict[str, list[str]], str]:
    """What each executor tells of a mutant: codes and `wrong output`; and the first message."""
    text = program_text(Program(front.program.version, True, (kernel,)))
    made = build(Source("derived.cake", text), registry, front.arch.name, violated=True, read_back=False)
    said = replace(made.manifest, plan=plan, unproved=(), allowed_unproved=(), violated=())
    made = replace(made, manifest=said, files={**made.files, "manifest.json": said.to_json().encode()})
    first, found = "", {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, data in made.files.items():
            (folder / name).write_bytes(data)
        for executor, run in (("emulator", _emulated), ("simulator", _simulated)):
            told: list[str] = []
            for schedule in SCHEDULES:
                try:
                    report, codes, messages = run(made, folder, registry, companion, shapes, schedule)
                except (Unsupported, LaunchError, CakeError) as error:
                    told.append("not run")
                    first = first or str(error)
                    break
                told += codes + ["wrong output"] * any(not o.ok for r in report.results for o in r.outputs)
                first = first or next(iter(messages), "")
            found[executor] = list(dict.fromkeys(told))
    return found, first


def _emulated(made, folder: Path, registry, companion: Path, shapes: list[dict], schedule: str):
    findings: list = []
    api = Api(
        registry.emulates,
        made.arch.compute_capability,
        lambda g: findings.extend(g.findings),
        lambda: turns_of(schedule),
        multiprocessors=4,
        most=MOST,
    )
    with driver.use(api):
        report = run_artifact(folder, companion, shapes, 0, text=True)
    return report, [f.code for f in findings], [f"{f.message} (line {f.line})" for f in findings]


def _simulated(made, folder: Path, registry, companion: Path, shapes: list[dict], schedule: str):
    findings: list = []
    report = simulated(made, folder, companion, shapes, 0, schedule, findings)
    return report, [d.code for d in findings], [d.message for d in findings]


def judged(task: tuple[str, str, int]) -> list[dict]:
    kernel, arch, each = task
    registry, front, edits = drawn(kernel, arch)
    path = ROOT / "kernels" / f"{kernel}.cake"
    plan = build(Source(path.name, path.read_text(encoding="utf-8")), registry, arch, read_back=False).manifest.plan
    rows, kinds = [], Counter()
    for edit in edits:
        if len(rows) == each:
            break
        try:
            says, codes = verdict(edit.kernel, registry, front.arch)
            if kinds[says] >= max(each * 2 // 3, 1):  # of both kinds, where there are
                continue
            ran, message = executed(edit.kernel, front, registry, plan, path.with_suffix(".py"), KERNELS[kernel, arch])
        except CakeError:
            continue
        kinds[says] += 1
        row = {"kernel": kernel, "arch": arch, "operator": edit.operator, "what": edit.what, "line": edit.span.line}
        rows.append(row | {"verdict": says, "codes": codes, **ran, "message": message})
        print(kernel, edit.operator, edit.what, says, codes, ran, flush=True)
    return rows


# --- the page ----------------------------------------------------------------------------------------------------------


def finds(row: dict, executor: str) -> bool:
    """Whether an executor finds a fault. A wrong output of what is proved is none: a mutant may compute something else, safely."""
    return any(c != "wrong output" or row["verdict"] != "accepted" for c in row[executor])


def agrees(row: dict, executor: str) -> bool:
    return (row["verdict"] == "refused") == finds(row, executor)


def reason_of(row: dict, executor: str, reasons: list[dict]) -> str | None:
    """Why the two do not agree: the first entry whose fields are all those of the row; `code`, `found`: one of those of the verifier, of the executor."""
    fields = row | {"executor": executor}
    for entry in reasons:
        same = (
            v in row["codes"] if k == "code" else v in row[executor] if k == "found" else fields.get(k) == v for k, v in entry.items() if k != "why"
        )
        if all(same):
            return entry["why"]
    return None


def page(rows: list[dict], reasons: list[dict]) -> str:
    lines = [
        "# Mutants, executed",
        "",
        "Written by `python docs/executors.py`. Mutants of real kernels ([mutants.md](mutants.md)), drawn operator by operator: what the verifier says of each for all sizes, and what is",
        "found at one small size under two schedules by the [emulator](emulator.md), which executes the PTX, and the [simulator](simulator.md), which executes the derived form: a finding,",
        "or a wrong output. A mutant that is proved may still compute something else: a wrong output is no fault there.",
        "",
        "| kernel | mutants | refused | of them found by emulator | by simulator | proved | of them found by emulator | by simulator | not analysed |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]

    def counts(rs: list[dict]) -> str:
        kind = {v: [r for r in rs if r["verdict"] == v] for v in ("refused", "accepted", "not analysed")}
        cells = [len(rs)]
        for v in ("refused", "accepted"):
            cells += [len(kind[v]), *(sum(finds(r, e) for r in kind[v]) for e in EXECUTORS)]
        return " | ".join(map(str, [*cells, len(kind["not analysed"])]))

    for kernel, arch in KERNELS:
        if rs := [r for r in rows if (r["kernel"], r["arch"]) == (kernel, arch)]:
            lines.append(f"| `{kernel}` for {arch} | {counts(rs)} |")
    lines += [f"| all | {counts(rows)} |", "", "## Where they do not agree", ""]
    lines += ["| kernel | mutant | verifier | executor | it finds | why |", "| --- | --- | --- | --- | --- | --- |"]
    for r in rows:
        for executor in EXECUTORS:
            if r["verdict"] == "not analysed" or agrees(r, executor):
                continue
            said = ", ".join(f"`{c}`" for c in r["codes"]) or "proved"
            ran = ", ".join(f"`{c}`" if "/" in c else c for c in r[executor]) or "nothing"
            what = f"{r['operator']}: {r['what']} (line {r['line']})".replace("|", "\\|")
            lines.append(
                f"| `{r['kernel'].partition('/')[2]}` | {what} | {said} | {executor} | {ran} | {reason_of(r, executor, reasons) or '**not explained**'} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=9, help="mutants of a kernel")
    parser.add_argument("--kernel", action="append", help="this one only, the others stay; may be repeated")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--page", action="store_true", help="write the page from what is there")
    given = parser.parse_args()
    rows = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else []
    if not given.page:
        wanted = [(k, a) for k, a in KERNELS if not given.kernel or k in given.kernel]
        rows = [r for r in rows if (r["kernel"], r["arch"]) not in wanted]
        with ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
            for done in pool.map(judged, [(k, a, given.each) for k, a in wanted]):
                rows += done
                order = list(KERNELS)
                rows.sort(key=lambda r: order.index((r["kernel"], r["arch"])))
                DATA.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    reasons = tomllib.loads(REASONS.read_text(encoding="utf-8"))["reason"] if REASONS.exists() else []
    PAGE.write_text(page(rows, reasons), encoding="utf-8")
    open_ = [r for r in rows for e in EXECUTORS if r["verdict"] != "not analysed" and not agrees(r, e) and reason_of(r, e, reasons) is None]
    print(f"{len(rows)} mutants, {len(open_)} disagreements without a reason")
    sys.exit(1 if open_ else 0)


if __name__ == "__main__":
    main()
