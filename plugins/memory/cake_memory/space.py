"""`shared x: T[slots][shape]`: a buffer in the shared memory of a CTA."""

from __future__ import annotations

from cake_core.primitive import Form, Space, WordSpec

SHARED = Space(
    name="shared",
    memory="shared",
    words=(
        WordSpec("at", "constant", Form.DERIVED, required=True, help="bytes from the aligned base of the CTA's shared memory"),
        WordSpec("swizzle", "constant", Form.DERIVED, help="bytes of the rows whose 16-byte chunks are permuted: 32, 64 or 128"),
        WordSpec("alias", "name", help="the buffer in whose bytes this one lies, from its start: one of them is in use at a time"),
    ),
    element_types=("f32", "f16", "bf16", "e4m3", "e5m2", "ue8m0", "e2m1x2", "i32", "u32"),
    doc="Shared memory of a CTA (PTX ISA, State Spaces, Shared State Space); the swizzles are those of tensor maps "
    "(PTX ISA, Tensors, Swizzling Modes).",
)
