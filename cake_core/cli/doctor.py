"""`cake doctor`: what a report of a fault needs, and what a newcomer misses."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import metadata

import click

from cake_core import __version__
from cake_core.cli import exits
from cake_core.cli.host import registry
from cake_core.cli.output import table
from cake_core.diagnostics.model import CakeError
from cake_core.frozen import frozen

EPILOG = """\b
Examples:
  cake doctor
  cake doctor --json

Exit code 3 where a build would not work; a missing assembler or GPU is shown and no failure.
"""

PACKAGES = ("lark", "pluggy", "click", "rich", "numpy", "PyYAML", "z3-solver", "ml_dtypes", "cuda-python", "nvidia-cuda-nvcc")
NEEDED = {"lark", "pluggy", "click", "rich", "numpy", "PyYAML", "z3-solver"}


@frozen
class Line:
    """One thing that was looked at. `state`: ok, missing, broken."""

    topic: str
    name: str
    state: str
    detail: str
    needed: bool = False


@click.command("doctor", epilog=EPILOG)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(as_json: bool) -> int:
    """Show versions, plugins, rule packs, the assembler, the driver and its GPUs."""
    lines = [line for look in LOOKS for line in look()]
    if as_json:
        from cake_core.diagnostics.json import dumps

        click.echo(dumps({"schema_version": 1, "checks": [asdict(x) for x in lines]}), nl=False)
    else:
        table("Installation", ("topic", "name", "state", "detail"), [(x.topic, x.name, x.state, x.detail) for x in lines])
    return exits.ENGINE if any(x.needed and x.state != "ok" for x in lines) else exits.CLEAN


def versions() -> Iterator[Line]:
    yield Line("python", platform.python_implementation(), "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}", True)
    yield Line("package", "cake-compiler", "ok", __version__, True)
    for name in PACKAGES:
        try:
            yield Line("package", name, "ok", metadata.version(name), name in NEEDED)
        except metadata.PackageNotFoundError:
            yield Line("package", name, "missing", f"pip install {name}", name in NEEDED)


def plugins() -> Iterator[Line]:
    from cake_core.plugins import Status
    from cake_core.plugins.entries import stale_install

    for r in registry().whole().plugins:
        good = r.status in (Status.ACTIVE, Status.BLOCKED)
        detail = f"{r.distribution} {r.version}" + (f": {r.cause}" if r.cause else "")
        yield Line("plugin", r.name, "ok" if good else "broken", detail, not good)
    if stale := stale_install():
        yield Line("plugin", "installation", "broken", f"{stale.why}; {stale.fix}", True)


def rules() -> Iterator[Line]:
    from cake_core.rules import find_packs

    try:
        for p in find_packs():
            yield Line("rules", p.name, "ok", f"{p.version} of {p.source}, {len(p.rules)} rule{'s' if len(p.rules) != 1 else ''}", True)
    except CakeError as error:
        for d in error.diagnostics:
            yield Line("rules", "packs", "broken", d.message, True)


def assembler() -> Iterator[Line]:
    from cake_core.assemble import find_assembler

    try:
        found = find_assembler()
    except CakeError as error:
        d = error.diagnostics[0]
        yield Line("assembler", "ptxas", "missing", d.fix or d.message)
    else:
        yield Line("assembler", "ptxas", "ok", f"{found.version} ({found.found})")


def gpus() -> Iterator[Line]:
    from cake_core.runtime.driver import driver

    try:
        d = driver()
        version = d.call("cuDriverGetVersion")
        yield Line("gpu", "driver", "ok", f"CUDA {version // 1000}.{version % 1000 // 10}")
        for i in range(d.device_count()):
            major, minor = d.compute_capability(i)
            yield Line(
                "gpu",
                str(i),
                "ok",
                f"{d.device_name(i)}, compute capability {major}.{minor}, {d.attribute(i, 'MULTIPROCESSOR_COUNT')} multiprocessors",
            )
    except CakeError as error:
        found = error.diagnostics[0]
        yield Line("gpu", "driver", "missing", f"{found.message}{': ' + found.why if found.why else ''}")


LOOKS: tuple[Callable[[], Iterator[Line]], ...] = (versions, plugins, rules, assembler, gpus)
