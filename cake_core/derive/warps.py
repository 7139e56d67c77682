"""Where each role's warps lie in the CTA (S19, S20): text order, aligned as the thread group asks, padded to whole
groups where a word on the header acts on whole groups."""

from __future__ import annotations

from dataclasses import field

from cake_core.architecture import Architecture
from cake_core.diagnostics import Sink, fail
from cake_core.frozen import frozen, thawed
from cake_core.ir.nodes import Int, Kernel, Role
from cake_core.ir.plan import integer


@frozen
class Placed:
    """First warp, warps of one instance, instances and idle pad warps behind the last."""

    first: int
    warps: int
    instances: int
    pad: int


@thawed
class NamedBarriers:
    """Ids of named barriers, handed out from 1 in the order in which they are asked for; 0 is the whole CTA's."""

    ids: dict[tuple[str, str], int] = field(default_factory=dict)
    following: int = 1

    def first(self, role: str, scope: str, count: int) -> int:
        """The first of `count` ids of a role."""
        if (role, scope) not in self.ids:
            self.ids[role, scope] = self.following
            self.following += count
        return self.ids[role, scope]

    def check(self, kernel: Kernel, arch: Architecture, sink: Sink) -> None:
        limit = arch.limits["named_barriers"]
        if self.following > limit.value:
            last = next((r for r in kernel.roles if self.ids and r.name == list(self.ids)[-1][0]), kernel.roles[-1])
            sink.error(
                "derive/barrier-ids",
                f"the roles need {self.following - 1} named barriers, and this one has no more",
                last.span,
                role=last.name,
                why=f"a CTA has {limit.value}, one of which all its threads use ({limit.source})",
                fix="fewer instances of several warps that sync, or one `sync .. all`",
            )


def place(kernel: Kernel, registry, groups) -> dict[str, Placed]:
    out: dict[str, Placed] = {}
    at = 0
    for role in kernel.roles:
        group = groups[role.group]
        whole = max([1, *(registry.role_words[w.name].groups_of for w in role.words.items if w.name in registry.role_words)])
        align = max(group.aligned, whole, integer(role.words, "aligned", 1))
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
        raise fail("derive/role-group", f"instances of role '{role.name}' of {warps} warps straddle groups of {whole}", role.span, role=role.name, why="a word on its header acts on whole groups", fix=f"instances of {whole} warps or a multiple, or without the word")
