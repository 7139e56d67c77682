"""Buffers that share bytes at different times (S14): `shared d: bf16[64, 64] alias a` lies in the bytes of `a`, from its start.
Of tensor memory it is the columns that they share.

All buffers in the bytes of one buffer, and that buffer itself, are *mates*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cake_core.ir.nodes import Block, Declaration, Declare, Name

#: The word of a declaration, in both forms.
WORD = "alias"


def shared_with(d: Declaration) -> str | None:
    """The buffer in whose bytes a declared buffer lies; None: in its own."""
    value = d.words.get(WORD)
    return value.id if isinstance(value, Name) else None


def mates(owners: Mapping[str, str | None]) -> dict[str, frozenset[str]]:
    """By buffer, those that it shares bytes with. `owners`: by buffer, the one in whose bytes it lies."""
    homes = {name: owner or name for name, owner in owners.items()}
    found = {name: frozenset(n for n, home in homes.items() if home == homes[name] and n != name) for name in owners}
    return {name: others for name, others in found.items() if others}


def declared_mates(body: Block) -> dict[str, frozenset[str]]:
    """The same of a kernel's body."""
    return mates({d.name: shared_with(d) for d in declarations(body)})


def declarations(body: Block) -> Iterable[Declaration]:
    return (d for s in body if isinstance(s, Declare) for d in s.declarations)
