"""The launch contract: each way to break it is its own diagnostic, raised before anything reaches the driver."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cake_core.artifact import Check, ParamInfo
from cake_core.runtime import LaunchError, load


@pytest.fixture
def matmul(artifact, fakes, gpu, torch):
    return load(artifact(fakes.MATMUL))


@pytest.fixture
def scale(artifact, fakes, gpu):
    return load(artifact(fakes.SCALE))


def refused(gpu, call, code, *words):
    before = len(gpu.launches)
    with pytest.raises(LaunchError) as raised:
        call()
    d = raised.value.diagnostic
    assert d.code == f"runtime/{code}", d
    text = " ".join(x for x in (d.message, d.why, d.fix) if x)
    for word in words:
        assert word in text, (word, text)
    assert len(gpu.launches) == before
    return d


# --- names and numbers


def test_arguments_by_name(gpu, matmul, torch):
    a, b = torch.tensor(16, 64), torch.tensor(8, 64)
    refused(gpu, lambda: matmul(A=a), "missing-argument", "'B'")
    refused(gpu, lambda: matmul(A=a, B=None), "missing-argument", "'B'")
    refused(gpu, lambda: matmul(A=a, b=b), "unknown-argument", "did you mean 'B'")
    refused(gpu, lambda: matmul(A=a, B=b, verbose=1), "unknown-argument", "M, N, K, A, B, D")
    refused(gpu, lambda: matmul(a, b, A=a), "duplicate-argument", "'A'")
    refused(gpu, lambda: matmul(a, b, None, 1), "too-many-arguments", "A, B, D")


@pytest.mark.parametrize("value", ["x", None.__class__, [1], 1e39, pytest.param(object(), id="object")], ids=str)
def test_a_float_that_is_none(gpu, scale, fakes, value):
    refused(gpu, lambda: scale(fakes.Array((2, 8)), by=value), "scalar", "'by'", "f32")


@pytest.mark.parametrize("value", [2.0, "8", True, 2**31, -(2**31) - 1], ids=str)
def test_an_integer_that_is_none(gpu, scale, fakes, value):
    refused(gpu, lambda: scale(fakes.Array((2, 8)), by=1.0, R=value), "scalar", "'R'")


# --- arrays


def test_what_an_array_holds(gpu, matmul, torch, fakes):
    good = torch.tensor(8, 64)
    refused(gpu, lambda: matmul(torch.tensor(16, 64, dtype="torch.float16"), good), "element-type", "'A'", "f16", "bf16")
    refused(gpu, lambda: matmul(torch.tensor(2, 16, 64), good), "rank", "'A'", "3", "[M, K]")
    refused(gpu, lambda: matmul([1, 2], good), "not-an-array", "'A'", "list")


def test_sizes_that_disagree_name_both_sources(gpu, matmul, torch):
    a, b = torch.tensor(16, 64), torch.tensor(8, 72)
    refused(gpu, lambda: matmul(a, b), "size-conflict", "'K'", "64 by dimension 1 of 'A'", "72 by dimension 1 of 'B'")
    refused(gpu, lambda: matmul(a, torch.tensor(8, 64), M=17), "size-conflict", "17 by the argument 'M'", "16 by dimension 0 of 'A'")
    refused(gpu, lambda: matmul(a, torch.tensor(8, 64), torch.tensor(16, 9)), "size-conflict", "'N'", "'B'", "'D'")


def test_extents_that_are_formulas(gpu, artifact, fakes, torch):
    """An extent that is no bare name is checked against the sizes; a size that no array names must be given."""
    params = (fakes.size("n"), fakes.tensor("X", "in", ["*", 2, "n"]), fakes.tensor("Y", "out", ["ceildiv", "n", 4], 3))
    k = load(artifact(fakes.SCALE, params=params, entry_params=(), requires=(), launch=replace(fakes.SCALE.launch, items=1)))
    refused(gpu, lambda: k(X=torch.tensor(8)), "missing-argument", "'n'")
    refused(gpu, lambda: k(5, torch.tensor(8)), "shape", "'X'", "dimension 0", "2 * n", "10", "8")
    refused(gpu, lambda: k(4, torch.tensor(8), torch.tensor(2, 3)), "shape", "'Y'", "ceildiv(n, 4)")
    refused(gpu, lambda: k(-4, torch.tensor(8)), "shape", "-8")
    assert tuple(k(4, torch.tensor(8)).shape) == (1, 3)


def test_a_size_that_only_an_output_names(gpu, artifact, fakes, torch):
    k = load(artifact(fakes.SCALE, params=(fakes.size("n"), fakes.tensor("Y", "out", "n")), entry_params=(), requires=(), launch=replace(fakes.SCALE.launch, items=1)))
    refused(gpu, lambda: k(), "size-unknown", "'n'")
    assert tuple(k(n=5).shape) == (5,)


def test_a_formula_that_divides_by_zero(gpu, artifact, fakes, torch):
    k = load(artifact(fakes.MATMUL, requires=(Check(["==", ["%", "N", "K"], 0], "N % K == 0"),)))
    refused(gpu, lambda: k(torch.tensor(16, 0), torch.tensor(8, 0)), "division-by-zero", "N % K == 0")


def test_a_require_is_quoted_with_the_sizes(gpu, matmul, torch):
    d = refused(gpu, lambda: matmul(torch.tensor(16, 60), torch.tensor(8, 60)), "require", "N % 8 == 0, K % 8 == 0", "K = 60")
    assert d.message == "'matmul' requires N % 8 == 0, K % 8 == 0"
    refused(gpu, lambda: matmul(torch.tensor(0, 64), torch.tensor(8, 64)), "require", "1 <= M")


# --- strides


def test_padded_rows_are_taken_where_only_a_map_reads(gpu, matmul, torch):
    assert matmul(torch.tensor(16, 64, strides=(72, 1)), torch.tensor(8, 64)) is not None
    for strides, words in (
        ((65, 1), ("130 bytes", "16 bytes")),
        ((1, 16), ("last stride",)),
        ((64, 2), ("last stride",)),
        ((-64, 1), ("stride -64",)),
        ((0, 1), ("stride 0",)),
        ((32, 1), ("stride 32", "64")),
    ):
        refused(gpu, lambda: matmul(torch.tensor(16, 64, strides=strides), torch.tensor(8, 64)), "strides", "'A'", *words)


def test_packed_rows_are_needed_where_an_address_is_computed(gpu, artifact, scale, fakes, torch):
    refused(gpu, lambda: scale(fakes.Array((4, 8), strides=(64, 4)), by=1), "strides", "'X'", "contiguous")
    assert scale(fakes.Array((4, 8), strides=(32, 4)), by=1) is not None
    # the flag alone does not decide: the entry gets no strides for a pointer
    params = tuple(replace(p, contiguous=False) for p in fakes.SCALE.params)
    k = load(artifact(fakes.SCALE, params=params))
    refused(gpu, lambda: k(fakes.Array((4, 8), strides=(64, 4)), by=1), "strides", "contiguous")


@pytest.mark.parametrize("odd", [(0, 1), (12345, 1), (-3, 1)])
def test_strides_over_an_extent_of_one_say_nothing(gpu, matmul, torch, odd):
    assert matmul(torch.tensor(1, 64, strides=odd), torch.tensor(8, 64)) is not None
    a_map = next(args for name, args in gpu.calls if name == "cuTensorMapEncodeTiled")
    assert [int(n) for n in a_map[4]] == [128]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.integers(1, 300), k=st.integers(0, 40), pad=st.integers(0, 5), whole=st.booleans())
def test_the_rule_on_strides(matmul, torch, rows, k, pad, whole):
    """Any padding to whole 16 bytes is taken and reaches the map; any other is refused, where a second row exists."""
    k, pad = 8 * k, 8 * pad if whole else 8 * pad + 4
    a, b = torch.tensor(rows, k, strides=(k + pad, 1), pointer=0x1000), torch.tensor(8, k, pointer=0x5000000)
    call = lambda: matmul(a, b, torch.tensor(rows, 8, pointer=0x8000000))  # noqa: E731
    if whole or rows == 1 or k == 0:
        call()
    else:
        with pytest.raises(LaunchError):
            call()


# --- addresses


def test_alignment(gpu, matmul, scale, torch, fakes):
    refused(gpu, lambda: matmul(torch.tensor(16, 64, pointer=0x1008), torch.tensor(8, 64)), "alignment", "'A'", "0x1008", "16")
    refused(gpu, lambda: scale(fakes.Array((4, 8), pointer=0x1004), by=1), "alignment", "'X'")


def test_alignment_is_at_least_an_elements(gpu, artifact, fakes):
    k = load(artifact(fakes.SCALE, params=tuple(replace(p, align=1) for p in fakes.SCALE.params)))
    refused(gpu, lambda: k(fakes.Array((4, 8), pointer=0x1002), by=1), "alignment", "4")
    assert k(fakes.Array((4, 8), pointer=0x1004), by=1) is not None


def test_an_output_must_be_writable(gpu, scale, fakes):
    x = fakes.Array((4, 8), readonly=True)
    refused(gpu, lambda: scale(x, fakes.Array((4, 8), pointer=0x900000, readonly=True), 1.0), "read-only", "'Y'")
    assert scale(x, by=1.0) is not None


def test_arrays_on_two_devices(gpu, matmul, torch):
    refused(gpu, lambda: matmul(torch.tensor(16, 64), torch.tensor(8, 64, device=1)), "devices", "'A' is on device 0", "'B' on device 1")


def test_an_array_on_the_host(gpu, matmul, torch):
    refused(gpu, lambda: matmul(torch.tensor(16, 64), torch.tensor(8, 64, device=-1)), "not-on-gpu", "'B'")


def test_an_output_that_shares_memory(gpu, matmul, scale, torch, fakes):
    x = fakes.Array((4, 8), pointer=0x1000)
    refused(gpu, lambda: scale(x, x, 1.0), "overlap", "'Y'", "'X'")
    refused(gpu, lambda: scale(x, fakes.Array((4, 8), pointer=0x1000 + 4 * 32 - 16), 1.0), "overlap")
    assert scale(x, fakes.Array((4, 8), pointer=0x1000 + 4 * 32), 1.0) is not None
    same = torch.tensor(8, 64)
    assert matmul(same, same) is not None  # two inputs may be one array


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(m=st.integers(1, 5), k=st.integers(1, 3), n=st.integers(1, 3), pitch=st.integers(3, 9), at=st.integers(-60, 60), pitches=st.booleans())
def test_overlap_is_never_missed_and_column_blocks_pass(matmul, torch, m, k, n, pitch, at, pitches):
    """Against the set of bytes: A is [m, 8k] and D [m, 8n], both with padded rows (16-byte units), at any distance."""
    pitch_d = pitch if pitches else pitch + 1
    base = 1 << 24
    a = torch.tensor(m, 8 * k, strides=(8 * pitch, 1), pointer=base)
    d = torch.tensor(m, 8 * n, strides=(8 * pitch_d, 1), pointer=base + 16 * at)
    if k > pitch or n > pitch_d:
        return
    units = lambda rows, width, p, start: {start + r * p + c for r, c in itertools.product(range(rows), range(width))}  # noqa: E731
    overlap = bool(units(m, k, pitch, 0) & units(m, n, pitch_d, at))
    try:
        matmul(a, torch.tensor(8 * n, 8 * k, pointer=1 << 28), d)
        assert not overlap
    except LaunchError as error:
        assert error.diagnostic.code == "runtime/overlap"
        spans = (m - 1) * pitch + k, (m - 1) * pitch_d + n
        assert overlap or ((pitch != pitch_d or m == 1) and -spans[1] < at < spans[0]) or _wraps(at, pitch, k, n)


def _wraps(at, pitch, k, n):
    """Column blocks of one matrix pass only where the second lies whole behind the first in a row."""
    column = at % pitch
    return column < k or column + n > pitch


def test_no_finding_is_reported_for_arrays_without_memory(gpu, matmul, torch):
    """K = 0: A and B are empty, at any address, of any stride."""
    a, b = torch.tensor(16, 0, pointer=3, strides=(7, 5)), torch.tensor(8, 0, pointer=0)
    assert matmul(a, b) is not None


def test_none_is_left_out_and_wrong_kinds_of_parameter_are_not_scalars(gpu, scale, fakes):
    assert isinstance(fakes.SCALE.params[0], ParamInfo)
    assert scale(fakes.Array((4, 8)), None, 1.0, R=None) is not None
