"""The house's own test: who may import whom, which words the core must not know, and how large a file may grow."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "cake_core"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

#: Top floor first. A room imports rooms of lower floors only, and none of its own floor.
FLOORS = (
    ("cli",),
    ("pipeline",),
    ("explain", "mutate", "reduce", "reread", "review", "show", "simulate"),
    ("lower", "check", "derive", "prove"),
    ("machine", "rules"),
    ("facts",),
    ("elaborate", "syntax"),
    ("plugins",),
    ("primitive",),
    ("architecture", "effects"),
    ("ir", "ptx"),
    ("diagnostics", "artifact", "trace"),
    ("source",),
    ("frozen", "sha256", "smt"),
)
FLOOR = {room: len(FLOORS) - number for number, rooms in enumerate(FLOORS) for room in rooms}

#: Rooms that need the artifact alone and are imported by the face and the pipeline only.
APART = {"assemble": {"artifact", "diagnostics", "source", "frozen"}, "runtime": {"artifact", "diagnostics", "source", "frozen"}, "emulate": {"ptx", "frozen"}}

#: What a plugin may import of the core. `cake_core` itself offers `hookimpl`, `types`, `API_VERSION`.
PUBLIC = ("primitive", "effects", "ir", "ptx", "diagnostics", "architecture", "plugins.api", "source", "frozen")

LINES = 450

#: Instructions and architectures, as words or as parts of names. `tensormap` is PTX's word, `TensorMap` the driver's.
FORBIDDEN = re.compile(
    r"(?i:wgmma|tcgen05|cp[._]async|ldmatrix|stmatrix|setmaxnreg)"
    r"|tensormap"
    r"|(?<![A-Za-z])(?i:mma|tma)(?![A-Za-z])"  # x.mma, tma_store, TMA
    r"|(?:Mma|Tma)(?![a-z])"  # TmaLoad, but not Comma
    r"|(?<![A-Za-z])(?i:sm_?\d{2,3})"
)


def sources(folder: Path, pattern: str = "*.py") -> list[Path]:
    return sorted(p for p in folder.rglob(pattern) if "__pycache__" not in p.parts)


def tops(folder: str) -> list[Path]:
    return sorted(p for p in (ROOT / folder).iterdir() if p.is_dir() and not p.name.startswith((".", "_"))) if (ROOT / folder).is_dir() else []


CORE_FILES = sources(CORE)
PLUGIN_FILES = [p for folder in ("arch", "plugins") for top in tops(folder) for p in sources(top)]


def package(path: Path) -> list[str]:
    """The dotted package that relative imports of a file start from."""
    base = ROOT if CORE in path.parents else path.parents[len(path.relative_to(ROOT).parts) - 3]
    return list(path.relative_to(base).parts[:-1])


def imports(path: Path) -> list[tuple[str, int]]:
    """(dotted name, line) of every import of a file, those inside functions and for type checkers too."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                found += [(a.name, node.lineno) for a in node.names]
            case ast.ImportFrom():
                here = package(path)
                base = ".".join([*here[: len(here) - node.level + 1], *([node.module] if node.module else [])]) if node.level else node.module
                found += [(f"{base}.{a.name}", node.lineno) for a in node.names]
    return found


