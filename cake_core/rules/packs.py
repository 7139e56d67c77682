"""Where rule packs come from: entry points of installed distributions, a folder of the project, folders named on the command line.

A pack is data: its package is found and never imported, so none of its code runs. A checkout that was never installed has its own
packs by the `pyproject.toml` beside the package. A pack that can't be read is an error, since a pack left out would be a
proof that was not made; the error names the distribution that brings the pack.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from cake_core.diagnostics import CakeError, Sink, fail
from cake_core.frozen import frozen
from cake_core.plugins.installed import distributions
from cake_core.rules.schema import Pack, Rule
from cake_core.rules.settings import project
from cake_core.rules.stored import stored
from cake_core.rules.versions import admits

GROUP = "cake.rule_packs"
DISTRIBUTION = "cake-compiler"
#: Packs of a project: each may be as large as a pack may be.
MAX_LOCAL = 32
#: Packs of a project, beside its `cake.toml`: folders.
LOCAL = Path(".cake") / "rules"


@frozen
class Offer:
    """A pack that is there: the name of its entry point, its package, who declares it."""

    name: str
    package: str
    distribution: str
    checkout: Path | None = None

    @property
    def ours(self) -> bool:
        """Whether it came with this Cake."""
        return self.distribution.partition(" ")[0] == DISTRIBUTION

    @property
    def folder(self) -> Path | None:
        """Where its files lie; None if nobody knows. Nothing is imported: of a package inside of another one the outer one would be."""
        if self.checkout is not None:
            return self.checkout
        if not self.package.isidentifier():
            return None
        try:
            spec = find_spec(self.package)
        except (ImportError, ValueError):
            return None
        places = spec.submodule_search_locations if spec else None
        return next((Path(p) for p in places or () if Path(p, "pack.yaml").is_file()), None)


def offers() -> tuple[Offer, ...]:
    """The packs of the installed distributions, and of the checkout where ours is not installed."""
    found = [Offer(point.name, point.value, f"{dist.name} {dist.version}") for dist in distributions(GROUP).values() for point in dist.points]
    if not any(o.ours for o in found):
        found += _checkout()
    return tuple(sorted(found, key=lambda o: (o.name, o.distribution)))


@cache
def _checkout() -> tuple[Offer, ...]:
    """Our own packs as the `pyproject.toml` beside the package declares them; none where there is no such file."""
    import tomllib

    root = Path(__file__).resolve().parents[2]
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        table = project["entry-points"][GROUP] if project["name"] == DISTRIBUTION else {}
    except (OSError, ValueError, KeyError):
        return ()
    return tuple(Offer(n, p, f"{DISTRIBUTION} of this checkout", root / "rules" / n / p) for n, p in table.items())


def checkout() -> Path | None:
    """The root of the repository of Cake that this package lies in; None: it is installed as a copy."""
    return Path(__file__).resolve().parents[2] if _checkout() else None


def _stale(there: tuple[Offer, ...], sink: Sink) -> None:
    """Files of an editable install are live, entry points are copied when it is made: a pack that came later would be left out without a word."""
    names = {o.name for o in there if o.ours}
    for offer in _checkout():
        if offer.name not in names:
            sink.error(
                "rules/pack",
                f"the pack '{offer.name}' of '{DISTRIBUTION}' is not installed, and its 'pyproject.toml' declares it",
                fix="reinstall: pip install -e .",
            )


def find_packs(folders: tuple[Path, ...] = (), local: Path | None = LOCAL, needed: Collection[str] | None = None) -> tuple[Pack, ...]:
    """Every pack, sorted by name; `folders` are added, and those in `local`, a folder of the project. A folder is read once, however often and
    by whatever path it is named. Raises CakeError with all that is wrong with any of them. `needed`: names of packs, where who asks judges no
    kernel and looks at these alone: another installed pack that can't be read is left out."""
    sink = Sink()
    found: list[Pack] = []
    there = offers()
    _stale(there, sink)
    broken: set[str] = set()
    for offer in there:
        if needed is not None and offer.name not in needed:
            try:
                found.append(_offered(offer))
            except CakeError:
                broken.add(offer.name)
            continue
        with sink.collecting():
            found.append(_offered(offer))
    mine: list[Path] = []
    with sink.collecting():
        mine = _local(local)
    seen = {place.resolve() for offer in there if (place := offer.folder) is not None}
    for folder in (*folders, *mine):
        if (place := Path(folder).resolve()) in seen:
            continue
        seen.add(place)
        with sink.collecting():
            found.append(_loaded(Path(folder), str(folder), "", False, _stamp(Path(folder))))
    _unique(found, sink)
    if not sink.errors:  # a pack that can't be read is there, and need not be installed
        _complete(found, broken, sink)
    sink.stop_if_errors()
    return tuple(sorted(found, key=lambda p: p.name))


