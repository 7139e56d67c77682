"""Mutants of runnable kernels as artifacts for `mutants_device.py`, and the verifier's verdict on each. Needs the compiler, no GPU.

    PYTHONPATH=. python bench/mutants_build.py judge [--each 40]     verdicts.*.jsonl: mutants drawn from every kernel, judged;
                                                                 what was judged before stays
    PYTHONPATH=. python bench/mutants_build.py build                 KERNEL.json and KERNEL.zip of the chosen ones

Both write into `build/mutants_device`. A mutant is built as drawn (delay 0), and with waits put into its PTX (`delays.py`), one text a seed.
Chosen are, kernel by kernel, as many operators as there are, of what is refused; of what is accepted those that change order and
synchronisation alone: what another trip computes is another function, right or wrong as the text says.
"""

from __future__ import annotations

import argparse
import io
import json
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from random import Random

from delays import delayed

from cake_core import artifact
from cake_core.assemble import assemble
from cake_core.check import checked
from cake_core.diagnostics import CakeError, Severity
from cake_core.elaborate import elaborate
from cake_core.ir.nodes import Program
from cake_core.ir.printer import program_text
from cake_core.mutate import mutants
from cake_core.pipeline import build, frontend, prover
from cake_core.plugins import load_registry
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "mutants_device"
SEED = 7
#: Seeds of the delays of each mutant; 0 is none.
DELAYS = (0, 1, 2, 3)
#: Mutants of a kernel that are judged before the next kernel has its turn.
CHUNK = 8
#: Kernel and target. Those for sm80 a device of a higher capability runs from their text.
KERNELS = (
    ("gemm/gemm_sm90", "sm90"),
    ("attention/attn_fwd_sm90", "sm90"),
    ("gemm/gemm_bias_gelu_sm90", "sm90"),
    ("kmeans/kmeans_assign_sm90", "sm90"),
    ("knn/knn_part_sm90", "sm90"),
    ("moe/moe_grouped_sm90", "sm90"),
    ("gemm/gemm_sm80", "sm80"),
    ("softmax/softmax_cluster", "sm90"),
    ("softmax/softmax", "sm90"),
    ("rmsnorm/rmsnorm", "sm80"),
)
#: Operators that leave what is computed alone: only when it happens, and who waits for it.
ORDER = (
    "drop wait",
    "drop arrival",
    "drop drain",
    "drop fence",
    "drop meeting",
    "drop group",
    "drop init",
    "twice",
    "swap",
    "late",
    "early",
    "parity",
    "pending",
    "threads",
    "barrier id",
    "mask",
    "count",
    "place",
)


def edits_of(kernel: str, arch: str):
    """The front of a kernel and its mutants, in an order of their own: round after round one of each operator."""
    registry = load_registry()
    path = ROOT / "kernels" / f"{kernel}.cake"
    front = frontend(Source(path.name, path.read_text(encoding="utf-8")), registry, arch)
    by_operator = defaultdict(list)
    edits = list(mutants(front.derived, front.typed, registry))
    for n, edit in enumerate(edits):
        by_operator[edit.operator].append(n)
    draw = Random(f"{SEED} {kernel}")
    for group in by_operator.values():
        draw.shuffle(group)
    rounds = max(map(len, by_operator.values()))
    order = [group[r] for r in range(rounds) for group in by_operator.values() if r < len(group)]
    return registry, front, edits, order


# --- verdicts ----------------------------------------------------------------------------------------------------


def judged(task: tuple[str, str, int, int]) -> str:
    kernel, arch, start, end = task
    registry, front, edits, order = edits_of(kernel, arch)
    OUT.mkdir(parents=True, exist_ok=True)
    there = {r["n"] for r in rows_of(kernel)}
    with verdicts(kernel).open("a", encoding="utf-8") as file:
        for n in (n for n in order[start:end] if n not in there):
            edit = edits[n]
            verdict, codes = verdict_of(edit.kernel, registry, front.arch)
            row = {"kernel": kernel, "arch": arch, "n": n, "operator": edit.operator, "what": edit.what, "line": edit.span.line}
            file.write(json.dumps(row | {"verdict": verdict, "codes": codes}) + "\n")
            file.flush()
    return f"{kernel} {start} .. {end}"


def verdicts(kernel: str) -> Path:
    return OUT / f"verdicts.{Path(kernel).name}.jsonl"


def rows_of(kernel: str) -> list[dict]:
    """What was judged so far, in that order."""
    rows = map(json.loads, verdicts(kernel).read_text(encoding="utf-8").splitlines() if verdicts(kernel).exists() else ())
    return list({r["n"]: r for r in rows}.values())


