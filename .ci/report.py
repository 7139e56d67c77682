"""Where a test run spent its time: `python .ci/report.py REPORT.xml` reads a JUnit report of pytest.

It prints the seconds of every room beside its budget (the table of docs/ci.md), the slowest tests, and what was skipped.
A room over its budget is marked; exit code 1 where it is over SLACK times its budget (machines differ, and so does what
else they do) or has none, or where a test was skipped for a reason that is not allowed: a tool that is missing is a failure.
"""

import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

PAGE = Path(__file__).resolve().parents[1] / "docs" / "ci.md"
SLOWEST = 10
SLACK = 3
#: Reasons for which a test may be skipped: what the machine is, not what it lacks, but for a browser, which no index of Python packages has.
ALLOWED = ("permissions do not bind this user", "signals", "no browser is on this machine")


@dataclass(frozen=True)
class Case:
    room: str
    name: str
    seconds: float
    skipped: str | None


def room_of(classname: str) -> str:
    """`tests.cli.test_run` is in `tests/cli`, `plugins.tma.tests.test_boxes` in `plugins/tma`, `tests.test_wheel` in `tests`."""
    parts = classname.split(".")
    return "/".join(parts[:2]) if len(parts) > 2 and not parts[1].startswith("test_") else parts[0]


def cases(report: Path) -> list[Case]:
    found = []
    for e in ElementTree.parse(report).iter("testcase"):
        skip = e.find("skipped")
        classname = e.get("classname", "")
        reason = None if skip is None else (skip.get("message") or "no reason")
        found.append(Case(room_of(classname), f"{classname.replace('.', '/')}.py::{e.get('name')}", float(e.get("time", 0)), reason))
    return found


def budgets(page: Path = PAGE) -> dict[str, float]:
    """Seconds by room, of the rows "| `room` | seconds | .. |" of the page; `*` is any room without a row."""
    rows = re.findall(r"^\| `([\w/*]+)` \| (\d+) \|", page.read_text(encoding="utf-8"), re.M)
    return {room: float(seconds) for room, seconds in rows}


def report(found: list[Case], allowed: dict[str, float]) -> tuple[str, list[str]]:
    """(what to print, what is wrong)."""
    spent: dict[str, float] = defaultdict(float)
    for c in found:
        spent[c.room] += c.seconds
    lines, wrong = [f"{'room':<20} {'tests':>6} {'seconds':>8} {'budget':>7}"], []
    for room, seconds in sorted(spent.items(), key=lambda x: -x[1]):
        budget = allowed.get(room, allowed.get("*"))
        lines.append(f"{room:<20} {sum(c.room == room for c in found):>6} {seconds:>8.1f} {budget if budget is not None else 'none':>7}{'  over' if budget is not None and seconds > budget else ''}")
        if budget is None:
            wrong.append(f"room '{room}' has no budget in docs/ci.md")
        elif seconds > SLACK * budget:
            wrong.append(f"room '{room}' took {seconds:.0f} s of {budget:.0f}")
    lines += [f"{'all':<20} {len(found):>6} {sum(spent.values()):>8.1f}", "", "slowest:"]
    lines += [f"  {c.seconds:>6.1f}  {c.name}" for c in sorted(found, key=lambda c: -c.seconds)[:SLOWEST]]
    skipped = [c for c in found if c.skipped]
    lines += ["", f"skipped: {len(skipped)}", *(f"  {c.name}: {c.skipped}" for c in skipped)]
    wrong += [f"{c.name} was skipped: {c.skipped}" for c in skipped if not any(a in c.skipped for a in ALLOWED)]
    if not found:
        wrong.append("the report holds no test")
    return "\n".join(lines), wrong


def main(path: str) -> int:
    try:
        found = cases(Path(path))
    except (OSError, ElementTree.ParseError) as error:
        print(f"no report of the tests: {error}", file=sys.stderr)
        return 1
    text, wrong = report(found, budgets())
    print(text)
    for w in wrong:
        print(f"wrong: {w}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