def home(namespace: str, local: Path | None = LOCAL) -> tuple[Path, str, bool] | None:
    """The folder of the pack that brings this namespace, what calls it that to a reader, and whether it can be added to: a checkout and a folder
    of the project can, what is installed as a copy can't. None: no pack does."""
    from cake_core.rules.strict import Scalar, read

    there = [(folder, f"the pack '{o.name}' of {o.distribution}") for o in offers() if (folder := o.folder) is not None]
    for folder, said in (*there, *((p, f"the pack in '{p}'") for p in _local(local))):
        try:
            own = read(folder / "pack.yaml").get("namespace")
        except CakeError:  # told where the packs are what is asked for
            continue
        if isinstance(own, Scalar) and own.value == namespace:
            return folder, said, not {"site-packages", "dist-packages"} & set(folder.resolve().parts)
    return None


def built_in(folder: Path) -> bool:
    """Whether a pack's folder is that of one that this checkout of Cake declares."""
    return any(o.checkout.resolve() == folder.resolve() for o in _checkout())


def _offered(offer: Offer) -> Pack:
    """The pack of an entry point. Raises CakeError, each message with the distribution that has to be mended."""
    folder = offer.folder
    if folder is None:
        plain = offer.package.isidentifier()
        raise fail(
            "rules/pack",
            f"the pack '{offer.name}' of {offer.distribution} is not there: "
            + (f"package '{offer.package}' has no 'pack.yaml'" if plain else f"'{offer.package}' is no package at the top"),
            fix="reinstall it" if plain else 'an entry point of a pack is NAME = "PACKAGE"',
        )
    try:
        pack = _loaded(folder, offer.package, offer.distribution, offer.ours, _stamp(folder))
    except CakeError as error:
        raise CakeError(*(replace(d, message=f"{d.message} (in a pack of {offer.distribution})") for d in error.diagnostics)) from None
    if pack.name != offer.name:
        raise fail(
            "rules/pack", f"{offer.distribution} offers a pack '{offer.name}', and what is there is called '{pack.name}'", fix="give both one name"
        )
    return pack


def _local(folder: Path | None) -> list[Path]:
    """Every folder in it: one that is no pack is told, not passed over."""
    if folder is None:
        return []
    if not folder.is_absolute() and (root := project()) != Path():
        folder = Path(os.path.relpath(root)) / folder
    if not folder.is_dir():
        return []
    found = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    if len(found) > MAX_LOCAL:
        raise fail("rules/pack", f"'{folder}' has {len(found)} packs, {MAX_LOCAL} are read", fix="make one pack of several")
    return found


def _stamp(folder: Path) -> tuple:
    """What changes when a file of the pack does: a pack is read once a process."""
    if not folder.is_dir():
        return ()
    files = (folder / "pack.yaml", *folder.glob("rules/*/rule.yaml"))
    return tuple(sorted((str(p), s.st_mtime_ns, s.st_size) for p in files if p.is_file() for s in (p.stat(),)))


@lru_cache(maxsize=64)
def _loaded(folder: Path, shown: str, distribution: str, ours: bool, stamp: tuple) -> Pack:
    if ours and (known := stored(folder, shown, distribution)) is not None:
        return known
    from cake_core.rules.packfile import load_pack

    return load_pack(folder, shown, distribution)


def _unique(packs: list[Pack], sink: Sink) -> None:
    for what in ("name", "namespace"):
        seen: dict[str, Pack] = {}
        for p in packs:
            if (other := seen.setdefault(getattr(p, what), p)) is not p:
                sink.error(
                    "rules/repeated",
                    f"two packs have the {what} '{getattr(p, what)}': of {other.source} and of {p.source}",
                    why="a rule is found by its id, which has the namespace of its pack",
                    fix="take one of them away",
                )
    there = {r.id: p for p in packs for r in p.rules}
    taken: dict[str, Rule] = {}
    for own, rule, old in ((p, r, id) for p in packs for r in p.rules for type, id in r.related if type == "renamed"):
        said = f"'{rule.id}' of {own.source} is to be '{old}' renamed, which "
        why = "who named the old rule would get another one"
        if old in there:
            sink.error("rules/repeated", f"{said}{there[old].source} has", rule.span, why=why, fix="take the old rule away, or leave 'renamed' out")
        elif (other := taken.setdefault(old, rule)) is not rule:
            sink.error("rules/repeated", f"{said}'{other.id}' is to be as well", rule.span, why=why, fix="leave one 'renamed' out")


def _complete(packs: list[Pack], broken: Collection[str], sink: Sink) -> None:
    there = {p.name: p for p in packs}
    for p in packs:
        for need in (n for n in p.needs if n.name not in broken):
            asks = f"the pack '{p.name}' of {p.source} asks for the pack '{need.name}'"
            other = there.get(need.name)
            if other is None:
                sink.error("rules/pack", f"{asks}, which is not there", fix="install it, or name its folder with --pack")
            elif need.range and not admits(need.range, other.version):
                what = f"{asks} {need.range}, there is {other.version} of {other.source}"
                sink.error("rules/pack", what, fix="install versions of the two that fit")
