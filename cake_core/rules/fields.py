"""Reading the keys of a strict mapping: required, optional, of a kind. Findings are collected, so that one run tells all."""

from __future__ import annotations

from enum import StrEnum

from cake_core.diagnostics import Sink, fail
from cake_core.diagnostics.near import get_close_matches
from cake_core.rules.strict import Mapping, Node, Scalar, Sequence

#: Keys of one mapping that are told as unknown: more are more of the same.
MOST = 20


class Fields:
    """The keys of one mapping. `what`: how findings call it."""

    def __init__(self, node: Node, what: str, keys: tuple[str, ...], sink: Sink):
        if not isinstance(node, Mapping):
            raise fail("rules/value", f"{what} is a mapping of keys to values", node.span)
        self.node, self.what, self.sink = node, what, sink
        unknown = [key for key, _ in node.entries if key.value not in keys]
        if len(unknown) > MOST:
            sink.error("rules/key", f"{what} has {len(unknown)} keys that it may not have", node.span, fix=f"it may have {', '.join(keys)}")
        else:
            for key in unknown:
                near = get_close_matches(str(key.value), keys, n=1)
                fix = f"did you mean '{near[0]}'?" if near else f"it may have {', '.join(keys)}"
                sink.error("rules/key", f"{what} has no key '{key.value}'", key.span, fix=fix)

    def node_of(self, key: str, required: bool = False) -> Node | None:
        found = self.node.get(key)
        if found is None and required:
            raise fail("rules/key", f"{self.what} lacks the key '{key}'", self.node.span.to(self.node.span))
        return found

    def text(self, key: str, default: str | None = None) -> str:
        """A text; required without a default, and then not empty."""
        found = self.node_of(key, required=default is None)
        if found is None:
            return default
        if not isinstance(found, Scalar) or not isinstance(found.value, str):
            raise fail("rules/value", f"'{key}' is a text", found.span, fix="write it in quotes" if isinstance(found, Scalar) else None)
        if default is None and not found.value.strip():
            raise fail("rules/value", f"'{key}' is empty", found.span)
        return found.value.strip()

    def integer(self, key: str, default: int, least: int = 1, most: int | None = None) -> int:
        found = self.node_of(key)
        if found is None:
            return default
        if not isinstance(found, Scalar) or isinstance(found.value, bool) or not isinstance(found.value, int) or found.value < least:
            raise fail("rules/value", f"'{key}' is an integer of at least {least}", found.span)
        if most is not None and found.value > most:
            raise fail("rules/value", f"'{key}' is an integer of at most {most}", found.span)
        return found.value

    def one_of(self, key: str, words: type[StrEnum], default: StrEnum | None = None):
        found = self.node_of(key, required=default is None)
        if found is None:
            return default
        value = found.value if isinstance(found, Scalar) else None
        if value not in list(words):
            near = get_close_matches(str(value), list(words), n=1)
            raise fail("rules/value", f"'{key}' is one of {', '.join(words)}", found.span, fix=f"did you mean '{near[0]}'?" if near else None)
        return words(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, empty where there is none."""
        found = self.node_of(key)
        if found is None:
            return ()
        if not isinstance(found, Sequence) or not all(isinstance(i, Scalar) and isinstance(i.value, str) for i in found.items):
            raise fail("rules/value", f"'{key}' is a list of texts", found.span)
        return tuple(i.value for i in found.items)

    def scalar(self, key: str) -> Scalar | None:
        """A text that something is parsed from, with its place."""
        found = self.node_of(key)
        if found is not None and not (isinstance(found, Scalar) and (isinstance(found.value, str) or found.style == "")):
            raise fail("rules/value", f"'{key}' is an expression, written as a text", found.span)
        if found is not None and not str(found.value).strip():
            raise fail("rules/value", f"'{key}' is empty", found.span)
        return found

    def mappings(self, key: str) -> tuple[Mapping, ...]:
        found = self.node_of(key)
        if found is None:
            return ()
        if not isinstance(found, Sequence) or not all(isinstance(i, Mapping) for i in found.items):
            raise fail("rules/value", f"'{key}' is a list of mappings", found.span)
        return found.items

    def entries(self, key: str) -> tuple[tuple[Scalar, Node], ...]:
        """The entries of a mapping, none where there is none."""
        found = self.node_of(key)
        if found is None:
            return ()
        if not isinstance(found, Mapping):
            raise fail("rules/value", f"'{key}' is a mapping of keys to values", found.span)
        return found.entries
