"""`frag x: T[shape] [vec n]`: a tile in registers."""

from __future__ import annotations

from cake_core.primitive import Form, Space, WordSpec

FRAG = Space(
    name="frag",
    memory="registers",
    words=(
        WordSpec("vec", "constant", help="how many neighbours of a one-dimensional fragment a thread holds side by side"),
        WordSpec("over", "name", help="`row` or `col`: one value a row or column of the layout, held by all threads of that row or column"),
        WordSpec("part", "name", help="lane-partial: the operation that combines the lanes of a row, such as `sum`; alone it is a flag"),
        WordSpec("grid", "numbers", Form.DERIVED, help="(r, c): the warps of the instance as r rows and c columns of the tile"),
        WordSpec("layout", "name", Form.DERIVED, required=True, help="which elements each thread holds: `mma` or `vector`"),
    ),
    element_types=("f32", "f16", "bf16", "e4m3", "e5m2", "i32", "u32"),
    doc="Registers of the threads of one instance (PTX ISA, State Spaces, Register State Space); smaller elements lie in pairs or "
    "fours (PTX ISA, Types, Packed Data Types).",
)
