"""Texts made small: delta debugging of a kernel, alone or beside its repaired twin, while an oracle still says that it goes wrong."""

from cake_core.reduce.minimise import Reduced, minimise
from cake_core.reduce.oracles import Check, Oracle, command_oracle, fault_oracle, finding_oracle
from cake_core.reduce.pair import Pair

__all__ = ["Check", "Oracle", "Pair", "Reduced", "command_oracle", "fault_oracle", "finding_oracle", "minimise"]
