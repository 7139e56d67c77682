"""Facts: what the proof knows of a kernel (`schema.py`), and how it is read off the derived form (`extract.py`)."""

from cake_core.facts.extract import facts_of
from cake_core.facts.schema import SCHEMA, Facts

__all__ = ["SCHEMA", "Facts", "facts_of"]
