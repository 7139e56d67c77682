"""Barriers of a whole CTA or cluster inside a role: all other threads would have to come too.

Threads of other roles do not, and idle warps stand at such a barrier behind the roles already, which a cluster's kernel ends with:
they would be counted here. So the role has all warps of the CTA.
"""

from __future__ import annotations

from cake_core.check.subject import Subject
from cake_core.diagnostics import Sink
from cake_core.effects import Rendezvous
from cake_core.ir.flow import walk

WHOLE = ("cta", "cluster")


def check(subject: Subject, sink: Sink) -> None:
    for role in subject.kernel.roles:
        plan = subject.role(role.name)
        here = plan.instances * plan.warps
        if here == subject.plan.warps:
            continue
        for s in walk(role.body):
            for e in subject.effects(s):
                if isinstance(e, Rendezvous) and e.scope in WHOLE:
                    sink.error(
                        "core/meeting",
                        f"role '{role.name}' waits for the whole {'CTA' if e.scope == 'cta' else e.scope}, and has {here} of its {subject.plan.warps} warps",
                        s.span,
                        role=role.name,
                        why="the other warps never come to this barrier, or are counted at another one",
                        fix="meet inside the role, or give it all warps",
                    )
