"""A trace in the Trace Event Format, the JSON that Perfetto and chrome://tracing open (its phases M, X, i, s, f; times in microseconds).

A group is a process and a track is a thread of it, in the order of the trace; a slice is a complete event, a mark an instant of its thread, an arrow
a flow from the source's end to where the target has what it waited for. `chrome.schema.json` beside this file has the fields that are written.
"""

from __future__ import annotations

import json
from pathlib import Path

from cake_core.source import Span
from cake_core.trace.events import Slice, Trace

SCHEMA_FILE = Path(__file__).with_name("chrome.schema.json")


def chrome_trace(trace: Trace) -> dict:
    """The JSON object: `traceEvents`, and of the run what its trace says about it."""
    groups = {g: n for n, g in enumerate(dict.fromkeys(t.group for t in trace.tracks))}
    at = [{"pid": groups[t.group], "tid": n + 1} for n, t in enumerate(trace.tracks)]  # Perfetto takes thread 0 for the idle one
    scale = trace.microseconds
    events = []
    for name, pid in groups.items():
        events += [_named("process_name", pid, 0, name=name), _named("process_sort_index", pid, 0, sort_index=pid)]
    for t, where in zip(trace.tracks, at, strict=True):
        events += [_named("thread_name", **where, name=t.name), _named("thread_sort_index", **where, sort_index=where["tid"])]
    for s in trace.slices:
        more = {"waited": s.waited * scale} if s.waited else {}
        timed = {"ts": s.start * scale, "dur": (s.end - s.start) * scale}
        events.append({"ph": "X", "name": s.name, "cat": s.what or "other", **at[s.track], **timed, "args": _args(s.span, s.details) | more})
    for m in trace.marks:
        events.append({"ph": "i", "s": "t", "name": m.name, "cat": "mark", **at[m.track], "ts": m.at * scale, "args": _args(m.span, m.details)})
    for n, a in enumerate(trace.arrows):
        source, target = trace.slices[a.source], trace.slices[a.target]
        flow = {"name": a.name, "cat": "hand-off", "id": n + 1}
        events.append({"ph": "s", **flow, **at[source.track], "ts": _inside(source) * scale})
        events.append({"ph": "f", "bp": "e", **flow, **at[target.track], "ts": max(_inside(source), _inside(target)) * scale})
    about = {"title": trace.title, "unit": trace.unit, **dict(trace.about)}
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {k: str(v) for k, v in about.items()}}


def trace_bytes(trace: Trace) -> bytes:
    """The file, an event a line: the same trace gives the same bytes."""
    whole = chrome_trace(trace)
    events = ",\n".join(json.dumps(e, separators=(",", ":"), ensure_ascii=False) for e in whole.pop("traceEvents"))
    rest = json.dumps(whole, separators=(",", ":"), ensure_ascii=False)
    return f'{{"traceEvents":[\n{events}\n],{rest[1:]}\n'.encode()


def _named(what: str, pid: int, tid: int, **args) -> dict:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


def _args(span: Span | None, details: tuple) -> dict:
    where = {"at": str(span)} if span is not None and span.line else {}
    return where | dict(details)


def _inside(s: Slice) -> float:
    """A moment of a slice's last part, what it waited left out: a flow binds to the slice that is there."""
    return s.end - (s.end - s.start - s.waited) / 2
