"""Errors planted in the machine code of whole kernels, one for each thing that derivation and lowering decide: the emulator tells of each, by a
finding or by a wrong output. What the re-reader tells of the same kinds is in tests/reread/test_plants.py."""

import re
from pathlib import Path

import pytest

from cake_core.emulate.device import Api
from cake_core.emulate.turns import turns_of
from cake_core.pipeline import build
from cake_core.runtime import driver
from cake_core.runtime.execute import run_artifact
from cake_core.source import Source

GEMM = Path(__file__).resolve().parents[2] / "kernels" / "gemm"
#: Sizes at which rings of four slots and of two go round, with tails.
SHAPES = {
    "gemm_sm80": {"M": 130, "N": 72, "K": 264},
    "gemm_sm90": {"M": 260, "N": 136, "K": 328},
    "gemm_sm100": {"M": 600, "N": 136, "K": 328},
    "gemm_sm100_pair": {"M": 520, "N": 136, "K": 72},
}
DESCRIPTOR = "4611756662049538048"
ALL = slice(None)
#: Kernel; what stands there; what is written instead; which one of those, or all; how the emulator may tell of it: codes, or `output`.
PLANTS = {
    "count of arrivals": (
        "gemm_sm100",
        r"mbarrier.init.shared::cta.b64 \[(%r\d+)\], 4;",
        r"mbarrier.init.shared::cta.b64 [\1], 3;",
        0,
        "emulate/race",
    ),
    "too many arrivals": (
        "gemm_sm100",
        r"mbarrier.init.shared::cta.b64 \[(%r\d+)\], 4;",
        r"mbarrier.init.shared::cta.b64 [\1], 5;",
        0,
        "emulate/deadlock",
    ),
    "parity of the producer": ("gemm_sm100", r"add.s32 (%r43), (%r\d+), 1;", r"add.s32 \1, \2, 0;", 0, "emulate/deadlock"),
    "parity of a consumer": ("gemm_sm100", r"shr.s32 (%r101), (%r\d+), 2;", r"shr.s32 \1, \2, 1;", 0, "emulate/deadlock emulate/race"),
    "bytes": ("gemm_sm100", "49152;", "32768;", 0, "emulate/race emulate/deadlock emulate/barrier"),
    "slot of a copy": ("gemm_sm100", r"shl.b32 (%r\d+), (%r\d+), 14;", r"shl.b32 \1, \2, 13;", 0, "emulate/race emulate/uninitialised"),
    "row of a copy": ("gemm_sm100", r"shl.b32 (%r49), (%r\d+), 7;", r"shl.b32 \1, \2, 6;", 0, "output"),
    "column of a copy": ("gemm_sm100", r"shl.b32 (%r50), (%r\d+), 6;", r"shl.b32 \1, \2, 5;", 0, "output"),
    "barrier of a commit": ("gemm_sm100", r"add.s32 (%r116), (%r\d+), 229416;", r"add.s32 \1, \2, 229384;", 0, "emulate/barrier emulate/deadlock"),
    "swizzle of a descriptor": ("gemm_sm100", DESCRIPTOR, str(int(DESCRIPTOR) ^ 6 << 61), 0, "output"),
    "stride of a descriptor": ("gemm_sm100", DESCRIPTOR, str(int(DESCRIPTOR) ^ 64 << 32), 0, "output emulate/uninitialised emulate/out-of-bounds"),
    "step of a descriptor": ("gemm_sm100", r"add.s64 (%d6), (%d\d+), 2;", r"add.s64 \1, \2, 4;", 0, "output"),
    "columns of a product": ("gemm_sm100", " 138413200,", f" {138413200 ^ 0x10 << 17},", 0, "output emulate/uninitialised emulate/operand"),
    "a sum that starts with what was there": (
        "gemm_sm100",
        r"not.pred (%p20), %p19;",
        r"or.pred \1, %p19, !%p19;",
        0,
        "output emulate/uninitialised",
    ),
    "slot of tensor memory": ("gemm_sm100", r"shl.b32 (%r104), (%r\d+), 8;", r"shl.b32 \1, \2, 7;", 0, "emulate/race output"),
    "the fences behind waits": ("gemm_sm100", r"  tcgen05.fence::after_thread_sync;\n", "", ALL, "emulate/missing-fence"),
    "the fences in front of arrivals": ("gemm_sm100", r"  tcgen05.fence::before_thread_sync;\n", "", ALL, "emulate/missing-fence"),
    "a proxy fence": ("gemm_sm100", r"  fence.proxy.async.shared::cta;\n", "", 0, "emulate/missing-fence"),
    "the wait for the last loads of a slot": ("gemm_sm100", r"  tcgen05.wait::ld.sync.aligned;\n", "", -1, "emulate/race"),
    "a wait of one lane alone": (
        "gemm_sm100",
        r"(\$wait_4:\n.*;\n.* bra \$wait_4;\n)",
        r"  .reg .pred %lone;\n  .reg .b32 %lane;\n  mov.u32 %lane, %laneid;\n  setp.ne.u32 %lone, %lane, 0;\n  @%lone bra $past;\n\1$past:\n",
        0,
        "emulate/race",
    ),
    "a meeting": ("gemm_sm100", r"  bar.sync 1, 128;\n", "", 0, "emulate/race"),
    "a swizzled place": ("gemm_sm100", r"xor.b32 (%r\d+), 48, ", r"xor.b32 \1, 64, ", 0, "output emulate/race emulate/uninitialised"),
    "groups in flight": ("gemm_sm100", r"wait_group.read 1;", "wait_group.read 2;", 0, "emulate/race"),
    "groups at the end": ("gemm_sm100", r"  cp.async.bulk.wait_group.read 0;\n", "", 0, "emulate/unfinished"),
    "columns at the end": ("gemm_sm100", r"  tcgen05.dealloc\S+ \S+ 512;\n", "", 0, "emulate/unfinished"),
    "half of a pair": (
        "gemm_sm100_pair",
        r"shl.b32 (%r\d+), (%r\d+), 14;",
        r"shl.b32 \1, \2, 15;",
        0,
        "emulate/race emulate/uninitialised emulate/out-of-bounds output",
    ),
    "mask of a multicast": ("gemm_sm90", r"mov.b16 (%h\d+), 3;", r"mov.b16 \1, 1;", 0, "emulate/deadlock emulate/uninitialised emulate/race"),
    "rank of an arrival": ("gemm_sm90", r"(mapa\S+ %r\d+, %r\d+), 1;", r"\1, 0;", 0, "emulate/barrier emulate/deadlock"),
    "an arrival in another CTA that tells of nothing": (
        "gemm_sm90",
        r"mbarrier.arrive.shared::cluster.b64",
        "mbarrier.arrive.relaxed.cluster.shared::cluster.b64",
        ALL,
        "emulate/race",
    ),
    "products in flight": ("gemm_sm90", r"wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;", 0, "emulate/race"),
    "products at the end": ("gemm_sm90", r"wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;", 0, "emulate/race"),
    "registers of a role": ("gemm_sm90", r"u32 232;", "u32 256;", 0, "emulate/operand emulate/deadlock"),
    "copies in flight": ("gemm_sm80", r"cp.async.wait_group 1;", "cp.async.wait_group 2;", 0, "emulate/race emulate/uninitialised"),
    "a meeting in front of a read": ("gemm_sm80", r"  bar.sync 1, 256;\n", "", 0, "emulate/race emulate/uninitialised"),
    "place of a matrix": ("gemm_sm80", r"(ldmatrix\S+ \{[^}]+\}, \[%r\d+)\+4096\]", r"\1+4112]", 0, "output emulate/race"),
}


