"""What a run did and when, on tracks: records that every executor fills alike (`events.py`), and the file of them that trace viewers open (`chrome.py`)."""

from cake_core.trace.chrome import chrome_trace, trace_bytes
from cake_core.trace.events import Arrow, Kind, Mark, Recorder, Slice, Trace, Track, beside

__all__ = ["Arrow", "Kind", "Mark", "Recorder", "Slice", "Trace", "Track", "beside", "chrome_trace", "trace_bytes"]
