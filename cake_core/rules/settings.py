"""`cake.toml`: what a project says of rules. Which suite is judged, which packs have to be there, what findings mean, and what is waived.

    [rules]
    suite = "strict"                                    # without it "default"
    packs = ["acme", {name = "core", version = ">=0.1"}]

    [rules.levels]                                      # a rule, or all rules of a namespace
    "acme/few-slots" = "error"
    performance = "off"

    [[rules.waivers]]                                   # a stable rule of safety or legality, below its level
    rule = "acme/one-wave"
    level = "warning"
    reason = "our machines are alone on the GPU"
    owner = "A. Person"

The file is the nearest one of the working directory and those above it, up to the folder of the repository. What is wrong with it is a finding of
`config/`: nothing in it is passed over, since a level that is not set and a pack that is not missed would be noticed by nobody.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from cake_core.diagnostics import Sink, fail
from cake_core.diagnostics.near import get_close_matches
from cake_core.frozen import frozen
from cake_core.rules.schema import Level, Need
from cake_core.rules.versions import wrong_bound
from cake_core.source import Span

FILE = "cake.toml"
MAX_BYTES = 64 * 1024
DEFAULT = "default"

TABLES = ("rules",)
RULES = ("suite", "packs", "levels", "waivers")
WAIVER = ("rule", "level", "reason", "owner")
PACK = ("name", "version")


@frozen
class Setting:
    """What findings of `name`, a rule or a namespace, mean."""

    name: str
    level: Level
    span: Span


@frozen
class Waiver:
    """A stable rule of safety or legality that this project has at `level`, below its own. `owner`: who answers for it."""

    rule: str
    level: Level
    reason: str
    owner: str
    span: Span

    def to_dict(self) -> dict[str, str]:
        """As it stands in manifests and JSON documents."""
        return {"rule": self.rule, "level": str(self.level), "reason": self.reason, "owner": self.owner}


@frozen
class Settings:
    """What `cake.toml` says; of a project without one: nothing. `packs`: with the place of each."""

    suite: str = DEFAULT
    packs: tuple[Need, ...] = ()
    levels: tuple[Setting, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    span: Span | None = None


def project(start: Path | None = None) -> Path:
    """The folder of the project: the nearest one with a `cake.toml`, from `start`, the working directory, upwards and not beyond the folder of the
    repository; without one, `start`."""
    try:
        start = start or Path.cwd()
    except OSError:  # the working directory is gone
        return Path()
    for folder in (start, *start.parents):
        if (folder / FILE).exists():
            return folder
        if (folder / ".git").exists():
            break
    return start


def settings(folder: Path | None = None) -> Settings:
    """What the project in `folder` says. Raises CakeError with all that is wrong with its file."""
    path = (folder or project()) / FILE
    return read_settings(path, os.path.relpath(path)) if path.exists() else Settings()


def read_settings(path: Path, shown: str) -> Settings:
    """What a file says that is there. `shown`: what findings call it. Raises CakeError."""
    return _Reader(shown, _text(path, shown)).settings()


def _text(path: Path, shown: str) -> str:
    start = Span(shown, 1, 1, 1, 2)
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            raise fail("config/toml", f"'{shown}' is no file of at most {MAX_BYTES} bytes", start)
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise fail("config/toml", f"'{shown}' can't be read: {error.strerror}", start) from None
    except UnicodeDecodeError:
        raise fail("config/toml", f"'{shown}' is not UTF-8", start, fix="save the file as UTF-8") from None


class _Reader:
    def __init__(self, shown: str, text: str):
        self.shown, self.lines, self.sink = shown, text.splitlines() or [""], Sink()
        self.data = self.parsed(text)

    def parsed(self, text: str) -> dict:
        import tomllib

        try:
            return tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # a number of thousands of digits is no TOMLDecodeError
            found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
            line, column = map(int, found.groups()) if found else (len(self.lines), 1)
            said = "it nests too deep" if isinstance(error, RecursionError) else str(error).partition(" (at ")[0]
            raise fail("config/toml", f"this is no TOML: {said[:1].lower()}{said[1:]}", Span(self.shown, line, column, line, column + 1)) from None

    def at(self, *words: str) -> Span:
        """The first line that has all the words; TOML's reader tells no places."""
        for n, line in enumerate(self.lines, 1):
            if all(re.search(rf"(?<![\w/-]){re.escape(w)}(?![\w/-])", line) for w in words):
                column = len(line) - len(line.lstrip()) + 1
                return Span(self.shown, n, column, n, max(len(line.rstrip()), column) + 1)
        return Span(self.shown, 1, 1, 1, 2)

    def settings(self) -> Settings:
        self.known(self.data, TABLES, "'cake.toml'")
        rules = self.data.get("rules", {})
        if not isinstance(rules, dict):
            raise fail("config/value", "'rules' is a table", self.at("rules"), fix="write [rules]")
        self.known(rules, RULES, "'[rules]'")
        suite, packs, levels, waivers = DEFAULT, (), (), ()
        with self.sink.collecting():
            suite = self.text(rules, "suite", DEFAULT)
        with self.sink.collecting():
            packs = tuple(map(self.need, self.items(rules, "packs")))
        with self.sink.collecting():
            levels = self.levels(rules.get("levels", {}))
        with self.sink.collecting():
            waivers = tuple(map(self.waiver, self.items(rules, "waivers")))
        for name in (w.rule for w in waivers):
            if sum(w.rule == name for w in waivers) > 1 or any(s.name == name for s in levels):
                self.sink.error("config/value", f"the level of '{name}' is said twice", self.at(name), fix="leave one out")
        self.sink.stop_if_errors()
        return Settings(suite, packs, levels, waivers, self.at("suite") if "suite" in rules else self.at("rules"))

    def known(self, table: dict, keys: tuple[str, ...], what: str) -> None:
        for key in table:
            if key not in keys:
                near = get_close_matches(key, keys, n=1)
                fix = f"did you mean '{near[0]}'?" if near else f"it may have {', '.join(keys)}"
                self.sink.error("config/key", f"{what} has no key '{key}'", self.at(key), fix=fix)

    def text(self, table: dict, key: str, default: str | None = None, at: Span | None = None) -> str:
        value = table.get(key, default)
        if value is None:
            raise fail("config/key", f"a waiver lacks the key '{key}'", at)
        if not isinstance(value, str) or not value.strip():
            raise fail("config/value", f"'{key}' is a text", at or self.at(key))
        return value.strip()

    def items(self, table: dict, key: str) -> list:
        found = table.get(key, [])
        if not isinstance(found, list):
            raise fail("config/value", f"'{key}' is a list", self.at(key), fix="write [[rules.waivers]]" if key == "waivers" else 'write ["core"]')
        return found

    def need(self, item: object) -> Need:
        if isinstance(item, str):
            return Need(item)
        if not isinstance(item, dict) or not isinstance(item.get("name"), str) or not isinstance(item.get("version", ""), str):
            raise fail("config/value", "'packs' is a list of names, or of {name, version}", self.at("packs"))
        self.known(item, PACK, "a pack")
        range = item.get("version", "")
        if range and (part := wrong_bound(range)) is not None:
            raise fail("config/value", f"'{part}' is no bound of a version", self.at(item["name"]), fix='write ">=0.1,<0.4"')
        return Need(item["name"], range)

    def level(self, value: object, at: Span) -> Level:
        if value not in list(Level):
            near = get_close_matches(str(value), list(Level), n=1)
            raise fail("config/value", f"a level is one of {', '.join(Level)}", at, fix=f"did you mean '{near[0]}'?" if near else None)
        return Level(value)

    def levels(self, table: object) -> tuple[Setting, ...]:
        if not isinstance(table, dict):
            raise fail("config/value", "'levels' is a table", self.at("levels"), fix="write [rules.levels]")
        out = []
        for name, value in table.items():
            with self.sink.collecting():
                out.append(Setting(name, self.level(value, self.at(name)), self.at(name)))
        return tuple(out)

    def waiver(self, item: object) -> Waiver:
        if not isinstance(item, dict):
            raise fail("config/value", "a waiver is a table", self.at("waivers"), fix="write [[rules.waivers]]")
        at = self.at("rule", str(item.get("rule", ""))) if "rule" in item else self.at("waivers")
        self.known(item, WAIVER, "a waiver")
        rule, reason, owner = (self.text(item, key, at=at) for key in ("rule", "reason", "owner"))
        return Waiver(rule, self.level(self.text(item, "level", at=at), at), reason, owner, at)
