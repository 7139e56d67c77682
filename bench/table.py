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
#: What a kernel is timed beside, as the table calls it.
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
NO_SIZE = ("bytes", "flop", "planning_us", "equal_to_torch", "labels_agree", "lists_agree", "elements_unlike_torch", "scales_agree")


def read(folder: Path = HERE / "results") -> dict[str, dict]:
    """By name; what lies in a folder of `results` by that folder and name, such as `sm80/check_softmax`."""
    files = sorted(folder.rglob("*.json"))
    return {p.relative_to(folder).with_suffix("").as_posix(): json.loads(p.read_text(encoding="utf-8")) for p in files}


def section(results: dict[str, dict]) -> str:
    """Markdown. Only what the files hold: a kernel that was not measured has no row."""
    timed = {name: r for name, r in results.items() if measured(r)}
    lines = ["| kernel | shape | bursts | beside it (speed of Cake over it) | sustained |", "| --- | --- | ---: | --- | --- |"]
    for name, r in timed.items():
        lines += [line for row in measured(r) for line in _lines(name, row)]
    facts = (
        _correct(results),
        _portable(results),
        _companions(results.get("companions")),
        _repeats(results.get("repeats")),
        _launch(results.get("launch")),
    )
    lines += ["", *filter(None, facts), _where(timed)]
    return "\n".join(lines) + "\n"


def measured(result: dict) -> list[dict]:
    """The rows of a file that hold timings."""
    return [row for row in result.get("shapes", ()) if any(isinstance(v, dict) and "sides" in v for v in row.values())]


def ours(row: dict) -> list[str]:
    """Sides that are ours: `cake`, `cake` with a setting, such as `cake SPLIT 1`; without such a name those that are no others'.
    A part of one of ours, such as `cake, part alone`, stands beside it."""
    sides = row["burst"]["sides"]
    named = [side for side in sides if re.fullmatch(r"cake( [^,]*)?", side)]
    return named or [side for side in sides if side not in OTHERS]


def _shape(row: dict) -> str:
    sizes = [k if v is True else f"{k} {v}" for k, v in row.items() if k not in NO_SIZE and isinstance(v, int) and v is not False]
    return ", ".join(sizes) or "x".join(map(str, row.get("shape", ())))


def _lines(name: str, row: dict) -> list[str]:
    shape, out, mine = _shape(row), [], ours(row)
    for side in mine:
        kernel = f"`{name}`{side.removeprefix('cake')}" if side.startswith("cake") else f"`{side}`"
        sustained = f"{_rate(row['sustained']['sides'][side])}; {_others(row['sustained'], side, mine)}" if "sustained" in row else ""
        out.append(f"| {kernel} | {shape} | {_rate(row['burst']['sides'][side])} | {_others(row['burst'], side, mine)} | {sustained} |")
    return out


def _rate(side: dict) -> str:
    return next((f"{side[key]} {unit}" for key, unit in RATES.items() if key in side), f"{side['median_us']} µs")


def _others(mode: dict, side: str, ours: list[str]) -> str:
    """Medians of the same run: a ratio above 1 is for Cake."""
    sides = mode["sides"]
    others = [o for o in ours if o != side]
    beside = {s: v for s, v in sides.items() if s not in ours and s.partition(", ")[0] not in others}
    return ", ".join(f"{OTHERS.get(s, s)} {_rate(v)} ({v['median_us'] / sides[side]['median_us']:.3f})" for s, v in beside.items())


def _correct(results: dict[str, dict]) -> str:
    """Random shapes against float64, of the files `check_*`."""
    parts = []
    for name, r in results.items():
        if name.startswith("check_"):
            cases = next(r[k] for k in ("shapes", "cases", "runs") if k in r)
            parts.append(f"{name.removeprefix('check_')} in {len(cases)} cases, {len(r['wrong'])} wrong")
    return f"Against float64, random shapes with edges, poisoned outputs and guard bands: {'; '.join(parts)}." if parts else ""


def _portable(results: dict[str, dict]) -> str:
    """Builds for sm80, which this GPU runs from their PTX."""
    of_sm80 = [r for name, r in results.items() if name.startswith("sm80/check_")]
    if not of_sm80:
        return ""
    cases, wrong = sum(len(r["shapes"]) for r in of_sm80), sum(len(r["wrong"]) for r in of_sm80)
    return f"Built for sm80, and compiled by the driver there: {len(of_sm80)} kernels, {cases} of the same cases, {wrong} wrong."


def _companions(r: dict | None) -> str:
    if r is None:
        return ""
    kernels = {(c["kernel"], c["arch"]) for c in r["cases"]}
    return f"On all shapes of their companions: {len(kernels)} builds, {len(r['cases'])} shapes, {len(r['wrong'])} wrong."


def _repeats(r: dict | None) -> str:
    """Launches beside other work on the machine, whose outputs must keep their bits."""
    if r is None:
        return ""
    changed = sum(sum(map(bool, c["changed_bytes"])) for c in r["cases"])
    text = "Launched again beside products and copies on another stream: {} builds, {} launches, {} with other bits."
    return text.format(len(r["cases"]), sum(c["repeats"] for c in r["cases"]), changed)


def _launch(r: dict | None) -> str:
    if r is None:
        return ""
    host = r["host"]
    return (
        f"A prepared launch takes {host['prepared']['median_us']} µs of the host, the driver's own call {host['driver']['median_us']} µs."
    )


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
