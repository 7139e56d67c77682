"""Warps: roles do not overlap, whole groups share a role word, the CTA fits (S19, S20)."""

from __future__ import annotations

from cake_core.check.subject import Subject
from cake_core.diagnostics import Related, Sink


def check(subject: Subject, sink: Sink) -> None:
    plan, arch = subject.plan, subject.arch
    limit = arch.limit("threads_per_block")
    if plan.threads > limit:
        sink.error("core/threads", f"the roles need {plan.threads} threads", subject.kernel.span, why=f"{arch.name} takes {limit} a CTA: {arch.limits['threads_per_block'].source}", fix="fewer or smaller roles")
    _resident(subject, sink)
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


def together(subject: Subject) -> tuple[str, int, int] | None:
    """Why the CTAs that `ctas n` asks for can't be on a multiprocessor at one time: of what, how much they take, the limit.

    None: they can, or the target does not say. Registers are shared out among them and checked as such."""
    plan, arch = subject.plan, subject.arch
    reserved = arch.limit("shared_bytes_reserved") if "shared_bytes_reserved" in arch.limits else 0
    each = (
        ("CTAs", 1, "blocks_per_sm"),
        ("threads", plan.threads, "threads_per_sm"),
        ("bytes of shared memory", plan.shared_bytes + reserved, "shared_bytes_per_sm"),
    )
    for what, size, limit in each if plan.launch.ctas_per_sm is not None else ():
        if limit in arch.limits and (taken := plan.launch.ctas_per_sm * size) > arch.limit(limit):
            return what, taken, limit
    return None


def _resident(subject: Subject, sink: Sink) -> None:
    if (found := together(subject)) is not None:
        what, taken, limit = found
        of = subject.arch.limits[limit]
        sink.error(
            "core/resident-ctas",
            f"{subject.plan.launch.ctas_per_sm} CTAs do not fit on a multiprocessor",
            subject.plan.launch.span,
            why=f"they would be {taken} {what}, and {subject.arch.name} takes {of.value}: {of.source}",
            fix="a smaller number behind `ctas`",
        )
