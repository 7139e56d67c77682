"""Whether findings are told as they should be, in every format: for tests of rooms that make findings."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import jsonschema

from cake_core.diagnostics import Diagnostic, render
from cake_core.diagnostics.categories import NAMESPACES, OF_THE_TOOL
from cake_core.diagnostics.json import SCHEMA_FILE
from cake_core.diagnostics.render import in_order


@cache
def validator(path: Path) -> jsonschema.protocols.Validator:
    """For a schema of whatever draft it names."""
    schema = json.loads(path.read_text(encoding="utf-8"))
    return jsonschema.validators.validator_for(schema)(schema)


#: The whole of the standard's; tests/data/README.md says where it is from.
SARIF = Path(__file__).resolve().parents[1] / "data" / "sarif-schema-2.1.0.json"


def assert_told(found: Iterable[Diagnostic]) -> None:
    """JSON and SARIF after their schemas, with all that a witness shows; one GitHub command a finding; and in text, whether an example was executed."""
    found = in_order(found)
    data = json.loads(render(found, (), "json"))
    validator(SCHEMA_FILE).validate(data)
    log = json.loads(render(found, (), "sarif"))
    validator(SARIF).validate(log)
    (run,) = log["runs"]
    ids = [r["id"] for r in run["tool"]["driver"]["rules"]]
    commands = render(found, (), "github").splitlines()
    assert len(data["diagnostics"]) == len(run["results"]) == len(commands) == len(found)
    for d, said, result, command in zip(found, data["diagnostics"], run["results"], commands, strict=True):
        assert ids[result["ruleIndex"]] == result["ruleId"] == said["code"] == d.code
        assert f"title={d.code}" in command
        assert said["category"] is not None or d.code.partition("/")[0] not in NAMESPACES or d.code in OF_THE_TOOL, d.code
        assert result.get("properties", {}).get("category") == said["category"]
        if d.witness is None:
            continue
        text = render([d], (), "text")
        assert any(how in text for how in ("the event machine goes wrong there too", "not confirmed by the event machine", "not executed"))
        steps = [s for flow in result.get("codeFlows", ()) for t in flow["threadFlows"] for s in t["locations"]]
        assert sorted(s["executionOrder"] for s in steps) == list(range(1, len(d.witness.story) + 1))
        placed = sum("physicalLocation" in s["location"] for s in steps)
        assert placed == sum(p is not None for p in said["witness"]["places"]) and len(said["witness"]["places"]) == len(d.witness.story)
        assert all(line in command.replace("%25", "%") for line in d.witness.story)
