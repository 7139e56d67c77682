"""Warps: roles do not overlap, whole groups share a role word, the CTA fits (S19, S20)."""

from __future__ import annotations

from cake_core.check.subject import Subject
from cake_core.diagnostics import Related, Sink


def check(subject: Subject, sink: Sink) -> None:
    plan, arch = subject.plan, subject.arch
    limit = arch.limit("threads_per_block")
    if plan.threads > limit:
        sink.error("core/threads", f"the roles need {plan.threads} threads", subject.kernel.span, why=f"{arch.name} takes {limit} a CTA: {arch.limits['threads_per_block'].source}", fix="fewer or smaller roles")
    owner: dict[int, object] = {}
    for role in plan.roles:
        for w in range(role.first, role.end):
            if w in owner:
                other = owner[w]
                sink.error("core/warp-overlap", f"roles '{other.name}' and '{role.name}' both own warp {w}", role.span, role=role.name, why="a warp runs one role", related=(Related(f"'{other.name}' is here", other.span),))
                break
            owner[w] = role
    for role in plan.roles:
        words = subject.registry.role_words
        for word in role.entry:
            groups_of = words[word].groups_of if word in words else 1
            if role.first % groups_of or (role.end + role.pad) % groups_of:
                sink.error(
                    "core/role-word-group",
                    f"'{word}' acts on whole groups of {groups_of} warps, and role '{role.name}' has warps {role.first} to {role.end + role.pad - 1}",
                    role.span,
                    role=role.name,
                    why="all warps of a group execute it together",
                    fix="start the role at a whole group and pad it to one",
                )
        # a role without words of its own may live in the pad warps, which run the words of this one (S20)
        strangers = {owner[w].name: owner[w] for w in range(role.end, role.end + role.pad) if w in owner and owner[w].entry}
        for name, other in strangers.items():
            sink.error(
                "core/warp-overlap",
                f"a pad warp of role '{role.name}' belongs to role '{name}', which has words of its own",
                role.span,
                role=role.name,
                related=(Related(f"'{name}' is here", other.span),),
                why="a warp enters with the words of one role",
            )
