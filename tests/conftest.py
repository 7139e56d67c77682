"""What the tests of several rooms share: a registry, builds without an assembler, and golden findings.

A golden case is a folder `cases/<namespace>-<slug>/` of a room with pairs of files: `<case>.cake`, a text that is in error, and
`<case>.diag`, all that a user is told about it. `CAKE_UPDATE_GOLDEN=1 pytest` writes the `.diag` files anew; read the
difference before keeping it. Lines of the text that begin with `#!` are for the test alone:

    #! set BM = 1.5            as --set BM=1.5
    #! kernel two              as --kernel two
    #! arch sm90               as --arch sm90
    #! without function -      as if no plugin offered the function `-`
    #! lower                   findings of the lowering are wanted too
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from cake_core.check import check
from cake_core.cli.build import parse_setting
from cake_core.derive import derive
from cake_core.diagnostics import CakeError, Diagnostic
from cake_core.diagnostics.text import render
from cake_core.elaborate import elaborate
from cake_core.ir.nodes import Kernel, Program
from cake_core.ir.printer import program_text
from cake_core.lower import Lowered, lower
from cake_core.pipeline import choose_kernel, choose_target, for_target
from cake_core.plugins import Registry, load_registry
from cake_core.plugins.registry import KINDS
from cake_core.source import Source
from cake_core.syntax import parse

for _name, _room in (("formats", "diagnostics"), ("hostile", "rules")):
    if _name not in sys.modules:  # test folders are no packages
        _spec = importlib.util.spec_from_file_location(_name, Path(__file__).parent / _room / f"{_name}.py")
        sys.modules[_name] = importlib.util.module_from_spec(_spec)
        _spec.loader.exec_module(sys.modules[_name])

#: Threads of numpy's products cost more than they give to tiles; what loads numpy comes later.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
UPDATE = os.environ.get("CAKE_UPDATE_GOLDEN") == "1"


def pytest_configure(config) -> None:
    """Proofs that are made once in a run of the tests are known to all its processes, and to no other run."""
    if "CAKE_CACHE" not in os.environ and not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="cake-proofs-")
        os.environ["CAKE_CACHE"] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))



@pytest.fixture(scope="session")
def offered() -> Registry:
    """All that the built-in plugins offer."""
    return load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


@dataclass(frozen=True, slots=True)
class Compiled:
    """The stages of one kernel. `schedule` is None for a text in derived form."""

    arch: object
    schedule: Kernel | None
    derived: Kernel
    typed: Kernel
    findings: tuple[Diagnostic, ...]
    lowered: Lowered | None

    @property
    def text(self) -> str:
        """The derived form."""
        return program_text(Program(1, True, (self.derived,)))


@pytest.fixture(scope="session")
def compiled(offered) -> Callable[..., Compiled]:
    """`compiled(text)`: from text to PTX; raises CakeError. The keywords are those of the command line."""

    def run(text: str, *, name: str = "case.cake", sets=None, arch=None, kernel=None, registry=None, lowering=True) -> Compiled:
        registry = registry or offered
        program = parse(Source(name, text))
        chosen = choose_kernel(program, kernel)
        target = choose_target(chosen, registry, arch)
        chosen = for_target(chosen, target.name)
        schedule, derived = None, chosen
        if program.derived:
            typed = elaborate(chosen, registry, target, derived=True, overrides=sets)
        else:
            schedule = elaborate(chosen, registry, target, derived=False, overrides=sets)
            derived = derive(schedule, registry, target)
            typed = elaborate(derived, registry, target, derived=True)
        findings = tuple(check(typed, registry, target))
        if any(d.severity == "error" for d in findings):
            raise CakeError(*findings)
        return Compiled(target, schedule, derived, typed, findings, lower(typed, registry, target) if lowering else None)

    return run


@pytest.fixture(scope="session")
def told(compiled, offered) -> Callable[[str, str], tuple[tuple[Diagnostic, ...], str]]:
    """`told(text, name)`: the findings about a text, and the same as a user reads them."""

    def run(text: str, name: str = "case.cake"):
        asked = [line[2:].split() for line in text.splitlines() if line.startswith("#!")]
        registry = offered
        options: dict = {"lowering": ["lower"] in asked}
        for line in asked:
            match line:
                case ["set", *setting]:
                    options.setdefault("sets", {}).update([parse_setting("".join(setting))])
                case ["kernel" | "arch" as what, value]:
                    options[what] = value
                case ["without", kind, value]:
                    field = KINDS[kind][1]
                    registry = replace(registry, **{field: {k: v for k, v in getattr(registry, field).items() if k != value}})
                case ["lower"]:
                    pass
                case _:
                    raise ValueError(f"what is {line}?")
        try:
            found = compiled(text, name=name, registry=registry, **options).findings
        except CakeError as error:
            found = error.diagnostics
        return found, render(found, {name: Source(name, text)}, color=False)

    return run


@pytest.fixture(scope="session")
def golden(told) -> Callable[[Path], None]:
    """`golden(path)`: one case. Its folder names a code, which must be among the findings."""

    def run(path: Path) -> None:
        found, text = told(path.read_text(), path.name)
        namespace, _, slug = path.parent.name.partition("-")
        expected = path.with_suffix(".diag")
        if UPDATE:
            expected.write_text(text)
        assert f"{namespace}/{slug}" in {d.code for d in found}, text
        assert text == expected.read_text()
        assert all(d.span is not None and d.span.line > 0 for d in found), "a finding has no place"

    return run


@pytest.fixture(scope="session")
def golden_text() -> Callable[[Path, str], None]:
    """`golden_text(path, text)`: compares with a file, or writes it."""

    def run(path: Path, text: str) -> None:
        if UPDATE:
            path.write_text(text)
        assert text == path.read_text()

    return run
