"""Pages that a newcomer pastes into a shell: their blocks, and the shell.

In a page a block `sh` or `python` is run; blocks `text` behind it are what it prints. `...` in one stands for any lines. `text no-gpu`
is printed where there is no GPU, `python gpu` is run where there is one; here it is compiled.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from cake_core.diagnostics import CakeError
from cake_core.runtime.driver import driver

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
#: What a copy of the repository leaves out: nothing that is committed.
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", "out", "dist", "build", "__pycache__", ".pytest_cache", ".hypothesis", ".ruff_cache")


@dataclass(frozen=True)
class Block:
    """A fenced block: first word and rest of its info string."""

    language: str
    mark: str
    text: str


def blocks(page: str) -> list[Block]:
    return [Block(*(info.split(maxsplit=1) + ["", ""])[:2], text) for info, text in FENCE.findall(page)]


def steps(page: str) -> list[tuple[Block, list[Block]]]:
    """Every command with the outputs behind it."""
    found: list[tuple[Block, list[Block]]] = []
    for b in blocks(page):
        if b.language == "text":
            found[-1][1].append(b)
        else:
            found.append((b, []))
    return found


def expected(outputs: list[Block]) -> str:
    return "".join(b.text for b in outputs if not (b.mark == "no-gpu" and has_gpu()))


def matches(wanted: str, output: str) -> bool:
    """Line by line; a line `...` stands for any number of lines."""
    lines = (".*?" if line == "..." else re.escape(line) + r"\n" for line in wanted.splitlines())
    return re.fullmatch("".join(lines), output if output.endswith("\n") else output + "\n", re.S) is not None


def has_gpu() -> bool:
    try:
        return driver().device_count() > 0
    except CakeError:
        return False


@dataclass
class Place:
    """A copy of the repository and the surroundings in which a newcomer's shell would run."""

    folder: Path
    env: dict[str, str]

    def bash(self, command: str, strict: bool = False) -> tuple[int, str]:
        arguments = ["bash", *(["-eu"] if strict else []), "-c", command]
        done = subprocess.run(
            arguments, cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
        )
        return done.returncode, done.stdout

    def python(self, command: str) -> str:
        code, output = self.bash(f". .venv/bin/activate && python - <<'END'\n{command}\nEND")
        assert code == 0, output
        return output


def arrive(base: Path) -> Place:
    """Dependencies are lent from where these tests run, so that no index is asked; this project itself is not."""
    folder, home, lent, programs = (base / n for n in ("cake", "home", "lent", "programs"))
    shutil.copytree(ROOT, folder, ignore=LEFT_OUT)
    for d in (home, lent, programs):
        d.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.lower().startswith(("cake", "_cake", "__editable", "__pycache__")) and entry.suffix != ".pth":
            (lent / entry.name).symlink_to(entry)
    python3 = programs / "python3"
    python3.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python3.chmod(0o755)
    env = {"HOME": str(home), "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(lent), "LC_ALL": "C.UTF-8"}
    env |= {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_CONFIG_FILE": os.devnull}
    return Place(folder, env)
