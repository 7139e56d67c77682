"""The assembler: where it is found, what its words become. Reports are recorded from ptxas 13.5.37; the real one runs where it is installed."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cake_core import assemble as room
from cake_core.assemble import Usage, assemble, find_assembler, parse_report, probe, wheel_ptxas
from cake_core.diagnostics import CakeError, Severity
from cake_core.source import NOWHERE, Span

VERSION = "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 13.5, V13.5.37\nBuild cuda_13.5.r13.5/compiler.1_0\n"


def span(line: int, column: int = 1) -> Span:
    return Span("k.cake", line, column, line, column + 4)


def fake(folder: Path, body: str, name: str = "ptxas") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    version = "".join(f"  echo '{line}'\n" for line in VERSION.splitlines())
    path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then\n{version}  exit 0\nfi\n{body}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def no_wheel(monkeypatch):
    monkeypatch.setattr(room, "wheel_ptxas", lambda: None)


def raised(error) -> tuple:
    return error.value.diagnostics


# --- where it is found


def test_the_order_is_path_variable_wheel_path(tmp_path, monkeypatch):
    one, two, three, four = (fake(tmp_path / n, "exit 1") for n in ("given", "variable", "wheel", "on_path"))
    monkeypatch.setattr(room, "wheel_ptxas", lambda: three)
    environ = {"CAKE_PTXAS": str(two), "PATH": str(four.parent)}
    assert (find_assembler(one, environ).path, find_assembler(one, environ).found) == (one, "path")
    assert (find_assembler(None, environ).path, find_assembler(None, environ).found) == (two, "CAKE_PTXAS")
    del environ["CAKE_PTXAS"]
    assert find_assembler(None, environ).path == three
    monkeypatch.setattr(room, "wheel_ptxas", lambda: None)
    found = find_assembler(None, environ)
    assert (found.path, found.found, found.version) == (four, "PATH", "13.5.37")


@pytest.mark.parametrize("how", ["path", "variable"])
def test_one_that_was_asked_for_is_not_replaced(tmp_path, how):
    good = fake(tmp_path / "good", "exit 0")
    bad = tmp_path / "missing"
    environ = {"PATH": str(good.parent)} | ({"CAKE_PTXAS": str(bad)} if how == "variable" else {})
    with pytest.raises(CakeError) as error:
        find_assembler(bad if how == "path" else None, environ)
    (d,) = raised(error)
    assert d.code == "assemble/no-assembler" and str(bad) in d.message


def test_none_at_all_names_the_extra(no_wheel):
    with pytest.raises(CakeError) as error:
        find_assembler(None, {"PATH": ""})
    (d,) = raised(error)
    assert (d.code, d.severity) == ("assemble/no-assembler", Severity.ERROR)
    assert "cake-compiler[assembler]" in d.fix and "PATH" in d.why


@pytest.mark.parametrize("text", ["", "#!/bin/sh\nexit 1\n", "#!/bin/sh\necho gcc 13.1\n", "no program"])
def test_a_program_that_is_no_ptxas_is_none(tmp_path, text):
    path = tmp_path / "ptxas"
    path.write_text(text)
    path.chmod(0o755)
    assert probe(path) is None
    assert probe(tmp_path) is None
    assert probe(tmp_path / "nothing") is None


# --- its words


def test_errors_stand_at_the_statement_and_name_the_role():
    report = """\
ptxas kernel.ptx, line 2; error   : Arguments mismatch for instruction 'bar'
ptxas kernel.ptx, line 3; error   : Unknown symbol '%q9'
ptxas kernel.ptx, line 40; fatal   : Parsing error near '': syntax error
ptxas fatal   : Ptx assembly aborted due to errors
"""
    roles = [("load", Span("k.cake", 2, 3, 5, 4)), ("math", Span("k.cake", 7, 3, 12, 4))]
    found = parse_report(report, [None, span(9, 7), span(3)], roles).diagnostics
    assert [(d.code, d.severity, d.span, d.role, d.stage) for d in found] == [
        ("assemble/ptxas-error", Severity.ERROR, span(9, 7), "math", "line 2 of the PTX"),
        ("assemble/ptxas-error", Severity.ERROR, span(3), "load", "line 3 of the PTX"),
        ("assemble/ptxas-error", Severity.ERROR, None, None, "line 40 of the PTX"),
    ]
    assert "Arguments mismatch for instruction 'bar'" in found[0].message


@pytest.mark.parametrize("words", ["PTX with .target 'a' cannot be compiled for architecture 'b'", "Value 'x' is not defined for option 'gpu-name'"])
def test_a_fatal_word_without_a_line_is_an_error(words):
    (d,) = parse_report(f"ptxas fatal   : {words}\n").diagnostics
    assert (d.code, d.span) == ("assemble/ptxas-error", None) and words in d.message


ADVISORY = "ptxas info    : ({}) Potential Performance Loss: instructions are serialized due to a wait in the function 'k' in line 3\n"


@pytest.mark.parametrize("code", ["C7504", "C7508", "C7510", "C7515", "C7519", "C7599"])
def test_an_advisory_that_changes_the_program_is_an_error(code):
    (d,) = parse_report(ADVISORY.format(code), [None, None, span(8)]).diagnostics
    assert (d.code, d.severity, d.span) == ("assemble/not-as-written", Severity.ERROR, span(8))
    assert d.message == f"ptxas {code}: instructions are serialized due to a wait"


@pytest.mark.parametrize("line", ["ptxas info    : (C7600) something else.\n", "ptxas warning : (C7600) something else\n"])
def test_another_advisory_is_a_warning(line):
    (d,) = parse_report(line).diagnostics
    assert (d.code, d.severity, d.message) == ("assemble/advisory", Severity.WARNING, "ptxas C7600: something else")


def test_a_warning_is_a_warning_and_plain_information_is_nothing():
    report = "ptxas info    : 0 bytes gmem\nptxas warning : Too big maxrregcount value specified 300, will be ignored\nptxas info    : Compile time = 3.1 ms\n"
    (d,) = parse_report(report).diagnostics
    assert (d.code, d.severity) == ("assemble/ptxas-warning", Severity.WARNING)


def test_usage_is_read_a_function_and_a_spill_is_a_finding():
    report = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 't'
ptxas info    : Function properties for k
    880 bytes stack frame, 876 bytes spill stores, 872 bytes spill loads
ptxas info    : Used 32 registers, used 8 barriers, 880 bytes cumulative stack size, 512 bytes smem
ptxas info    : Function properties for $other
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
"""
    r = parse_report(report)
    assert r.usage == {"k": Usage(32, 8, 880, 876, 872, 512), "$other": Usage()}
    (d,) = r.diagnostics
    assert (d.code, d.severity, d.resource) == ("assemble/spill", Severity.WARNING, "registers")
    assert "876 bytes stored and 872 bytes loaded" in d.message


