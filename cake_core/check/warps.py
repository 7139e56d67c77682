"""Warps: roles do not overlap, whole groups share a role word, the CTA fits (S19, S20)."""

from __future__ import annotations

from cake_core.check.subject import Subject
from cake_core.diagnostics import Related, Sink


def check(subject: Subject, sink: Sink) -> None:
    plan, arch = subject.plan, subject.arch
    limit = arch.limit("threads_per_block")
    if plan.threads > limit:
        sink.error("core/threads", f"the roles need {plan.threads} threads", subject.kernel.span, why=f"{arch.name} takes {limit} a CTA: {arch.limits['threads_per_block'].source}")
    owner: dict[int, object] = {}
    for role in plan.roles:
        for w in range(role.first, role.end):
            if w in owner:
                other = owner[w]
                sink.error("core/warp-overlap", f"roles '{other.name}' and '{role.name}' both own warp {w}", role.span, role=role.name, related=(Related(f"'{other.name}' is here", other.span),))
                break
            owner[w] = role
    for role in plan.roles:
        for word in role.entry:
            groups_of = subject.registry.role_words[word].groups_of if word in subject.registry.role_words else 1
            if role.first % groups_of or (role.end + role.pad) % groups_of:
                sink.error(
                    "core/role-word-group",
                    f"'{word}' acts on whole groups of {groups_of} warps, and role '{role.name}' has warps {role.first} to {role.end + role.pad - 1}",
                    role.span,
                    role=role.name,
                    fix="start the role at a whole group and pad it to one",
                )
            strangers = {owner[w].name for w in range(role.end, role.end + role.pad) if w in owner and owner[w] is not role}
            for name in sorted(strangers):
                sink.error("core/warp-overlap", f"a pad warp of role '{role.name}' belongs to role '{name}'", role.span, role=role.name)
