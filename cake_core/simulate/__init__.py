"""The simulator: a derived kernel executed on data, by the event machine and each primitive's `simulate`."""

from cake_core.simulate.findings import diagnostic
from cake_core.simulate.launch import SCHEDULES, Plot, Simulator
from cake_core.simulate.memory import Block, blank, over_bytes
from cake_core.simulate.stops import Stop, labels_of, stop_at

__all__ = ["SCHEDULES", "Block", "Plot", "Simulator", "Stop", "blank", "diagnostic", "labels_of", "over_bytes", "stop_at"]
