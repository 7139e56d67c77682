"""Writes the results of docs/mutants.md: `python docs/mutants.py --write [NAME ..]`, or `--all --write` for every row anew.

Every single mutant of the kernels that are named, or drawn ones (`--random`), or kernels of the seeds A .. B - 1 (`--drawn FAMILY A B`); or only
the cases on which the judges did not agree before (`--again`). What was found is kept in mutants.json beside this file, row by row, and the
table is made of that. It takes seconds a mutant, in as many processes as there are cores. The second table is of
bench/results/mutants_device.json.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

from cake_core.facts import facts_of
from cake_core.ir.nodes import Program
from cake_core.ir.printer import program_text
from cake_core.machine import Scenario, scenarios_of
from cake_core.mutate import Judge, Outcome, drawn, mutants
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.source import Source

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SEED = 20
RESULTS, DEVICE, PAGE = HERE / "mutants.json", ROOT / "bench" / "results" / "mutants_device.json", HERE / "mutants.md"
START, END = "<!-- results, written by docs/mutants.py -->", "<!-- end of results -->"
DEVICE_START, DEVICE_END = "<!-- on hardware, written by docs/mutants.py -->", "<!-- end of on hardware -->"
#: Mutants that one process judges before it reports.
SHARE = 24
REGISTRY = load_registry()

#: Kernel, target, and sizes where those that are found would leave something out. Elementwise kernels have no statement that an operator changes.
KERNELS = {
    "softmax": ("softmax/softmax", "sm90", ()),
    "rmsnorm": ("rmsnorm/rmsnorm", "sm80", ()),
    "softmax_cluster": ("softmax/softmax_cluster", "sm90", ()),
    "knn_part": ("knn/knn_part_sm90", "sm90", ()),
    "gemm_sm80": ("gemm/gemm_sm80", "sm80", ()),
    "kmeans_assign": ("kmeans/kmeans_assign_sm90", "sm90", ()),
    "gemm_sm100": ("gemm/gemm_sm100", "sm100", ()),
    "gemm_sm90": ("gemm/gemm_sm90", "sm90", ()),
    "gemm_bias_gelu": ("gemm/gemm_bias_gelu_sm90", "sm90", ()),
    "softmax_short": ("softmax/softmax_short", "sm90", ()),
    "quantize_e4m3": ("quantize/quantize_e4m3", "sm90", ()),
    "gemm_sm100_pair": ("gemm/gemm_sm100_pair", "sm100", ()),
    "moe_grouped": ("moe/moe_grouped_sm90", "sm90", ()),
    "moe_grouped_dynamic": ("moe/moe_grouped_dynamic_sm90", "sm90", ()),
    "gemm_sm100_mxf8": ("gemm/gemm_sm100_mxf8", "sm100", ()),
    "gemm_sm100_nvf4": ("gemm/gemm_sm100_nvf4", "sm100", ()),
    "knn_merge": ("knn/knn_merge", "sm90", ()),
    "attn_fwd": ("attention/attn_fwd_sm90", "sm90", ()),
}
#: Kernels that the machine's tests use, beside the zoo.
TEXTS = ("ring", "lagged", "turns", "epilogue", "groups", "multicast")


def front_of(name: str):
    """The front of a kernel by name, and the scenarios that it is given."""
    if name in TEXTS:
        path, arch, sizes = ROOT / "tests" / "machine" / "texts" / f"{name}.cake", None, ()
    else:
        folder, arch, sizes = KERNELS[name]
        path = ROOT / "kernels" / f"{folder}.cake"
    front = frontend(Source(path.name, path.read_text(encoding="utf-8")), REGISTRY, arch)
    if name in ("moe_grouped", "moe_grouped_dynamic"):
        # Items that are drawn are at most two ahead, so that a ring of four slots is lapped in one and the next only with more than two steps each.
        sizes = {"E": 4, "T": 200, "N": 300, "K": 128 if name == "moe_grouped" else 200}
        return front, tuple(Scenario(sizes, loads=lambda t, i, ends=ends: ends[i[0]]) for ends in ENDS)
    if name == "attn_fwd":
        return front, tuple(map(attention, BATCHES))
    given = tuple(Scenario(s) for s in sizes) or scenarios_of(facts_of(front.typed, REGISTRY, front.arch))
    return front, given


#: Where the groups of tokens end: empty ones, one alone, equal ones; and as many items as so many tokens can have.
ENDS = ([0, 0, 5, 135, 200], [0, 200, 200, 200, 200], [0, 64, 128, 192, 200], [0, 1, 2, 3, 200])
#: Sequences of queries and keys, and heads: tails, empty ones, long ones; and whole items one behind the other.
BATCHES = (([130], [200], 1), ([70, 0, 5, 9], [0, 3, 130, 4], 2), ([128, 100], [900, 300], 1), ([256], [130], 1))


def attention(batch: tuple[list[int], list[int], int]) -> Scenario:
    """A ragged batch; the table of items in the order of the sequences."""
    lq, lk, heads = batch
    cq, ck = ([sum(x[:i]) for i in range(len(x) + 1)] for x in (lq, lk))
    items = [(b, r, h) for b in range(len(lq)) for r in range(cq[b], cq[b + 1], 128) for h in range(heads)]
    tensors = {"CQ": cq, "CK": ck}
    sizes = {"B": len(lq), "H": heads, "HK": 1, "TQ": cq[-1], "TK": ck[-1], "t_count": len(items)}
    return Scenario(sizes, loads=lambda t, i: items[i[0]][i[1]] if t == "t_items" else tensors[t][i[0]])


# --- kernels and their mutants, a share at a time ----------------------------------------------------------------


@cache
def judge_of(name: str):
    """In this process: front, single mutants and judge of a kernel."""
    front, scenarios = front_of(name)
    edits = list(mutants(front.derived, front.typed, REGISTRY))
    return front, edits, Judge(REGISTRY, front.arch, scenarios)


def share(task: tuple[str, str, int, int, int]) -> list[dict]:
    """Records of what a task names: ("single", kernel, first, end, step), ("random", kernel, first, end, 1) or ("drawn", family, first, end, 1)."""
    kind, name, first, end, step = task
    if kind == "drawn":
        return [drawn_kernel(name, seed) for seed in range(first, end)]
    front, edits, judge = judge_of(name)
    if kind == "single":
        return [judge.case(e, e.kernel).record() for e in edits[first:end:step]]
    chosen = {e.kernel: e for e in drawn(front.derived, front.typed, REGISTRY, front.arch, end - first, SEED, start=first)}
    return [judge.case(e, e.kernel).record() | {"text": hash_of(e.kernel)} for e in chosen.values()]


def hash_of(kernel) -> str:
    """The same for the same text, in all processes."""
    return sha256(program_text(Program(1, True, (kernel,))).encode()).hexdigest()


def drawn_kernel(family: str, seed: int) -> dict:
    """A kernel of a seed: as drawn, with one edit, with two, in turn."""
    kernels = generated(family)
    scenarios = tuple(Scenario({"R": r, "K": k}, loads=getattr(kernels, "loads", None)) for r, k in kernels.SIZES)
    front = frontend(Source(f"drawn {seed}", kernels.text(seed)), REGISTRY)
    judge = Judge(REGISTRY, front.arch, scenarios, states=1500)
    if seed % 3 == 0:
        return judge.case(None, front.derived).record() | {"seed": seed}
    (edit,) = drawn(front.derived, front.typed, REGISTRY, front.arch, 1, seed, most=seed % 3)
    return judge.case(edit, edit.kernel).record() | {"seed": seed}


@cache
def generated(family: str):
    """The module that draws: `generated`, `generated_wide`."""
    spec = importlib.util.spec_from_file_location(family, ROOT / "tests" / "prove" / f"{family}.py")
    module = sys.modules[family] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def begin(pool, title: str, kind: str, name: str, total: int, first: int = 0, step: int = 1) -> tuple[str, str, int, list]:
    """The shares of one row, given to the pool: its title, target and number of mutants, and what will be found."""
    end, size = first + total, step * max(1, min(SHARE, total // (4 * step * (os.cpu_count() or 1))))
    arch = "sm90" if kind == "drawn" else judge_of(name)[0].arch.name
    return title, arch, total, [pool.submit(share, (kind, name, at, min(at + size, end), step)) for at in range(first, end, size)]


def collect(title: str, arch: str, total: int, shares: list, end: float) -> None:
    """One row, kept as it comes. A row that is not judged to its last mutant at the time `end` stays as it was. Raises TimeoutError."""
    records: list[dict] = []
    for found in shares:
        there = {r.get("text") for r in records}
        records += [r for r in found.result(end - time.monotonic()) if r.get("text") is None or r["text"] not in there]  # drawn twice, it counts once
        print(title, len(records), flush=True)
    keep(title, row(records, total, arch=arch))


def row(records: list[dict], total: int, **more) -> dict:
    """What is kept of a run: counts by operator, and every case that the judges do not agree on."""
    counts: dict[str, dict[str, int]] = {}
    for (operator, outcome), n in sorted(Counter((r["operator"] if "seed" not in r else "drawn", r["outcome"]) for r in records).items()):
        counts.setdefault(operator, {})[outcome] = n
    apart = [{k: v for k, v in r.items() if k != "text"} for r in records if r["outcome"] in (Outcome.MISSED, Outcome.ALARM, Outcome.UNRUN)]
    alone = [
        [r["operator"], r["what"], *r["codes"], r["proof"]["answer"], r["machine"]["kind"] if r["machine"] else "None"]
        for r in records
        if r["outcome"] == Outcome.CHECKED
    ]
    unknown = Counter(r["proof"]["reason"] for r in records if r["outcome"] == Outcome.UNKNOWN)
    return more | {
        "mutants": total,
        "judged": len(records),
        "counts": counts,
        "apart": apart,
        "checked": alone,
        "unknown": dict(unknown.most_common()),
    }


def again(title: str) -> None:
    """The cases of a row on which the judges did not agree, judged anew; the others stay."""
    kept = json.loads(RESULTS.read_text())[title]
    front, edits, judge = judge_of(title.removesuffix(", drawn"))
    if title.endswith(", drawn"):
        edits = drawn(front.derived, front.typed, REGISTRY, front.arch, kept["mutants"], SEED)
    left = {(r["operator"], r["what"], r["line"]): r for r in kept["apart"]}
    for edit in edits:
        if (before := left.pop((edit.operator, edit.what, edit.span.line), None)) is not None:
            now = row([judge.case(edit, edit.kernel).record()], 1)
            for operator, counts in now["counts"].items():
                for outcome, n in counts.items():
                    kept["counts"][operator][outcome] = kept["counts"][operator].get(outcome, 0) + n
            counts = kept["counts"][edit.operator]
            counts[before["outcome"]] -= 1
            kept["counts"][edit.operator] = {o: n for o, n in sorted(counts.items()) if n}
            kept["apart"].remove(before)
            kept["apart"] += now["apart"]
            kept["checked"] += now["checked"]
            kept["unknown"] = dict((Counter(kept["unknown"]) + Counter(now["unknown"])).most_common())
            print(title, edit.what, now["counts"], flush=True)
    if left:
        raise SystemExit(f"{title}: no such mutant any more: {', '.join(what for _, what, _ in left)}")
    keep(title, kept)


def keep(name: str, found: dict) -> None:
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    kept[name] = found
    fresh = RESULTS.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n", encoding="utf-8")
    fresh.replace(RESULTS)


def table() -> str:
    kept = json.loads(RESULTS.read_text())
    lines = ["| kernel | target | judged | " + " | ".join(map(str, Outcome)) + " |", "| --- | --- |" + " ---: |" * (len(Outcome) + 1)]
    sums = Counter()
    for name, found in kept.items():
        row = Counter()
        for counts in found["counts"].values():
            row.update(counts)
        sums.update(row)
        of = "" if found["judged"] == found["mutants"] or name.endswith(", drawn") else f" of {found['mutants']}"
        lines.append(f"| {name} | {found['arch']} | {found['judged']}{of} | " + " | ".join(str(row[o] or "") for o in Outcome) + " |")
    lines.append(f"| all | | {sum(sums.values())} | " + " | ".join(str(sums[o]) for o in Outcome) + " |")
    return "\n".join(lines)


def device_table() -> str:
    """By kernel and verdict: what became of the mutants on the GPU."""
    found = json.loads(DEVICE.read_text(encoding="utf-8"))
    outcomes = ("right", "varies", "wrong", "fault", "hang", "not run")
    groups = Counter((Path(m["kernel"]).name, m["arch"], m["verdict"], m["outcome"]) for m in found["mutants"])
    lines = ["| kernel | target | verdict | mutants | " + " | ".join(outcomes) + " |", "| --- | --- | --- |" + " ---: |" * (len(outcomes) + 1)]
    for kernel, arch, verdict in dict.fromkeys(k[:3] for k in groups):
        n = [groups[kernel, arch, verdict, o] for o in outcomes]
        lines.append(f"| {kernel} | {arch} | {verdict} | {sum(n)} | " + " | ".join(str(x or "") for x in n) + " |")
    for verdict in dict.fromkeys(m["verdict"] for m in found["mutants"]):
        n = [sum(m["outcome"] == o for m in found["mutants"] if m["verdict"] == verdict) for o in outcomes]
        lines.append(f"| all | | {verdict} | {sum(n)} | " + " | ".join(str(x or "") for x in n) + " |")
    e, controls = found["environment"], found["controls"] + found["controls_afterwards"]
    launches = sum(m["launches"] for m in found["mutants"])
    right = sum(c["outcome"] == "right" for c in controls)
    return "\n".join([*lines, "", f"{e['gpu']}, {e['date']}, {launches} launches; {right} of {len(controls)} runs of the kernels themselves right."])


def everything() -> list[tuple]:
    """What the rows of the table are of: title, kind, name, how many, and the first seed."""
    kept = json.loads(RESULTS.read_text())
    single = [(n, "single", n, len(judge_of(n)[1])) for n in (*KERNELS, *TEXTS)]
    random = [(t, "random", t.removesuffix(", drawn"), row["mutants"]) for t, row in kept.items() if t.endswith(", drawn")]
    seeds = [(t, *t.replace(" .. ", " ").split()) for t in kept if " .. " in t]
    return [*single, *random, *((t, "drawn", family, int(end) - int(first), int(first)) for t, family, first, end in seeds)]


def chosen(given: argparse.Namespace) -> list[tuple]:
    """The rows that the arguments name, as `everything` has them."""
    if given.rows:
        there = {r[0]: r for r in everything()}
        if unknown := [t for t in given.rows.split(";") if t not in there]:
            raise SystemExit(f"no row '{unknown[0]}'; there are {'; '.join(there)}")
        return [there[t] for t in given.rows.split(";")]
    rows = everything() if given.all else []
    for name in () if given.again else given.names:
        single = (name, "single", name, len(judge_of(name)[1]), 0, given.every)
        rows.append((f"{name}, drawn", "random", name, given.random) if given.random else single)
    if given.drawn:
        family, first, end = given.drawn[0], *map(int, given.drawn[1:])
        rows.append((f"{family} {first} .. {end}", "drawn", family, end - first, first))
    return rows


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("names", nargs="*", help=f"of {', '.join((*KERNELS, *TEXTS))}")
    args.add_argument("--drawn", nargs=3, metavar=("FAMILY", "A", "B"), help="kernels of seeds; FAMILY: generated, generated_wide")
    args.add_argument("--random", type=int, default=0, metavar="N", help="N mutants of one to three edits instead of all single ones")
    args.add_argument("--every", type=int, default=1, metavar="N", help="every N-th mutant of a kernel alone")
    args.add_argument("--again", action="store_true", help="only those of the rows NAME and 'NAME, drawn' on which the judges did not agree")
    args.add_argument(
        "--all", action="store_true", help="every row of the table, with as many drawn mutants as it has, and every kernel that has none"
    )
    args.add_argument("--rows", metavar="TITLE;..", help="rows of the table by their titles, judged anew")
    args.add_argument("--budget", type=float, default=1e9, metavar="SECONDS", help="rows that are not whole by then stay as they were")
    args.add_argument("--processes", type=int, default=os.cpu_count())
    args.add_argument("--write", action="store_true", help="the tables into mutants.md")
    given = args.parse_args()
    rows = [t for n in given.names for t in (n, f"{n}, drawn")] if given.again else []
    for title in rows:
        if title in json.loads(RESULTS.read_text()):
            again(title)
    end, late = time.monotonic() + given.budget, []
    with ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
        for title, arch, total, shares in [begin(pool, *r) for r in chosen(given)]:
            try:
                collect(title, arch, total, shares, end)
            except TimeoutError:
                late.append(title)
        for process in list(pool._processes.values()) if late else ():  # what is late is not waited for
            process.kill()
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        tables = [(START, END, table()), *([(DEVICE_START, DEVICE_END, device_table())] if DEVICE.exists() else [])]
        for start, end, text in tables:
            head, tail = page.split(start)[0], page.split(end)[1]
            page = f"{head}{start}\n{text}\n{end}{tail}"
        PAGE.write_text(page, encoding="utf-8")
    if late:
        raise SystemExit(f"not whole in time: {'; '.join(late)}")


if __name__ == "__main__":
    main()
