"""Facts: what the proof knows of a kernel (`schema.py`), how it is read off the derived form (`extract.py`), and the same as rows of
relations (`relations.py`, `rows.py`), which rules match on."""

from cake_core.facts.extract import facts_of
from cake_core.facts.relations import RELATIONS
from cake_core.facts.rows import Row, Rows, Site, rows_of
from cake_core.facts.schema import SCHEMA, Facts

__all__ = ["RELATIONS", "SCHEMA", "Facts", "Row", "Rows", "Site", "facts_of", "rows_of"]
