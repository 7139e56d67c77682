"""A primitive that throws while it is asked anything ends in a finding at its statement, never in a traceback."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from cake_core.diagnostics import CakeError
from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.source import Source

KERNEL = Path(__file__).resolve().parents[2] / "kernels" / "rmsnorm" / "rmsnorm.cake"


def failing(primitive, method: str):
    """The same primitive, but `method` throws."""

    def throw(self, *args):
        raise ValueError("a fault of its own")

    kind = type("Failing", (type(primitive),), {method: throw})
    return kind(**{f.name: getattr(primitive, f.name) for f in fields(primitive)})


OPERATION = [("operations", "store", m) for m in ("check", "demands", "fragments", "derive", "effects")]
FUNCTION = [("functions", "load", m) for m in ("result", "derive", "effects")] + [("functions", "*", "result")]


@pytest.mark.parametrize("kind, name, method", OPERATION + FUNCTION)
def test_it_is_named_with_its_statement(kind, name, method):
    registry = load_registry()
    offered = dict(getattr(registry, kind))
    offered[name] = failing(offered[name], method)
    with pytest.raises(CakeError) as error:
        build(Source(KERNEL.name, KERNEL.read_text()), replace(registry, **{kind: offered}), "sm90")
    found = [d for d in error.value.diagnostics if d.code == "plugin/primitive-failed"]
    assert found and all(f"'{name}'" in d.message and "a fault of its own" in d.message for d in found)
    assert all(d.span is not None and d.span.line for d in found)


def answering(primitive, method: str, answer):
    """The same primitive, but `method` gives `answer`."""
    kind = type("Answering", (type(primitive),), {method: lambda self, *args: answer})
    return kind(**{f.name: getattr(primitive, f.name) for f in fields(primitive)})


@pytest.mark.parametrize("answer", [None, ("junk", 7)], ids=["nothing", "junk"])
@pytest.mark.parametrize("kind, name, method", [o for o in OPERATION if o[2] != "check"] + [o for o in FUNCTION if o[2] != "result"])
def test_an_answer_that_no_one_knows_is_a_fault_of_the_plugin(kind, name, method, answer):
    """Effects above all: what is passed over there is not proved of."""
    registry = load_registry()
    offered = dict(getattr(registry, kind))
    offered[name] = answering(offered[name], method, answer)
    with pytest.raises(CakeError) as error:
        build(Source(KERNEL.name, KERNEL.read_text()), replace(registry, **{kind: offered}), "sm90")
    found = [d for d in error.value.diagnostics if d.code == "plugin/primitive-failed"]
    assert found and all(f"'{name}'" in d.message and f"'{method}'" in d.message and " is n" in d.message for d in found)