def verdict_of(kernel, registry, arch) -> tuple[str, list[str]]:
    """What `cake check` says: accepted (all proved), refused (an error), not analysed; or that the compiler takes no such text."""
    try:
        typed = elaborate(kernel, registry, arch, derived=True, overrides={})
        found = checked(typed, registry, arch, None, prover())
    except CakeError as error:
        return "no kernel", list(dict.fromkeys(d.code for d in error.diagnostics))
    errors = list(dict.fromkeys(d.code for d in found.findings if d.severity is Severity.ERROR))
    open_ = [d.code for d in found.findings if d.code == "rules/not-analysed"]
    return ("refused" if errors else "not analysed" if open_ else "accepted"), errors or open_


# --- artifacts ---------------------------------------------------------------------------------------------------


def artifacts_of(kernel, front, registry, plan, codes: list[str]) -> Iterator[tuple[int, dict[str, bytes]]]:
    """The artifact of a derived form for each of `DELAYS`, whatever is wrong with it. `plan`: of the schedule that it came from; `codes`: the
    verifier's. Raises CakeError where the assembler does not take the text as it is."""
    text = program_text(Program(front.program.version, True, (kernel,)))
    made = build(Source("derived.cake", text), registry, front.arch.name, violated=True)
    m = made.manifest
    wanted = ("manifest.json", "kernel.cubin", *(("kernel.ptx",) if m.portable else ()), *(("assumes.ptx",) if m.device_check else ()))
    for seed in DELAYS:
        ptx = delayed(made.lowered.ptx, seed)
        try:
            cubin = assemble(ptx, front.arch.assembler_target, m.kernel).cubin
        except CakeError:
            if not seed:
                raise
            continue
        files = made.files | {"kernel.ptx": ptx.encode(), "kernel.cubin": cubin}
        hashes = m.hashes | {n: artifact.sha256(files[n]) for n in ("kernel.ptx", "kernel.cubin")}
        files["manifest.json"] = replace(m, plan=plan, violated=tuple(codes), hashes=hashes).to_json().encode()
        yield seed, {name: files[name] for name in wanted}


def chosen(rows: list[dict], refused: int, accepted: int) -> list[dict]:
    """Of one kernel's verdicts: so many of each kind, operators in turn as they were drawn."""
    bad = [r for r in rows if r["verdict"] in ("refused", "not analysed")]
    good = [r for r in rows if r["verdict"] == "accepted" and r["operator"].startswith(ORDER)]
    return [r | {"rank": rank} for kind, most in ((bad, refused), (good, accepted)) for rank, r in enumerate(kind[:most])]


def built(task: tuple[str, str, list[dict]]) -> str:
    kernel, arch, rows = task
    registry, front, edits, _ = edits_of(kernel, arch)
    found = {(e.operator, e.what, e.span.line): e for e in reversed(edits)}
    path = ROOT / "kernels" / f"{kernel}.cake"
    plan = build(Source(path.name, path.read_text(encoding="utf-8")), registry, arch).manifest.plan
    index, packed = [], {}
    control = {"kernel": kernel, "arch": arch, "n": -1, "operator": "none", "what": "", "line": 0, "verdict": "accepted", "codes": [], "rank": 0}
    for row in (control, *rows):
        name = f"{Path(kernel).name}.{'control' if row is control else row['n']}"
        edit = found.get((row["operator"], row["what"], row["line"]))
        if edit is None and row is not control:  # the kernel is another one by now
            print(name, row["operator"], "is gone", flush=True)
            continue
        try:
            made = dict(artifacts_of(front.derived if row is control else edit.kernel, front, registry, plan, row["codes"]))
        except CakeError as error:
            print(name, row["operator"], row["verdict"], *(d.code for d in error.diagnostics), flush=True)
            continue
        packed |= {f"{name}/{seed}/{file}": data for seed, files in made.items() for file, data in files.items()}
        index.append(row | {"name": name, "delays": list(made)})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in packed.items():
            archive.writestr(name, data)
    out = OUT / Path(kernel).name
    out.with_suffix(".zip").write_bytes(buffer.getvalue())
    out.with_suffix(".json").write_text(
        json.dumps({"sha256": artifact.sha256(buffer.getvalue()), "mutants": index}, indent=1) + "\n", encoding="utf-8"
    )
    return f"{kernel}: {dict(Counter(r['verdict'] for r in index))}, {len(buffer.getvalue()) >> 10} KiB"


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("step", choices=("judge", "build"))
    args.add_argument("--each", type=int, default=40, help="mutants of a kernel that are judged")
    args.add_argument("--refused", type=int, default=12, help="of a kernel, at most")
    args.add_argument("--accepted", type=int, default=6, help="of a kernel, at most")
    args.add_argument("--processes", type=int, default=2)
    given = args.parse_args()
    with ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
        if given.step == "judge":
            tasks = [(k, a, start, start + CHUNK) for start in range(0, given.each, CHUNK) for k, a in KERNELS[::-1]]
            for done in pool.map(judged, tasks):
                print(done, flush=True)
            return
        tasks = [(k, a, chosen(rows, given.refused, given.accepted)) for k, a in KERNELS if (rows := rows_of(k))]
        for done in pool.map(built, tasks):
            print(done, flush=True)


if __name__ == "__main__":
    main()
