"""A compiler that derives or lowers wrongly is found out by what ships: each kind of error is planted, and the build ends.

What derivation writes is planted behind it, in the text that is proved and lowered; what lowering writes, in the instructions as they are
emitted. Without a plant the same texts build.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cake_tma.load
import cake_wgmma.descriptor
import pytest

from cake_core import pipeline
from cake_core.diagnostics import CakeError
from cake_core.ir.printer import kernel_text
from cake_core.lower import addresses, said
from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.primitive import factors
from cake_core.ptx.builder import Addr, Builder
from cake_core.source import Source
from cake_core.syntax import parse

TEXTS = Path(__file__).parents[1] / "derive" / "texts"
REGISTRY = load_registry()
COPIES, TENSOR, FENCED, NAMED = "cluster", "alias_in_tensor_memory", "fence_of_the_iteration_before", "sync_all"


def built(name: str, prove: bool = True):
    source = Source(f"{name}.cake", (TEXTS / f"{name}.cake").read_text(encoding="utf-8"))
    return build(source, REGISTRY, prove=prove)


def found(name: str, prove: bool = True) -> set[str]:
    with pytest.raises(CakeError) as raised:
        built(name, prove)
    return {d.code for d in raised.value.diagnostics}


@pytest.mark.parametrize("name", [COPIES, TENSOR, FENCED])
def test_without_a_plant_it_builds(name):
    assert built(name).diagnostics == ()


# --- derivation --------------------------------------------------------------------------------------------------

DERIVED = {
    "arrival count": (COPIES, "ab_empty: mbarrier[4] count 2", "ab_empty: mbarrier[4] count 1", "core/arrival-count"),
    "rank of an arrival": (COPIES, "ab_empty[ab_release % 4] at 1", "ab_empty[ab_release % 4] at 0", "core/arrival-count"),
    "parity of the producer": (COPIES, "(ab_fill / 4 + 1) % 2", "ab_fill / 4 % 2", "core/deadlock"),
    "parity of a consumer": (COPIES, "parity ab_wait / 4 % 2", "parity (ab_wait / 4 + 1) % 2", "core/async-completion"),
    "bytes": (COPIES, "bytes 24576", "bytes 16384", "core/transaction-bytes"),
    "multicast mask": (COPIES, " mask 3", " mask 1", "core/transaction-bytes"),
    "no multicast": (COPIES, " mask 3", "", "core/transaction-bytes"),
    "slot index that is filled": (COPIES, "let s = ab_fill % 4", "let s = (ab_fill + 1) % 4", "core/wait-phase"),
    "slot index that is read": (COPIES, "@ b[s].T", "@ b[(s + 1) % 4].T", "core/slot-refill"),
    "slot index that is released": (COPIES, "ab_empty[ab_release % 4]", "ab_empty[(ab_release + 1) % 4]", "core/arrival-phase"),
    "offset": (COPIES, "at 32768 swizzle", "at 24576 swizzle", "core/shared-overlap"),
    "swizzle": (COPIES, "at 32768 swizzle 128", "at 32768 swizzle 64", "ptx/tma-box"),
    "fence of registers": (COPIES, "        wgmma.fence\n", "", "core/register-fence"),
    "fence of the proxy": (FENCED, "      fence.proxy.async\n", "", "core/missing-proxy-fence"),
    "fence of tensor memory": (TENSOR, "      tcgen05.fence.before\n", "", "core/tensor-fence-before"),
    "column": (TENSOR, "tmem s: f32[2][128, 128] at 0", "tmem s: f32[2][128, 128] at 64", "core/tensor-columns"),
    "columns that are taken": (TENSOR, "columns 256", "columns 128", "core/tensor-columns"),
}


@pytest.mark.parametrize("kind", DERIVED)
def test_derived_wrongly(kind, monkeypatch):
    name, right, wrong, code = DERIVED[kind]
    real = pipeline.derive

    def derive(*args):
        text = "cake 1 derived\n" + kernel_text(real(*args))
        assert right in text
        return parse(Source("derived.cake", text.replace(right, wrong))).kernels[0]

    monkeypatch.setattr(pipeline, "derive", derive)
    assert code in found(name)


# --- lowering ----------------------------------------------------------------------------------------------------


def _times_two(operands: tuple) -> tuple:
    """The numbers among some operands, doubled, or 1 for 0."""
    return tuple(2 * x or 1 if isinstance(x, int) and not isinstance(x, bool) else x for x in operands)


LOWERED = {
    "arrival count": (COPIES, "mbarrier.init", _times_two),
    "bytes": (COPIES, "mbarrier.arrive.expect_tx", _times_two),
    "multicast mask": (COPIES, "mov.b16", _times_two),
    "groups in flight": (COPIES, "wgmma.wait_group", _times_two),
    "threads of a barrier": (NAMED, "bar.sync", _times_two),
    "columns that are taken": (TENSOR, "tcgen05.alloc", _times_two),
    "fence of registers": (COPIES, "wgmma.fence", None),
    "fence of the proxy": (FENCED, "fence.proxy.async", None),
    "fence of tensor memory": (TENSOR, "tcgen05.fence", None),
    "a commit": (COPIES, "wgmma.commit_group", None),
}


@pytest.mark.parametrize("kind", LOWERED)
def test_lowered_wrongly(kind, monkeypatch):
    """The instruction is emitted with other numbers, or not at all."""
    name, opcode, change = LOWERED[kind]
    real, planted = Builder.emit, []

    def emit(self, op, *operands, **more):
        if op.startswith(opcode):
            planted.append(op)
            if change is None:
                return None
            operands = change(operands)
        return real(self, op, *operands, **more)

    monkeypatch.setattr(Builder, "emit", emit)
    assert found(name, prove=False) == {"derive/not-as-said"} and planted


def test_a_map_with_another_swizzle(monkeypatch):
    real = cake_tma.load.map_operand
    monkeypatch.setattr(cake_tma.load, "map_operand", lambda cx, tensor, swizzle: real(cx, tensor, 64))
    assert found(COPIES, prove=False) == {"derive/not-as-said"}


@pytest.mark.parametrize("behind", [16, 32, 64, -16])
def test_a_descriptor_of_another_place(behind, monkeypatch):
    real = factors.byte_offset
    monkeypatch.setattr(
        factors, "byte_offset", lambda cx, factor, swizzle, extent, depth: real(cx, factor, swizzle, extent, depth) + (behind if depth else 0)
    )
    assert found(COPIES, prove=False) == {"derive/descriptor-reach"}
    assert found(TENSOR, prove=False) == {"derive/descriptor-reach"}


@pytest.mark.parametrize(("name", "wrong"), [("MODE", {128: 2, 64: 1, 32: 3}), ("PATTERN", 16)])
def test_a_descriptor_with_other_fields(name, wrong, monkeypatch):
    """The mode of the swizzle, and the stride from one pattern to the next."""
    monkeypatch.setattr(cake_wgmma.descriptor, name, wrong)
    assert found(COPIES, prove=False) == {"derive/descriptor-reach"}


def test_a_panel_elsewhere(monkeypatch):
    """Panels of a factor that lies along M or N: the leading offset."""
    text = (TEXTS / f"{COPIES}.cake").read_text(encoding="utf-8")
    assert "b[s].T" in text
    wide = text.replace("shared a: bf16[4][64, 64], b: bf16[4][128, 64]", "shared a: bf16[4][64, 64], b: bf16[4][64, 128]")
    wide = wide.replace("B: in bf16[N, K]", "B: in bf16[K, N]").replace("@ b[s].T", "@ b[s]")
    wide = wide.replace("B[n * 128 +: 128, k * 64 +: 64]", "B[k * 64 +: 64, n * 128 +: 128]")
    source = Source("wide.cake", wide)
    assert build(source, REGISTRY).lowered.ptx
    real = addresses.panel
    monkeypatch.setattr(addresses, "panel", lambda cx, expr: (real(cx, expr)[0], real(cx, expr)[1] + 1024))
    with pytest.raises(CakeError) as raised:
        build(source, REGISTRY)
    assert {d.code for d in raised.value.diagnostics} == {"derive/descriptor-reach"}


# --- lowering, read back -----------------------------------------------------------------------------------------
#
# What no operand shows is found in the PTX itself. The same goes for what `derive/not-as-said` finds first: each plant is made
# with that check out of the way, so that one does not stand for the other.

ZOO = Path(__file__).parents[2] / "kernels" / "gemm"


def _flipped(b: Builder, real, op: str, operands: tuple, more: dict) -> None:
    """The parity that a wait asks for."""
    done, barrier, parity = operands
    other = 1 - parity if isinstance(parity, int) else b.op("xor.b32", parity, 1)
    real(b, op, done, barrier, other, **more)


def _elsewhere(behind: int):
    """The barrier, so many bytes behind the one that is meant."""

    def plant(b: Builder, real, op: str, operands: tuple, more: dict) -> None:
        moved = [replace(x, offset=x.offset + behind) if isinstance(x, Addr) else x for x in operands]
        real(b, op, *moved, **more)

    return plant


def _signal_elsewhere(b: Builder, real, op: str, operands: tuple, more: dict) -> None:
    """The barrier that a copy tells, and not where it goes to."""
    at = next(i for i, x in enumerate(operands) if isinstance(x, Addr) and i)
    real(b, op, *operands[:at], replace(operands[at], offset=operands[at].offset + 8), *operands[at + 1 :], **more)


def _changed(change):
    def plant(b: Builder, real, op: str, operands: tuple, more: dict) -> None:
        real(b, op, *(change(x) if isinstance(x, int) and not isinstance(x, bool) else x for x in operands), **more)

    return plant


def _left_out(b: Builder, real, op: str, operands: tuple, more: dict) -> None:
    """No instruction at all."""


def _other_slot(b: Builder, real, op: str, operands: tuple, more: dict) -> None:
    """A remainder by the number of slots that is the next slot's."""
    d, a, n = operands
    real(b, "add.s32", d, a, 1, **more)
    real(b, op, d, d, n, **more)


