"""The event machine: what facts do, executed at concrete parameters. It replays witnesses and is the oracle of the tests."""

from cake_core.machine.explore import explore, replay
from cake_core.machine.outcome import Fault, Kind, Outcome, Policy, Scenario, Site
from cake_core.machine.scenarios import scenarios_of
from cake_core.machine.values import Endless, MachineError

__all__ = ["Endless", "Fault", "Kind", "MachineError", "Outcome", "Policy", "Scenario", "Site", "explore", "replay", "scenarios_of"]
