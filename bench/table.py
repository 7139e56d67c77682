"""The results of `results/*.json` as the section of README.md that shows them.

    python bench/table.py            print the section
    python bench/table.py --write    put it into README.md

A test compares the two, so the numbers of README.md are those of the files.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
MARKS = re.compile(r"(?<=<!-- results, written by bench/table.py -->\n).*?(?=<!-- end of results -->)", re.S)
#: Rates that a side may carry: key in the JSON and the unit shown.
RATES = {"tflop_per_s": "TFLOP/s", "gb_per_s": "GB/s"}
#: What a kernel is timed beside. Where a side is called `cake`, it alone is ours, and every other side stands beside it; in a file
#: without one, the sides that are not listed here are ours.
OTHERS = {
    "torch": "torch",
    "copy": "a copy",
    "compiled": "torch.compile",
    "cudnn": "cuDNN",
    "flash3": "FlashAttention-3",
    "eager": "torch, eager",
    "cublaslt": "cuBLASLt with tanh GELU",
    "product": "torch.matmul alone",
    "cake_product": "our product alone",
}
#: Fields of a measured row that name no size.
NO_SIZE = ("bytes", "flop", "planning_us", "equal_to_torch", "labels_agree", "lists_agree")


def read(folder: Path = HERE / "results") -> dict[str, dict]:
    return {p.stem: json.loads(p.read_text(encoding="utf-8")) for p in sorted(folder.glob("*.json"))}


def section(results: dict[str, dict]) -> str:
    """Markdown. Only what the files hold: a kernel that was not measured has no row."""
    timed = {name: r for name, r in results.items() if measured(r)}
    lines = ["| kernel | shape | bursts | beside it (speed of Cake over it) | sustained |", "| --- | --- | ---: | --- | --- |"]
    for name, r in timed.items():
        lines += [line for row in measured(r) for line in _lines(name, row)]
    lines += ["", *filter(None, (_correct(results), _launch(results.get("launch")), _where(timed)))]
    return "\n".join(lines) + "\n"


def measured(result: dict) -> list[dict]:
    """The rows of a file that hold timings."""
    return [row for row in result.get("shapes", ()) if any(isinstance(v, dict) and "sides" in v for v in row.values())]


def ours(row: dict) -> list[str]:
    sides = row["burst"]["sides"]
    return ["cake"] if "cake" in sides else [side for side in sides if side not in OTHERS]


def _shape(row: dict) -> str:
    sizes = [k if v is True else f"{k} {v}" for k, v in row.items() if k not in NO_SIZE and isinstance(v, int) and v is not False]
    return ", ".join(sizes) or "x".join(map(str, row.get("shape", ())))


def _lines(name: str, row: dict) -> list[str]:
    shape, out = _shape(row), []
    for side in ours(row):
        kernel = name if side == "cake" else side
        sustained = f"{_rate(row['sustained']['sides'][side])}; {_others(row['sustained'], side)}" if "sustained" in row else ""
        out.append(f"| `{kernel}` | {shape} | {_rate(row['burst']['sides'][side])} | {_others(row['burst'], side)} | {sustained} |")
    return out


def _rate(side: dict) -> str:
    return next((f"{side[key]} {unit}" for key, unit in RATES.items() if key in side), f"{side['median_us']} µs")


def _others(mode: dict, side: str) -> str:
    """Medians of the same run: a ratio above 1 is for Cake."""
    sides = mode["sides"]
    beside = {s: v for s, v in sides.items() if s != side and (side == "cake" or s in OTHERS)}
    return ", ".join(f"{OTHERS.get(s, s)} {_rate(v)} ({v['median_us'] / sides[side]['median_us']:.3f})" for s, v in beside.items())


def _correct(results: dict[str, dict]) -> str:
    """Random shapes against float64, of the files `check_*`."""
    parts = []
    for name, r in results.items():
        if name.startswith("check_"):
            cases = next(r[k] for k in ("shapes", "cases", "runs") if k in r)
            parts.append(f"{name.removeprefix('check_')} in {len(cases)} cases, {len(r['wrong'])} wrong")
    return f"Against float64, random shapes with edges, poisoned outputs and guard bands: {'; '.join(parts)}." if parts else ""


def _launch(r: dict | None) -> str:
    if r is None:
        return ""
    host = r["host"]
    return f"A prepared launch takes {host['prepared']['median_us']} µs of the host, the driver's own call {host['driver']['median_us']} µs."


def _where(timed: dict[str, dict]) -> str:
    seen = dict.fromkeys((e["gpu"], e["libraries"]["torch"], e["date"][:10]) for e in (r["environment"] for r in timed.values()))
    return "; ".join(f"{gpu}, torch {torch}, {date}" for gpu, torch, date in seen) + "."


def main() -> None:
    text = section(read())
    if sys.argv[1:] == ["--write"]:
        README.write_text(MARKS.sub(lambda _: text, README.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
