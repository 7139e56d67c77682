"""Thread groups by the words that a role's header can have: `1 warp`, `8 warps`, and what plugins offer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cake_core.ir.nodes import Kernel
from cake_core.primitive.kinds import ThreadGroup

WARP = ThreadGroup(name="warp", warps=1)


class Groups(Mapping[str, ThreadGroup]):
    """Singular and plural of each group's name to the group. One of a plugin is looked up when it is asked for."""

    __slots__ = ("_offered",)

    def __init__(self, offered: Mapping[str, ThreadGroup]):
        self._offered = offered

    def __getitem__(self, word: str) -> ThreadGroup:
        for name in (word, word.removesuffix("s")):
            if (found := self._offered.get(name)) is not None:
                return found
            if name == WARP.name:
                return WARP
        raise KeyError(word)

    def __iter__(self) -> Iterator[str]:
        names = [WARP.name, *(n for n in self._offered if n != WARP.name)]
        yield from dict.fromkeys([*names, *(f"{n}s" for n in names)])

    def __len__(self) -> int:
        return len(tuple(iter(self)))


def warps_of(kernel: Kernel, registry) -> dict[str, int]:
    """Warps of each group that the kernel's roles count in, by the word on their headers; a word that is none is left out."""
    groups = Groups(registry.groups)
    return {r.group: groups[r.group].warps for r in kernel.roles if r.group in groups}
