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
SIDES = {"cake": "Cake", "torch": "torch", "copy": "copy", "compiled": "torch.compile"}
#: Measured sizes of a row, by kernel: what names the shape.
SIZES = ("M", "N", "K", "R", "C")


def read(folder: Path = HERE / "results") -> dict[str, dict]:
    return {p.stem: json.loads(p.read_text(encoding="utf-8")) for p in sorted(folder.glob("*.json"))}


def section(results: dict[str, dict]) -> str:
    """Markdown. Only what the files hold: a kernel that was not measured has no row."""
    timed = {name: r for name, r in results.items() if "method" in r}
    lines = ["| kernel | shape | launches | Cake | beside it (Cake's speed over it) |", "| --- | --- | --- | ---: | --- |"]
    for name, r in timed.items():
        for row in r["shapes"]:
            shape = " × ".join(str(row[s]) for s in SIZES if s in row)
            lines += [f"| `{name}` | {shape} | {mode} | {_rate(row[mode]['sides']['cake'])} | {_others(row[mode])} |" for mode in r["method"]]
    lines += ["", *filter(None, (_correct(results), _launch(results.get("launch")), _where(timed)))]
    return "\n".join(lines) + "\n"


def _rate(side: dict) -> str:
    return ", ".join(f"{side[key]} {unit}" for key, unit in RATES.items() if key in side)


def _others(measured: dict) -> str:
    over = measured["cake_speed_over"]
    return ", ".join(f"{SIDES.get(s, s)} {_rate(measured['sides'][s])} ({ratio:.3f})" for s, ratio in over.items())


def _correct(results: dict[str, dict]) -> str:
    """Random shapes against float64, of the files `check_*`."""
    checked = {name.removeprefix("check_"): r for name, r in results.items() if name.startswith("check_")}
    parts = [f"{name} on {len(r['shapes'])} shapes, {len(r['wrong'])} wrong" for name, r in checked.items()]
    return f"Against float64 on random shapes, edges, padded rows and poisoned outputs: {'; '.join(parts)}." if parts else ""


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
