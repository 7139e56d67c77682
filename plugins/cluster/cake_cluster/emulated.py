"""Which instructions for clusters are executed without a GPU."""

from __future__ import annotations

from cake_core.ptx.emulated import Emulated

EMULATES = (
    Emulated("mapa", "cake_cluster.emulate:mapa", doc="PTX ISA, mapa"),
    Emulated("barrier.cluster", "cake_cluster.emulate:barrier", waits=True, doc="PTX ISA, barrier.cluster"),
    Emulated("st.async", "cake_cluster.emulate:store", doc="PTX ISA, st.async"),
    Emulated("red.async", "cake_cluster.emulate:reduce", doc="PTX ISA, red.async"),
)
