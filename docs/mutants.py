"""Writes the results of docs/mutants.md: `python docs/mutants.py --write [NAME ..]`.

Every single mutant of the kernels below, or of those named, and of kernels drawn from seeds (`drawn`); what was found is kept in
mutants.json beside this file, name by name, and the table is made of that. It takes seconds a mutant: hours in all. `--drawn A B` takes
the seeds A .. B - 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections import Counter
from pathlib import Path

from cake_core.facts import facts_of
from cake_core.machine import Scenario, scenarios_of
from cake_core.mutate import Judge, Outcome, drawn, mutants
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.source import Source

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SEED = 20
RESULTS, PAGE = HERE / "mutants.json", HERE / "mutants.md"
START, END = "<!-- results, written by docs/mutants.py -->", "<!-- end of results -->"
REGISTRY = load_registry()

#: Kernel, target, and sizes where those that are found would leave something out.
KERNELS = {
    "softmax": ("softmax/softmax", "sm90", ()),
    "rmsnorm": ("rmsnorm/rmsnorm", "sm80", ()),
    "softmax_cluster": ("softmax/softmax_cluster", "sm90", ()),
    "knn_part": ("knn/knn_part_sm90", "sm90", ()),
    "gemm_sm80": ("gemm/gemm_sm80", "sm80", ()),
    "kmeans_assign": ("kmeans/kmeans_assign_sm90", "sm90", ()),
    "gemm_sm100": ("gemm/gemm_sm100", "sm100", ()),
    "gemm_sm90": ("gemm/gemm_sm90", "sm90", ()),
    "gemm_sm100_pair": ("gemm/gemm_sm100_pair", "sm100", ()),
    "moe_grouped": ("moe/moe_grouped_sm90", "sm90", ()),
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
    if name == "moe_grouped":
        sizes = {"E": 4, "T": 200, "N": 300, "K": 128}
        return front, tuple(Scenario(sizes, loads=lambda t, i, ends=ends: ends[i[0]]) for ends in ENDS)
    if name == "attn_fwd":
        return front, tuple(map(attention, BATCHES))
    given = tuple(Scenario(s) for s in sizes) or scenarios_of(facts_of(front.typed, REGISTRY, front.arch))
    return front, given


#: Where the groups of tokens end: empty ones, one alone, equal ones.
ENDS = ([0, 0, 5, 135, 200], [0, 200, 200, 200, 200], [0, 64, 128, 192, 200])
#: Sequences of queries and keys, and heads: tails, empty ones, long ones.
BATCHES = (([130], [200], 1), ([70, 0, 5, 9], [0, 3, 130, 4], 2), ([128, 100], [900, 300], 1))


def attention(batch: tuple[list[int], list[int], int]) -> Scenario:
    """A ragged batch; the table of items in the order of the sequences."""
    lq, lk, heads = batch
    cq, ck = ([sum(x[:i]) for i in range(len(x) + 1)] for x in (lq, lk))
    items = [(b, r, h) for b in range(len(lq)) for r in range(cq[b], cq[b + 1], 128) for h in range(heads)]
    tensors = {"CQ": cq, "CK": ck}
    sizes = {"B": len(lq), "H": heads, "HK": 1, "TQ": cq[-1], "TK": ck[-1], "t_count": len(items)}
    return Scenario(sizes, loads=lambda t, i: items[i[0]][i[1]] if t == "t_items" else tensors[t][i[0]])


def judged(name: str, every: int, random: int, keep) -> None:
    """Every single mutant of a kernel, or `random` ones of one to three edits."""
    front, scenarios = front_of(name)
    judge = Judge(REGISTRY, front.arch, scenarios)
    cases = [judge.case(None, front.derived)]
    edits = list(drawn(front.derived, front.typed, REGISTRY, front.arch, random, SEED) if random else mutants(front.derived, front.typed, REGISTRY))
    name += ", drawn" if random else ""
    chosen = edits[::every]
    for n, edit in enumerate(chosen):
        cases.append(judge.case(edit, edit.kernel))
        if n % 10 == 9 or n == len(chosen) - 1:
            keep(name, record(cases[1:], len(edits), arch=front.arch.name, itself=str(cases[0].outcome)))


def generated(first: int, end: int, keep) -> None:
    """Kernels of seeds: as drawn, with one edit, with two, in turn."""
    spec = importlib.util.spec_from_file_location("generated", ROOT / "tests" / "prove" / "generated.py")
    kernels = importlib.util.module_from_spec(spec)
    sys.modules["generated"] = kernels
    spec.loader.exec_module(kernels)
    scenarios = tuple(Scenario({"R": r, "K": k}) for r, k in kernels.SIZES)
    cases = []
    for seed in range(first, end):
        front = frontend(Source(f"drawn {seed}", kernels.text(seed)), REGISTRY)
        judge = Judge(REGISTRY, front.arch, scenarios, states=1500)
        if seed % 3 == 0:
            cases.append(judge.case(None, front.derived))
        else:
            (edit,) = drawn(front.derived, front.typed, REGISTRY, front.arch, 1, seed, most=seed % 3)
            cases.append(judge.case(edit, edit.kernel))
        if seed % 10 == 9 or seed == end - 1:
            keep(f"drawn {first} .. {end}", record(cases, end - first, arch="sm90", first=first))


def record(cases: list, total: int, **more) -> dict:
    """What is kept of a run: counts, and every case that the judges do not agree on."""
    tally = Counter((c.edit.operator if c.edit else "none", str(c.outcome)) for c in cases)
    counts: dict[str, dict[str, int]] = {}
    for (operator, outcome), n in sorted(tally.items()):
        counts.setdefault(operator if "first" not in more else "drawn", Counter())[outcome] += n
    apart = [
        c.record() | ({"seed": more["first"] + n} if "first" in more else {})
        for n, c in enumerate(cases)
        if c.outcome in (Outcome.MISSED, Outcome.ALARM, Outcome.UNRUN)
    ]
    alone = [
        [c.edit.operator, c.edit.what, *c.codes, str(c.proof[1].standing), str(c.fault and c.fault.kind)]
        for c in cases
        if c.outcome is Outcome.CHECKED
    ]
    unknown = Counter(c.proof[1].reason for c in cases if c.outcome is Outcome.UNKNOWN)
    return more | {"mutants": total, "judged": len(cases), "counts": counts, "apart": apart, "checked": alone, "unknown": dict(unknown.most_common())}


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
        of = "" if found["judged"] == found["mutants"] else f" of {found['mutants']}"
        lines.append(f"| {name} | {found['arch']} | {found['judged']}{of} | " + " | ".join(str(row[o] or "") for o in Outcome) + " |")
    lines.append(f"| all | | {sum(sums.values())} | " + " | ".join(str(sums[o]) for o in Outcome) + " |")
    return "\n".join(lines)


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("names", nargs="*", help=f"of {', '.join((*KERNELS, *TEXTS))}")
    args.add_argument("--drawn", nargs=2, type=int, metavar=("A", "B"))
    args.add_argument("--random", type=int, default=0, metavar="N", help="N mutants of one to three edits instead of all single ones")
    args.add_argument("--every", type=int, default=1, metavar="N", help="every N-th mutant of a kernel alone")
    args.add_argument("--write", action="store_true", help="the table into mutants.md")
    given = args.parse_args()
    for name in given.names:
        judged(name, given.every, given.random, keep)
    if given.drawn:
        generated(*given.drawn, keep)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        head, tail = page.split(START)[0], page.split(END)[1]
        PAGE.write_text(f"{head}{START}\n{table()}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
