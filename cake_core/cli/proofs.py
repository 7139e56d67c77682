"""What is proved of kernels, and for which sizes: for a person and for a program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cake_core.pipeline import Build

#: How questions are settled: without a solver, by linear arithmetic, by a query.
HOW = ("closed", "linear", "solver")


def explanation_of(built: Build, registry, book, overrides: dict) -> dict:
    """Why what is proved is, as it stands in JSON documents."""
    from dataclasses import asdict

    from cake_core.explain import explain

    found = explain(built.derived, registry, built.arch, book, overrides if built.program.derived else {})
    return asdict(found)


def proof_object(built: Build, explained: dict | None = None) -> dict:
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
        "waived": list(m.waived),
        **({"explained": explained} if explained is not None else {}),
    }


def proof_lines(proofs: list[dict]) -> Iterator[str]:
    """The same in words, one kernel's targets of which the same is proved together."""
    alike: dict[str, list[dict]] = {}
    for p in proofs:
        alike.setdefault(repr({k: v for k, v in p.items() if k not in ("arch", "explained")}), []).append(p)
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
    for w in p["waived"]:
        yield f"  waived    {w['rule']}, {w['level']}: {w['reason']} ({w['owner']})"


def print_explanations(proofs: list[dict]) -> None:
    """A table a kernel and target: contracts that each proof needs, and what it took."""
    from cake_core.cli.output import table

    for p in proofs:
        if (e := p.get("explained")) is None:
            continue
        rows = []
        for c in e["categories"]:
            q = c["questions"]
            needs = ", ".join((*c["requires"], *(f"assume {a}" for a in c["assumes"]))) or None
            rows.append((c["category"], *(q.get(how, 0) for how in HOW), c["checks"], c["steps"], c["most"], round(c["seconds"], 2), needs))
        form = f"every proof is made with {', '.join(e['form'])}, without which the text is no kernel" if e["form"] else ""
        table(f"Proof of {p['kernel']} for {p['arch']}", ("category", *HOW, "checks", "steps", "most in one", "s", "needs"), rows, form)