def test_a_span_of_no_text_names_no_role():
    report = "ptxas kernel.ptx, line 1; error   : bad\n"
    (d,) = parse_report(report, [NOWHERE], [("r", Span("k.cake", 1, 1, 9, 1))]).diagnostics
    assert d.role is None


# --- a run


def test_a_binary_comes_back_with_what_it_uses(tmp_path):
    body = """echo "ptxas info    : Compiling entry function 'k' for 't'" >&2
echo "ptxas info    : Used 40 registers, used 1 barriers" >&2
cat kernel.ptx > kernel.cubin"""
    done = assemble("the text", "t", "k", assembler=find_assembler(fake(tmp_path, body), {}))
    assert done.cubin == b"the text" and done.usage == Usage(40, 1) and done.diagnostics == ()


def test_an_error_is_raised_with_the_warnings_beside_it(tmp_path):
    body = "echo 'ptxas warning : w'; echo 'ptxas kernel.ptx, line 1; error   : e'; exit 255"
    with pytest.raises(CakeError) as error:
        assemble("x", "t", "k", lines=[span(5)], assembler=find_assembler(fake(tmp_path, body), {}))
    assert {(d.code, d.span) for d in raised(error)} == {("assemble/ptxas-warning", None), ("assemble/ptxas-error", span(5))}


@pytest.mark.parametrize("body, how", [("exit 7", "exit status 7"), ("kill -9 $$", "signal 9"), ("exit 0", "exit status 0")])
def test_an_end_without_a_binary_is_reported(tmp_path, body, how):
    with pytest.raises(CakeError) as error:
        assemble("x", "t", "k", assembler=find_assembler(fake(tmp_path, body), {}))
    (d,) = raised(error)
    assert d.code == "assemble/ptxas-failed" and how in d.message


def test_it_may_not_run_for_ever(tmp_path):
    with pytest.raises(CakeError) as error:
        assemble("x", "t", "k", assembler=find_assembler(fake(tmp_path, "exec sleep 20"), {}), timeout=0.3)
    assert raised(error)[0].code == "assemble/timeout"


# --- the real one

real = pytest.mark.skipif(wheel_ptxas() is None, reason="the assembler's wheel is not installed")
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .b64 p)\n"


@real
def test_the_real_one_assembles_and_twice_the_same():
    text = HEAD + "{\n  ret;\n}\n"
    one, two = (assemble(text, "sm_80", "k") for _ in range(2))
    assert one.cubin.startswith(b"\x7fELF") and one.cubin == two.cubin
    assert one.usage.registers > 0 and one.diagnostics == ()


@real
@pytest.mark.parametrize(
    "body, line, words",
    [("add.s32 %q, 1, 2;", 6, "%q"), ("nonsense.b32 %r0;", 6, "nonsense"), ("bar.sync 77;", 6, ""), ("ret", 7, "syntax")],
)
def test_the_real_ones_errors_are_understood(body, line, words):
    text = HEAD + "{\n  " + body + "\n}\n"
    lines = [span(i + 1) for i in range(7)]
    with pytest.raises(CakeError) as error:
        assemble(text, "sm_80", "k", lines=lines)
    assert all(d.code == "assemble/ptxas-error" for d in raised(error))
    assert any(d.span == span(line) and words in d.message for d in raised(error))


@real
def test_the_real_ones_spills_are_understood():
    n = 64
    moves = [f"ld.volatile.global.f32 %f{i}, [%d0+{4 * i}];" for i in range(n)] + ["bar.sync 0;"]
    moves += [f"st.volatile.global.f32 [%d0+{4 * (n - 1 - i)}], %f{i};" for i in range(n)]
    body = f".maxnreg 24\n{{\n.reg .f32 %f<{n}>; .reg .b64 %d<2>; ld.param.b64 %d0, [p];\n" + "\n".join(moves) + "\nret;\n}\n"
    done = assemble(HEAD + body, "sm_80", "k")
    assert done.usage.spill_stores > 0 and [d.code for d in done.diagnostics] == ["assemble/spill"]
