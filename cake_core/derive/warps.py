"""Where each role's warps lie in the CTA (S19, S20): text order, aligned as the thread group asks, padded to whole
groups where a word on the header acts on whole groups."""

from __future__ import annotations

from dataclasses import dataclass

from cake_core.diagnostics import fail
from cake_core.ir.nodes import Int, Kernel, Role


@dataclass(frozen=True, slots=True)
class Placed:
    """First warp, warps of one instance, instances and idle pad warps behind the last."""

    first: int
    warps: int
    instances: int
    pad: int


def place(kernel: Kernel, registry, groups) -> dict[str, Placed]:
    out: dict[str, Placed] = {}
    at = 0
    for role in kernel.roles:
        group = groups[role.group]
        whole = max([1, *(registry.role_words[w.name].groups_of for w in role.words.items if w.name in registry.role_words)])
        align = max(group.aligned, whole)
        at = -(-at // align) * align
        instances = role.instances.value if isinstance(role.instances, Int) else 1
        warps = role.count.value * group.warps
        end = at + instances * warps
        pad = -end % whole
        _same_group(role, instances, warps, whole)
        out[role.name] = Placed(at, warps, instances, pad)
        at = end + pad
    return out


def _same_group(role: Role, instances: int, warps: int, whole: int) -> None:
    if instances > 1 and warps % whole and whole % warps:
        raise fail("derive/role-group", f"instances of role '{role.name}' of {warps} warps straddle groups of {whole}", role.span, role=role.name)