@pytest.fixture(scope="module")
def built(offered):
    made = {}

    def get(name: str):
        if name not in made:
            path = GEMM / f"{name}.cake"
            made[name] = build(Source(path.name, path.read_text()), offered, name.split("_")[1], read_back=False)
        return made[name]

    return get


def told(made, ptx: str, name: str, offered, folder: Path) -> set[str]:
    for file, data in (dict(made.files) | {"kernel.ptx": ptx.encode()}).items():
        (folder / file).write_bytes(data)
    manifest = folder / "manifest.json"
    manifest.write_text(re.sub(r'"kernel.ptx": "[0-9a-f]+",?\n', "", manifest.read_text()))
    grids: list = []
    api = Api(
        offered.emulates,
        made.arch.compute_capability,
        lambda g: grids.extend(g.findings),
        lambda: turns_of("adversarial"),
        multiprocessors=1,
        most=1_000_000,
    )
    with driver.use(api):
        report = run_artifact(folder, GEMM / f"{name}.py", [SHAPES[name]], 0, text=True)
    return {f.code for f in grids} | ({"output"} if not all(o.ok for r in report.results for o in r.outputs) else set())


@pytest.mark.parametrize("plant", list(PLANTS))
def test_it_is_told(plant, built, offered, tmp_path):
    name, pattern, by, which, expected = PLANTS[plant]
    ptx = built(name).files["kernel.ptx"].decode()
    found = list(re.finditer(pattern, ptx, re.MULTILINE))
    changed = ptx
    for match in reversed(found if which == ALL else [found[which]]):
        changed = changed[: match.start()] + match.expand(by) + changed[match.end() :]
    assert changed != ptx
    assert told(built(name), changed, name, offered, tmp_path) & set(expected.split())


@pytest.mark.parametrize("name", list(SHAPES))
def test_nothing_is_told_of_what_was_built(name, built, offered, tmp_path):
    assert told(built(name), built(name).files["kernel.ptx"].decode(), name, offered, tmp_path) == set()
