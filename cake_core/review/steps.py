"""Steps of a pack's version: which one a change asks for.

For a verifier the dangerous direction is loosening: it is a major step, as removing and renaming are. New rules and tighter ones are minor, words are a
patch. Below 1.0 a major step is a minor one; the soundness note is asked for all the same.
"""

from __future__ import annotations

from enum import IntEnum

from cake_core.rules.versions import numbers


class Step(IntEnum):
    NONE = 0
    PATCH = 1
    MINOR = 2
    MAJOR = 3

    def __str__(self) -> str:
        return self.name.lower()


def step(old: str, new: str) -> Step | None:
    """The step from one version to another; None where it leads back."""
    a, b = numbers(old), numbers(new)
    if b < a:
        return None
    if a == b:
        return Step.NONE
    return Step.MAJOR if a[0] != b[0] else Step.MINOR if a[1] != b[1] else Step.PATCH


def asked(old: str, change: Step) -> Step:
    """The step that a change asks of a pack of this version."""
    return min(change, Step.MINOR) if numbers(old)[0] == 0 else change


def next_version(old: str, change: Step) -> str:
    """The least version that is enough."""
    a, b, c = numbers(old)
    return {Step.NONE: f"{a}.{b}.{c}", Step.PATCH: f"{a}.{b}.{c + 1}", Step.MINOR: f"{a}.{b + 1}.0", Step.MAJOR: f"{a + 1}.0.0"}[asked(old, change)]
