"""The tables of emulator.md: what was recorded of the emulator beside a GPU, and of the zoo that no GPU here has run.

python docs/emulator.py --write     writes the tables anew from bench/results
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

PAGE = Path(__file__).with_suffix(".md")
RESULTS = Path(__file__).resolve().parents[1] / "bench" / "results"


def recorded(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def table(head: tuple[str, ...], rows: list[tuple]) -> list[str]:
    """Columns of numbers to the right."""
    align = ["---:" if rows and all(isinstance(row[n], int | float) for row in rows) else "---" for n in range(len(head))]
    show = lambda v: f"{v:,}" if isinstance(v, int) else f"{v:.2g}" if isinstance(v, float) else str(v)
    return [f"| {' | '.join(line)} |" for line in (head, align, *([show(v) for v in row] for row in rows))]


def micro() -> str:
    """Micro-kernels by families."""
    found = recorded("emulator_micro")
    about = found["environment"]
    rows = [(name, f["cases"], f["elements"], f["equal"], f["admitted"], f["different"]) for name, f in found["families"].items()]
    total = tuple(sum(row[n] for row in rows) for n in range(1, 6))
    head = ("family", "micro-kernels", "elements written", "equal in every bit", "within what the ISA leaves open", "different")
    said = f"{about['gpu']}, driver {about['driver']}, CUDA {about['cuda']}, {about['date']} (`bench/results/emulator_micro.json`):"
    return "\n".join((said, "", *table(head, [*rows, ("all", *total)])))


def zoo() -> str:
    """Whole kernels on a GPU and here."""
    found = recorded("emulator")
    about, kernels = found["environment"], defaultdict(list)
    for case in found["cases"]:
        kernels[case["kernel"], case["arch"]].append(case)
    rows = []
    for (name, arch), cases in kernels.items():
        outputs = [o for case in cases for o in case["outputs"].values()]
        elements, differ = (sum(o[n] for o in outputs) for n in ("elements", "differ"))
        worst = float(max((o["worst"] or 0 for o in outputs), default=0))
        bad = sum(not all(o["ok"] for o in case["outputs"].values()) or bool(case["findings"]) for case in cases)
        steps = max((o["steps"] for o in outputs), default=0)
        rows.append((f"`{name}`", arch, len(cases), elements, elements - differ, steps, worst, bad))
    driver = about["nvidia_smi"]["driver_version"]
    head = (
        "kernel",
        "target",
        "shapes",
        "elements",
        "equal in every bit",
        "largest difference, in steps",
        "from the reference",
        "wrong, or with a finding",
    )
    said = f"{about['gpu']}, driver {driver}, CUDA {about['driver_cuda']}, {about['date']} (`bench/results/emulator.json`):"
    return "\n".join((said, "", *table(head, sorted(rows))))


def alone() -> str:
    """The zoo for sm100, which no GPU has run: against the references of its companions."""
    found = recorded("emulated_sm100")
    kernels = defaultdict(list)
    for case in found["cases"]:
        kernels[case["kernel"]].append(case)
    rows = []
    for name, cases in kernels.items():
        shapes = {json.dumps(case["shape"], sort_keys=True) for case in cases}
        worst = float(max((o["worst"] or 0 for case in cases for o in case["outputs"].values()), default=0))
        rows.append((f"`{name}`", len(shapes), len(cases), worst, sum(not case["right"] or bool(case["findings"]) for case in cases)))
    head = ("kernel", "shapes", "runs", "from the reference", "wrong, or with a finding")
    said = f"Two schedules a shape, {found['environment']['date']} (`bench/results/emulated_sm100.json`):"
    return "\n".join((said, "", *table(head, sorted(rows))))


def speed() -> str:
    """What one item of work costs in both executors."""
    found = recorded("on_cpu")
    host = found["environment"]["host"]
    rows = [(f"`{r['kernel']}`", r["arch"], r["emulator"]["wall_s"], r["simulator"]["wall_s"]) for r in found["kernels"]]
    shape = ", ".join(f"{n} = {v}" for n, v in found["shape"].items())
    said = f"{shape}, {host['processor']}, Python {host['python']}, {found['environment']['date']} (`bench/results/on_cpu.json`):"
    return "\n".join((said, "", *table(("kernel", "target", "emulator, s", "simulator, s"), rows)))


TABLES = {"speed": speed, "micro-kernels": micro, "kernels": zoo, "sm100": alone}


def marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}, written by docs/emulator.py -->", f"<!-- end of {name} -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="into emulator.md; else they are printed")
    args = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    for name, made in TABLES.items():
        start, end = marks(name)
        page = "".join((page.split(start)[0], start, "\n", made(), "\n", end, page.split(end)[1]))
        if not args.write:
            print(made(), end="\n\n")
    if args.write:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
