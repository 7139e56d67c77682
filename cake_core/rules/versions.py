"""Versions of packs and of the engine, and ranges of them such as `>=0.1,<0.4`.

A pack's version is SemVer's `MAJOR.MINOR.PATCH`; `since` and `until` may leave the patch out. Pre-releases are no versions of a pack: what is
proved by a rule must not depend on which of two files of one version was read.
"""

from __future__ import annotations

import re

FULL = re.compile(r"\d+\.\d+\.\d+")
VERSION = re.compile(r"\d+\.\d+(\.\d+)?")
BOUND = re.compile(r"(>=|<=|==|<|>)\s*(\d+(?:\.\d+){0,2})")

Version = tuple[int, int, int]


def numbers(text: str) -> Version:
    """The three numbers of a version, those left out taken as 0; of `0.2.0.dev1` those in front."""
    found = [int(n) for n in re.findall(r"\d+", text)[:3]]
    return (*found, 0, 0, 0)[:3]


def wrong_bound(text: str) -> str | None:
    """The first part of a range that is none."""
    return next((p.strip() for p in text.split(",") if not BOUND.fullmatch(p.strip())), None)


def admits(text: str, version: str) -> bool:
    """Whether all bounds of a range hold of a version. `==0.1` admits every 0.1.n."""
    own = numbers(version)
    return all(_holds(*BOUND.fullmatch(p.strip()).groups(), own) for p in text.split(","))


def _holds(sign: str, bound: str, own: Version) -> bool:
    if sign == "==":
        parts = tuple(map(int, bound.split(".")))
        return own[: len(parts)] == parts
    limit = numbers(bound)
    return {">=": own >= limit, "<=": own <= limit, "<": own < limit, ">": own > limit}[sign]