def room(dotted: str) -> str | None:
    """The room of `cake_core` that an import names; None for the package itself."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "cake_core" and (parts[1] in FLOOR or parts[1] in APART) else None


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


# --- imports


def test_every_room_has_a_floor():
    rooms = {p.stem for p in CORE.iterdir() if p.name not in ("__init__.py", "__main__.py", "__pycache__") and (p.suffix == ".py" or (p / "__init__.py").exists())}
    assert rooms <= set(FLOOR) | set(APART)


@pytest.mark.parametrize("path", CORE_FILES, ids=relative)
def test_imports_point_down(path):
    own = path.relative_to(CORE).parts[0].removesuffix(".py")
    if own in ("__init__", "__main__"):  # the package's lazy surface and the face's other door
        return
    wrong = []
    for name, line in imports(path):
        other = room(name)
        if other is None or other == own:
            continue
        if own in APART:
            allowed = other in APART[own]
        elif other in APART:
            allowed = own in ("cli", "pipeline")
        else:
            allowed = FLOOR[other] < FLOOR[own]
        if not allowed:
            wrong.append(f"{relative(path)}:{line}: '{own}' imports '{name}'")
    assert wrong == []


def test_the_lazy_surface_imports_no_room():
    assert [n for n, _ in imports(CORE / "__init__.py") if room(n)] == []


@pytest.mark.parametrize("path", CORE_FILES, ids=relative)
def test_the_core_imports_no_plugin(path):
    assert [n for n, _ in imports(path) if n.startswith("cake_") and n.partition(".")[0] != "cake_core"] == []


@pytest.mark.parametrize("path", [p for p in PLUGIN_FILES if "tests" not in p.parts], ids=relative)
def test_plugins_import_the_public_surface_only(path):
    own = path.relative_to(ROOT).parts[2]
    wrong = []
    for name, line in imports(path):
        top, _, rest = name.partition(".")
        if top == "cake_core" and rest not in ("hookimpl", "types", "API_VERSION") and not any(rest == p or rest.startswith(f"{p}.") for p in PUBLIC):
            wrong.append(f"{relative(path)}:{line}: {name}")
        if top.startswith("cake_") and top not in ("cake_core", own):
            wrong.append(f"{relative(path)}:{line}: another plugin, {name}")
    assert wrong == []


#: What modules that execute PTX without a GPU, and those of their package that they use, may import of the core: nothing of lowering.
EXECUTES = ("frozen", "ptx.emulated", "ptx.reader", "ptx.numbers", "ptx.tiles", "ptx.forms", "ptx.groups", "ptx.orders", "ptx.places", "ptx.reductions")


def executing(top: Path) -> dict[str, Path]:
    """Modules of a plugin that execute instructions, and those of its package that these import, by dotted name."""
    modules = {}
    for p in sources(top):
        parts = p.relative_to(top).with_suffix("").parts
        if parts[0] != "tests":
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = p
    found = {name: p for name, p in modules.items() if {"emulate", "emulated"} & set(name.split("."))}
    todo = list(found.values())
    while todo:
        for name, _ in imports(todo.pop()):
            used = next((n for n in (name, name.rpartition(".")[0]) if n in modules), None)
            if used is not None and used not in found and "." in used:
                found[used] = modules[used]
                todo.append(modules[used])
    return found


@pytest.mark.parametrize("top", [t for t in tops("plugins") if executing(t)], ids=relative)
def test_what_executes_ptx_shares_nothing_with_lowering(top):
    wrong = []
    for path in executing(top).values():
        for name, line in imports(path):
            first, _, rest = name.partition(".")
            if first == "cake_core" and not any(rest == e or rest.startswith(f"{e}.") for e in EXECUTES):
                wrong.append(f"{relative(path)}:{line}: {name}")
            if first == "numpy" and path.stem == "emulated":
                wrong.append(f"{relative(path)}:{line}: {name}, in the table that every command imports")
    assert wrong == []


def test_a_module_that_lowers_would_be_found_among_those_that_execute():
    assert {"cake_wgmma.emulate", "cake_wgmma.forms", "cake_wgmma.emulated"} == set(executing(ROOT / "plugins/wgmma"))


# --- words and sizes


@pytest.mark.parametrize("path", [*CORE_FILES, *sources(CORE, "*.lark")], ids=relative)
def test_the_core_knows_no_instruction_and_no_architecture(path):
    found = [f"{relative(path)}:{n}: {line.strip()}" for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if FORBIDDEN.search(line)]
    assert found == []


@pytest.mark.parametrize("text", ["wgmma.fence", "tcgen05_alloc", "cp.async.bulk", "cp_async", "LdMatrix", "x.mma", "mma_sync", "TmaLoad", "tma_store", "sm90", "sm_100a", "SM80", "prefetch.tensormap"])
def test_the_words_are_found(text):
    assert FORBIDDEN.search(text)


@pytest.mark.parametrize("text", ["comma", "COMMAND", "BITMASK", "summary", "gamma", "Tmax", "TensorMapInfo", "tensor_maps", "cuTensorMapEncodeTiled", "isms", "ultimate"])
def test_other_words_are_left_alone(text):
    assert not FORBIDDEN.search(text)


@pytest.mark.parametrize("path", CORE_FILES, ids=relative)
def test_files_stay_small(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LINES


# --- folders


PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
ENTRY_POINTS = PROJECT["project"]["entry-points"]


@pytest.mark.parametrize("top", [*tops("arch"), *tops("plugins")], ids=relative)
def test_a_folder_of_a_plugin_has_the_shape_of_a_strangers(top):
    inner = [p for p in top.iterdir() if p.name.startswith("cake_")]
    assert [p.name for p in inner] == [f"cake_{top.name}"]
    assert (top / "README.md").is_file()
    assert sources(top / "tests", "test_*.py")
    assert relative(inner[0]) in PACKAGES
    assert ENTRY_POINTS["cake"].get(top.name) == f"cake_{top.name}.plugin"


def test_lists_and_folders_agree():
    folders = {relative(top / f"cake_{top.name}") for folder in ("arch", "plugins") for top in tops(folder)}
    rules = {relative(top / f"cake_rules_{top.name}") for top in tops("rules")}
    assert set(PACKAGES) == {"cake_core"} | folders | rules
    assert set(ENTRY_POINTS["cake"]) == {Path(p).parent.name for p in folders}


@pytest.mark.parametrize("folder", ["arch", "plugins", "rules", "tests", "kernels", "bench"])
def test_generic_folders_are_no_packages(folder):
    """An `__init__.py` there would shadow other projects' packages of that name when run from the repository's root."""
    assert list((ROOT / folder).glob("__init__.py")) == []
    assert list((ROOT / folder).glob("*/__init__.py")) == []


def test_nothing_sits_at_the_top_that_an_install_would_not_carry():
    modules = {p.name for p in ROOT.glob("*.py")} - {"conftest.py"}
    assert modules == set()
