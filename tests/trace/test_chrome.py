"""A trace as a file for viewers: every field that the format asks for, flows that bind to the slices they speak of, and a schema that refuses what is none."""

import json

import jsonschema
import pytest

from cake_core.source import Span
from cake_core.trace import Kind, Recorder, chrome_trace, trace_bytes
from cake_core.trace.chrome import SCHEMA_FILE

SCHEMA = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))


def recorded():
    """Two CTAs: a copy of the one lets a role of the other go on, which waited for it."""
    made = Recorder("two", "steps", microseconds=2.0)
    copies = made.track("CTA 0", "load copies", Kind.ENGINE)
    math = made.track("CTA 1", "math", Kind.ROLE, "4 warps")
    full = made.track("CTA 1", "full[0]", Kind.BARRIER)
    copy = made.slice(copies, "copy a[0]", 1, 5, what="engine", span=Span("k.cake", 7, 3, 7, 9), details=(("k", 0),))
    wait = made.slice(math, "wait full[0]", 2, 6, waited=3, what="wait")
    made.slice(full, "phase 0", 0, 5, what="phase")
    made.mark(full, "16 bytes", 5)
    made.arrow(copy, wait, "full[0]")
    return made.trace(("K", 64))


def test_it_is_what_the_format_asks_for():
    whole = json.loads(trace_bytes(recorded()))
    jsonschema.validate(whole, SCHEMA)
    assert whole == chrome_trace(recorded())
    by = {ph: [e for e in whole["traceEvents"] if e["ph"] == ph] for ph in "MXisf"}
    assert sum(map(len, by.values())) == len(whole["traceEvents"])
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in by["M"] if e["name"] == "thread_name"}
    assert {e["pid"]: e["args"]["name"] for e in by["M"] if e["name"] == "process_name"} == {0: "CTA 0", 1: "CTA 1"}
    assert sorted(names.values()) == ["full[0]", "load copies", "math"]
    assert [(names[e["pid"], e["tid"]], e["name"], e["ts"], e["dur"]) for e in by["X"]] == [
        ("load copies", "copy a[0]", 2, 8),
        ("math", "wait full[0]", 4, 8),
        ("full[0]", "phase 0", 0, 10),
    ]
    assert by["X"][0]["args"] == {"at": "k.cake:7:3", "k": 0} and by["X"][1]["args"] == {"waited": 6}
    assert whole["otherData"] == {"title": "two", "unit": "steps", "K": "64"}


def test_flows_bind_to_the_slices_that_they_speak_of():
    events = chrome_trace(recorded())["traceEvents"]
    start, end = (next(e for e in events if e["ph"] == ph) for ph in "sf")
    around = [
        next(x for x in events if x["ph"] == "X" and (x["pid"], x["tid"]) == (e["pid"], e["tid"]) and x["ts"] < e["ts"] < x["ts"] + x["dur"])
        for e in (start, end)
    ]
    assert [x["name"] for x in around] == ["copy a[0]", "wait full[0]"]
    assert start["id"] == end["id"] and start["ts"] <= end["ts"] and end["bp"] == "e"
    assert end["ts"] > around[1]["ts"] + around[1]["args"]["waited"]  # behind what it waited, not in it


@pytest.mark.parametrize(
    "broken", [{"ph": "X", "dur": -1}, {"ph": "Q"}, {"ph": "X", "pid": "CTA 0"}, {"ph": "X", "name": ""}, {"ph": "i", "s": None}]
)
def test_the_schema_refuses_what_is_none(broken):
    whole = chrome_trace(recorded())
    event = next((e for e in whole["traceEvents"] if e["ph"] == broken["ph"]), whole["traceEvents"][-1])
    event |= broken
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(whole, SCHEMA)


def test_a_track_is_made_once():
    made = Recorder("t", "steps")
    assert [made.track("CTA 0", n, Kind.ROLE) for n in ("a", "b", "a")] == [0, 1, 0]
