"""Fences (PTX ISA, membar, fence; Memory Consistency Model, Proxies).

`fence.proxy.async` and its kin order between what threads and what engines access; fences of scopes order through locations in memory
(`cake_core.ptx.orders`). There are no aliased addresses here, so that `fence.proxy.alias` orders nothing. `fence.mbarrier_init` releases
initialisations of barrier objects alone: behind a relaxed arrival they are seen as with any arrival that releases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cake_core.ptx import orders

if TYPE_CHECKING:
    from cake_core.ptx.emulated import Coder, Step
    from cake_core.ptx.reader import Statement

_SCOPES = ("cta", "cluster", "gpu", "sys")

#: Words behind `fence.proxy.` and what `Agent.fence` calls them.
_PROXIES = {
    "async": "async",
    "async.global": "async.global",
    "async.shared::cta": "async.shared",
    "async.shared::cluster": "async.shared",
    "async::generic.acquire.sync_restrict::shared::cluster.cluster": "async.shared",
    "async::generic.release.sync_restrict::shared::cta.cluster": "async.shared",
}

#: One-way fences of threads that are for shared memory alone; they order all memory here.
_RESTRICTED = {"acquire.sync_restrict::shared::cluster.cluster": "acquire", "release.sync_restrict::shared::cta.cluster": "release"}

#: The size of a tensor map, the only one that `fence.proxy.tensormap` takes.
_MAP = 128


def fence(s: Statement, c: Coder) -> Step:
    """`fence{.sem}.scope`, `fence.proxy.*`, `fence.mbarrier_init.release.cluster`, and the forms with `.sync_restrict`."""
    words = s.words[1:]
    if words[:1] == ("proxy",):
        return _proxy(s, c, words[1:])
    if words == ("mbarrier_init", "release", "cluster"):
        return orders.initialisations_fenced
    if (order := _RESTRICTED.get(".".join(words))) is not None:
        return lambda lanes: orders.fenced(lanes, order, "cluster")
    order, *scope = words if len(words) == 2 else ("acq_rel", *words)
    if order not in ("sc", "acq_rel", "acquire", "release") or len(scope) != 1 or scope[0] not in _SCOPES:
        raise c.unsupported(f"'.{'.'.join(words)}'")
    return lambda lanes: orders.fenced(lanes, order, scope[0])


def membar(s: Statement, c: Coder) -> Step:
    """`membar.{cta,gl,sys}`, which are `fence.sc` of a scope, and `membar.proxy.*`."""
    words = s.words[1:]
    if words[:1] == ("proxy",):
        return _proxy(s, c, words[1:])
    if len(words) != 1 or words[0] not in ("cta", "gl", "sys"):
        raise c.unsupported(f"'.{'.'.join(words)}'")
    scope = "gpu" if words[0] == "gl" else words[0]
    return lambda lanes: orders.fenced(lanes, "sc", scope)


def _proxy(s: Statement, c: Coder, words: tuple[str, ...]) -> Step:
    text = ".".join(words)
    if (kind := _PROXIES.get(text)) is not None:
        return lambda lanes: lanes.fence(kind)
    if text == "alias":
        return lambda lanes: None
    match words:
        case ("tensormap::generic", "release", scope) if scope in _SCOPES:
            return lambda lanes: orders.fenced(lanes, "release", scope)
        case ("tensormap::generic", "acquire", scope) if scope in _SCOPES:
            if len(s.operands) != 2 or c.constant(s.operands[1]) != _MAP:
                raise c.unsupported(f"a size other than {_MAP}")
            return lambda lanes: orders.fenced(lanes, "acquire", scope)
    raise c.unsupported(f"'.proxy.{text}'")
