"""What is proved of kernels, and for which sizes: for a person and for a program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cake_core.pipeline import Build


def proof_object(built: Build) -> dict:
    """One kernel for one target, as it stands in JSON documents: what is proved wherever `requires` hold, `assumes` taken for granted."""
    m = built.manifest
    return {
        "kernel": m.kernel,
        "arch": m.arch,
        "requires": [c.text for c in m.requires],
        "assumes": [c.text for c in m.assumes],
        "proved": list(built.account.proved),
        "unproved": list(m.unproved),
        "allowed_unproved": list(m.allowed_unproved),
    }


def proof_lines(proofs: list[dict]) -> Iterator[str]:
    """The same in words, one kernel's targets of which the same is proved together."""
    alike: dict[str, list[dict]] = {}
    for p in proofs:
        alike.setdefault(repr({k: v for k, v in p.items() if k != "arch"}), []).append(p)
    for same in alike.values():
        yield f"{same[0]['kernel']} for {', '.join(p['arch'] for p in same)}"
        yield from _block(same[0])


def _block(p: dict) -> Iterator[str]:
    yield f"  sizes     all with {', '.join(p['requires'])}" if p["requires"] else "  sizes     all"
    if p["assumes"]:
        yield f"  given     {', '.join(p['assumes'])}"
    if p["proved"]:
        yield f"  proved    {', '.join(p['proved'])}"
    if p["unproved"]:
        yield f"  unproved  {', '.join(c + ' (allowed)' * (c in p['allowed_unproved']) for c in p['unproved'])}"
