"""Where barriers live: an array of 8-byte objects in shared memory, planned apart from the buffers."""

from __future__ import annotations

from cake_core.primitive import Form, Space, WordSpec

BARRIER = Space(
    name="barrier",
    memory="barriers",
    element_types=("mbarrier",),
    words=(
        WordSpec("count", "constant", required=True, help="arrivals that complete a phase"),
        WordSpec("at", "constant", Form.DERIVED, help="byte offset from the base of shared memory"),
    ),
    capabilities=frozenset({"mbarrier"}),
    doc="`barrier b: mbarrier[n] count C`. PTX ISA, Size and alignment of mbarrier object: 8 bytes, 8-byte aligned, in shared memory.",
)
