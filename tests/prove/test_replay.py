"""What the event machine shows of a finding: a fault of the kind that is told confirms it, another one is named and does not."""

from __future__ import annotations

import pytest

from cake_core.machine import Fault, Kind
from cake_core.prove.replay import SAME, shown
from cake_core.prove.witness import Telling

RACE = Fault(Kind.RACE, "write of 'a' after a read: nothing orders the two", "a")
OTHER = Fault(Kind.RACE, "write of 'b' after a read: nothing orders the two", "b")
HANG = Fault(Kind.DEADLOCK, "no one can go on")


@pytest.mark.parametrize(
    ("faults", "told", "resource", "expected"),
    [
        ((HANG, RACE), "race", "a", (True, f"race: {RACE.message}")),
        ((HANG, RACE), "deadlock", None, (True, "deadlock: no one can go on")),
        ((OTHER, RACE), "race", "a", (True, f"race: {RACE.message}")),
        ((RACE,), "deadlock", None, (False, f"race: {RACE.message}")),
        ((HANG,), "left", "a", (False, "deadlock: no one can go on")),
        ((), "race", "a", (False, "")),
    ],
)
def test_a_fault_confirms_a_finding_of_its_kind_alone(faults, told, resource, expected):
    assert shown(faults, told, resource) == expected


def test_every_kind_that_is_listed_is_told():
    assert all(callable(getattr(Telling, name)) for name in SAME)
