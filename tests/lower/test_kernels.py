"""Whole kernels: the derived texts of the reference, gemm_sm90 and rmsnorm in derived form; what the assembler says is part of the test."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TEXTS = {
    **{
        f"reference {i}": text
        for i, text in enumerate(
            re.findall(r"```\n(cake 1 derived\n.*?)```", (HERE.parents[1] / "docs" / "derived-form.md").read_text(), re.S)
        )
    },
    **{name: (HERE / "texts" / f"{name}.cake").read_text() for name in ("gemm", "rmsnorm")},
}


@pytest.fixture(scope="module", params=TEXTS)
def kernel(request, lowered):
    return lowered(TEXTS[request.param])


def test_assembles_as_written(kernel, ptxas):
    """No spills, and none of the notes by which the assembler says that it did otherwise than the text (C75xx)."""
    report = ptxas(kernel.ptx)
    assert "0 bytes spill stores, 0 bytes spill loads" in report
    assert not re.search(r"C75\d\d", report)


def test_lines_have_sources(kernel):
    lines = kernel.ptx.splitlines()
    assert len(lines) == len(kernel.lines) == len(kernel.roles_of_lines)
    named = [span for line, span in zip(lines, kernel.lines, strict=True) if line.startswith("  ")]
    assert all(span is not None and span.line > 0 for span in named)


def main_loop(ptx: str) -> list[str]:
    """The innermost loop that holds matrix instructions."""
    lines = [line.strip() for line in ptx.splitlines()]
    first = next(i for i, line in enumerate(lines) if line.startswith("wgmma.mma_async"))
    start = next(i for i in range(first, 0, -1) if lines[i].startswith("$loop"))
    end = next(i for i in range(first, len(lines)) if lines[i].endswith(f"bra {lines[start][:-1]};"))
    return lines[start : end + 1]


def test_gemm(lowered, ptxas):
    """One instruction for each that the hand-written kernel has: four products of depth 16 a slot, one wait, two arrivals."""
    low = lowered(TEXTS["gemm"])
    report = ptxas(low.ptx)
    assert "Used 168 registers" in report  # 65,536 / 384 threads in steps of 8: the budget at entry
    assert "used 3 barriers" in report  # one a math instance, immediate ids, and the CTA's own
    count = lambda what, lines: sum(what in line for line in lines)  # noqa: E731
    loop = main_loop(low.ptx)
    expected = {
        "wgmma.mma_async": 4,
        "wgmma.fence": 1,
        "wgmma.commit_group": 1,
        "wgmma.wait_group": 1,
        "mbarrier.try_wait": 1,
        "mbarrier.arrive": 2,
        "mapa": 2,
        "bar.sync": 0,
        "ld.": 0,
        "st.": 0,
        "setp": 3 - 1,
    }
    found = {what: count(what, [line for line in loop if not line.startswith("//")]) for what in expected}
    assert found == expected
    all_lines = [line for line in low.ptx.splitlines() if not line.strip().startswith("//")]
    assert count("wgmma.mma_async", all_lines) == 2 * 4  # written once an instance, since barrier ids depend on it
    assert count("setmaxnreg", all_lines) == 2
    assert count("cp.async.bulk.tensor", all_lines) == 2 + 2 * 4
    assert [m.box for m in low.tensor_maps] == [(128, 64), (128, 64), (64, 64)]
    assert low.launch.shared_bytes == 229376 + 64 + 1024


def test_rmsnorm(lowered, ptxas):
    """Four accesses of 16 bytes a thread and row, each tensor once; one barrier a row."""
    low = lowered(TEXTS["rmsnorm"])
    lines = [line.strip() for line in low.ptx.splitlines()]
    count = lambda what: sum(what in line and not line.startswith("//") for line in lines)  # noqa: E731
    assert {w: count(w) for w in ("ld.global.nc.v4.b32", "st.global.v4.b32", "ld.shared", "st.shared", "bar.sync", "shfl")} == {
        "ld.global.nc.v4.b32": 8,
        "st.global.v4.b32": 4,
        "ld.shared": 2,
        "st.shared": 1,
        "bar.sync": 1,
        "shfl": 5,
    }
    assert int(ptxas(low.ptx).split("Used ")[1].split()[0]) <= 64  # four CTAs of 256 threads a multiprocessor


def test_fragments_are_zeroed_in_front_of_the_loop(lowered):
    """Not under a branch: there the assembler serialises the products (hence the zeroing at every item)."""
    low = lowered(TEXTS["gemm"])
    lines = [line.strip() for line in low.ptx.splitlines()]
    zero = next(i for i, line in enumerate(lines) if line.startswith("mov.f32") and line.endswith("0f00000000;"))
    before = lines[:zero]
    assert next(line for line in reversed(before) if line.endswith(":") or "bra" in line).startswith("$loop")
