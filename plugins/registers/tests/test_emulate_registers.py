"""setmaxnreg without a GPU: the pool of a CTA, who waits for whom, and what the ISA forbids."""

from __future__ import annotations

import numpy as np
import pytest
from cake_registers.emulate import entry_registers

from cake_core.emulate.arrays import on_arrays
from cake_core.emulate.outcome import Unsupported
from cake_core.plugins import load_registry


@pytest.fixture(scope="module")
def emulates():
    return load_registry().emulates


#: Three warpgroups: the first gives back, the others take.
ROLES = """.reg .pred %p<2>;
.reg .b32 %r<3>;
.reg .b64 %d0;
mov.u32 %r0, %tid.x;
setp.lt.u32 %p0, %r0, 128;
@%p0 bra $load;
setmaxnreg.inc.sync.aligned.u32 {inc};
bra $end;
$load:
{first}
$end:
ld.param.u64 %d0, [D];
setp.eq.u32 %p1, %r0, 0;
@%p1 st.global.b32 [%d0], 5;
"""
DEC = "setmaxnreg.dec.sync.aligned.u32 {};"


def kernel(body: str, directives: str = ".reqntid 384, 1, 1\n.minnctapersm 1") -> str:
    return f".visible .entry k(\n.param .u64 D\n)\n{directives}\n{{\n{body}\nret;\n}}\n"


def run(emulates, text: str, threads: int = 384, **more):
    return on_arrays(text, {"D": np.zeros(1, np.uint32)}, emulates, block=threads, **more)


@pytest.mark.parametrize("schedule", ["round-robin", "random:3", "adversarial"])
def test_roles_give_and_take(emulates, schedule):
    """168 a thread at the start: 128 x (168 - 40) are what 256 x (232 - 168) needs."""
    done = run(emulates, kernel(ROLES.format(first=DEC.format(40), inc=232)), schedule=schedule)
    assert done.findings == [] and done["D"][0] == 5


def test_more_than_was_given_back_is_waited_for_in_vain(emulates):
    done = run(emulates, kernel(ROLES.format(first=DEC.format(40), inc=240)))
    assert done.codes == ["emulate/deadlock"] and "registers" in str(done.findings[0])
    assert run(emulates, kernel(ROLES.format(first="", inc=232))).codes == ["emulate/deadlock"]


@pytest.mark.parametrize(("way", "number"), [("dec", 16), ("dec", 260), ("dec", 44), ("dec", 176), ("inc", 160)])
def test_numbers_that_the_isa_forbids(emulates, way, number):
    done = run(emulates, kernel(f"setmaxnreg.{way}.sync.aligned.u32 {number};"))
    assert done.codes == ["emulate/operand"]


def test_a_part_of_a_warpgroup(emulates):
    body = (
        ".reg .pred %p0;\n.reg .b32 %r0;\nmov.u32 %r0, %tid.x;\nsetp.ge.u32 %p0, %r0, 96;\n@%p0 bra $end;\nsetmaxnreg.dec.sync.aligned.u32 40;\n$end:"
    )
    done = run(emulates, kernel(body))
    assert done.codes == ["emulate/unfinished"] and "warp 3: 168" in done.findings[0].message


AGAIN = "setmaxnreg.dec.sync.aligned.u32 64;\n{between}\nsetmaxnreg.dec.sync.aligned.u32 40;"


def test_a_warpgroup_meets_between_two_of_them(emulates):
    assert run(emulates, kernel(AGAIN.format(between="bar.sync 0;"))).findings == []
    assert run(emulates, kernel(AGAIN.format(between="bar.sync 0;"), ".minnctapersm 1"), threads=96).findings == []
    done = run(emulates, kernel(AGAIN.format(between="")))
    assert done.codes == ["emulate/operand"] and "has not executed the one before" in done.findings[0].message


def test_without_a_number_of_ctas_it_has_no_effect(emulates):
    assert run(emulates, kernel(ROLES.format(first="", inc=232), ".reqntid 384, 1, 1")).findings == []


@pytest.mark.parametrize(
    ("directives", "threads", "registers"),
    [
        ((".minnctapersm 1",), 384, 168),
        ((".minnctapersm 2",), 384, 80),
        ((".minnctapersm 1",), 128, 248),
        ((".maxnreg 96",), 384, 96),
        ((".reqntid 384",), 384, None),
    ],
)
def test_registers_at_the_start(directives, threads, registers):
    assert entry_registers(directives, threads) == registers


def test_other_forms_are_refused(emulates):
    with pytest.raises(Unsupported):
        run(emulates, kernel(".reg .b32 %r0;\nsetmaxnreg.dec.sync.aligned.u32 %r0;"))