READ_BACK = {
    "sm90 parity": ("gemm_sm90", "mbarrier.try_wait", _flipped, {"load", "math"}),
    "sm90 barrier of a wait": ("gemm_sm90", "mbarrier.try_wait", _elsewhere(8), {"load", "math"}),
    "sm90 barrier of an arrival": ("gemm_sm90", "mbarrier.arrive.shared", _elsewhere(-8), {"math"}),
    "sm90 bytes": ("gemm_sm90", "mbarrier.arrive.expect_tx", _changed(lambda x: x // 2), {"load"}),
    "sm90 count": ("gemm_sm90", "mbarrier.init", _changed(lambda x: x + 1), {"load"}),
    "sm90 barrier of a copy": ("gemm_sm90", "cp.async.bulk.tensor.2d.shared", _signal_elsewhere, {"load"}),
    "sm90 fence": ("gemm_sm90", "fence.proxy.async", _left_out, {"math"}),
    "sm90 fence of registers": ("gemm_sm90", "wgmma.fence", _left_out, {"math"}),
    "sm90 threads": ("gemm_sm90", "bar.sync", _changed(lambda x: 2 * x), {"math"}),
    "sm90 groups": ("gemm_sm90", "wgmma.wait_group", _changed(lambda x: x + 1), {"math"}),
    "sm80 commit": ("gemm_sm80", "cp.async.commit_group", _left_out, {"main"}),
    "sm80 groups": ("gemm_sm80", "cp.async.wait_group", _changed(lambda x: x + 1), {"main"}),
    "sm80 meeting": ("gemm_sm80", "bar.sync", _left_out, {"main"}),
    "sm80 threads": ("gemm_sm80", "bar.sync", _changed(lambda x: x + 1), {"main"}),
    "sm100 parity": ("gemm_sm100_pair", "mbarrier.try_wait", _flipped, {"load", "mma", "epi"}),
    "sm100 slot": ("gemm_sm100_pair", "rem.u32", _other_slot, {"load", "mma", "epi"}),
    "sm100 barrier of an engine": ("gemm_sm100_pair", "tcgen05.commit", _elsewhere(8), {"mma"}),
    "sm100 barrier of a copy": ("gemm_sm100_pair", "cp.async.bulk.tensor.2d.shared", _signal_elsewhere, {"load"}),
    "sm100 bytes": ("gemm_sm100_pair", "mbarrier.arrive.expect_tx", _changed(lambda x: x + 16), {"load"}),
    "sm100 fence behind a wait": ("gemm_sm100_pair", "tcgen05.fence::after", _left_out, {"load", "mma", "epi"}),
    "sm100 fence of the proxy": ("gemm_sm100_pair", "fence.proxy.async", _left_out, {"epi"}),
    "sm100 columns": ("gemm_sm100_pair", "tcgen05.alloc", _changed(lambda x: x // 2), {"load"}),
}


@pytest.mark.parametrize("kind", READ_BACK)
def test_lowered_wrongly_and_read_back(kind, monkeypatch):
    name, opcode, plant, roles = READ_BACK[kind]
    real, planted = Builder.emit, []

    def emit(self, op, *operands, **more):
        if op.startswith(opcode) and not planted[-1:] == [None]:
            planted.append(None)  # what a plant emits is emitted as it is
            plant(self, real, op, operands, more)
            planted[-1] = op
            return None
        return real(self, op, *operands, **more)

    monkeypatch.setattr(Builder, "emit", emit)
    monkeypatch.setattr(said, "check", lambda *_: None)
    source = Source(f"{name}.cake", (ZOO / f"{name}.cake").read_text(encoding="utf-8"))
    arch = parse(source).kernels[0].targets[0]
    with pytest.raises(CakeError) as raised:
        build(source, REGISTRY, arch)
    assert planted and {d.code for d in raised.value.diagnostics} <= {"reread/differs", "reread/missing", "reread/extra"}
    assert {d.role for d in raised.value.diagnostics} == roles


def test_nothing_else_finds_a_parity_that_is_computed_wrongly(monkeypatch):
    """Why the machine code is read back: without that the build goes through."""
    real = Builder.emit

    def emit(self, op, *operands, **more):
        if op.startswith("mbarrier.try_wait"):
            return _flipped(self, real, op, operands, more)
        return real(self, op, *operands, **more)

    monkeypatch.setattr(Builder, "emit", emit)
    source = Source("gemm_sm90.cake", (ZOO / "gemm_sm90.cake").read_text(encoding="utf-8"))
    assert build(source, REGISTRY, read_back=False).diagnostics == ()
    with pytest.raises(CakeError):
        build(source, REGISTRY)
