"""Scopes of operations between threads, and whether two of them hold each other's threads (PTX ISA, Memory Consistency Model: Scope, Morally Strong Operations)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cake_core.ptx.emulated import Cta

#: How far an operation of a scope reaches; "": a weak one, which reaches nobody. All runs on one device here, so that `sys` is as far as `gpu`.
REACH = {"": 0, "cta": 1, "cluster": 2, "gpu": 3, "sys": 3}


def between(one: Cta, other: Cta) -> int:
    """How far operations of threads of the two have to reach to hold each other."""
    if one is other:
        return REACH["cta"]
    return REACH["cluster"] if one.cluster is other.cluster else REACH["gpu"]


def held(one: Cta, scope: str, other: Cta, other_scope: str) -> bool:
    """Whether an operation of `scope` by threads of the one CTA and one of `other_scope` by threads of the other hold each other's threads."""
    return min(REACH[scope], REACH[other_scope]) >= between(one, other)
