"""The runs of all agents of a kernel."""

from __future__ import annotations

from dataclasses import replace

from cake_core.facts.schema import Facts, events
from cake_core.prove.agents import Agent
from cake_core.prove.received import Talks
from cake_core.prove.sums import Sums
from cake_core.prove.text import Counting, deciding, meeting_ids, specialised
from cake_core.prove.walk import Run, run_of


def runs_of(agents: tuple[Agent, ...], facts: Facts, sums: Sums) -> dict[str, Run]:
    """The runs of all agents. Those of one role whose way depends neither on who they are nor on what only they know go it together: only what they name differs."""
    out: dict[str, Run] = {}
    walked: dict[tuple, Run] = {}
    talks = Talks(facts)
    for agent in agents:
        constants = agent.constants(facts)
        who = deciding((*agent.role.body, *facts.after), agent)
        ids = meeting_ids((*agent.role.body, *facts.after), constants)
        runs = tuple(agent.runs(e) for e in events((*agent.role.body, *facts.after)))  # a warp's number says more only where one warp runs a statement
        key = (agent.role.name, agent.first, runs, *ids.items(), *(str(constants[n].value) for n in who if n in constants))
        if walked.get(key) is None or walked[key].own:
            walked[key] = run_of(agent, facts, sums, talks)
        sites = [replace(s, agent=agent, acts=specialised(s.event, constants) if s.event else ()) for s in walked[key].sites]
        out[agent.key] = Run(agent, sites, Counting(ids, walked[key].counting.turns, agent.apart), walked[key].loose, walked[key].endless)
    return out
