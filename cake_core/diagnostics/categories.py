"""The seven categories of findings: which kind of contract is broken, whoever found it.

The first four are about a text and end a build, numbers are compared where a kernel runs, the last two are reports and hints. A rule states
its own (`category`, or by its kind); the compiler's codes have one by namespace, with exceptions. What concerns the tool, its
plugins and packs or the machine it runs on is of none.
"""

from __future__ import annotations

from enum import StrEnum


class Category(StrEnum):
    PROGRAM_SAFETY = "program-safety"  # hazards of synchronisation, order and use of memory
    HARDWARE_CONFORMANCE = "hardware-conformance"  # contracts of resources, instructions and architectures
    DATA_CONSISTENCY = "data-consistency"  # what is handed on and how it is represented, at both ends
    SCHEDULE_SEMANTICS = "schedule-semantics"  # the structure of declarations and schedules
    NUMERICAL_VALIDATION = "numerical-validation"  # against a reference
    PERFORMANCE_ANALYSIS = "performance-analysis"  # what it costs
    OPTIMIZATION_GUIDANCE = "optimization-guidance"  # what might be better


NAMESPACES = {
    "syntax": Category.SCHEDULE_SEMANTICS,
    "type": Category.SCHEDULE_SEMANTICS,
    "derive": Category.SCHEDULE_SEMANTICS,
    "assemble": Category.HARDWARE_CONFORMANCE,
    "ptx": Category.HARDWARE_CONFORMANCE,
    "core": Category.PROGRAM_SAFETY,
    "emulate": Category.PROGRAM_SAFETY,
    "reread": Category.PROGRAM_SAFETY,
    "perf": Category.PERFORMANCE_ANALYSIS,
}

#: The compiler's own namespaces: those of the tables in codes/.
OWN = ("syntax", "type", "derive", "reread", "assemble", "runtime", "plugin", "rules", "config", "review", "core", "emulate")

#: Codes of another category than their namespace.
CODES = {
    Category.PROGRAM_SAFETY: "rules/undecided rules/not-analysed runtime/violated runtime/device-fault type/pending-groups derive/held-too-many",
    Category.HARDWARE_CONFORMANCE: (
        "type/missing-capability type/role-size type/too-large core/fragment-registers derive/tensor-capacity derive/barrier-ids"
        " runtime/device-mismatch runtime/does-not-fit runtime/grid runtime/shared-memory"
    ),
    Category.DATA_CONSISTENCY: (
        "type/element type/shape type/layout type/dimension type/mixed type/operand type/operands type/partial type/pattern type/product"
        " type/slice-size type/transposed type/read-only type/read-outside type/write-only type/wrong-side type/unknown-type type/clip"
        " core/one-place core/undistributed core/whole-value"
        " derive/fragment-fill derive/fragment-granule derive/fragment-index derive/fragment-type derive/layout-does-not-fit derive/layout-mismatch"
        " derive/no-layout derive/ptx-type derive/scalar-type derive/received-differs derive/swizzle derive/swizzle-alignment derive/swizzle-offset"
        " derive/row-over-warps derive/slice-of-value derive/tensor-shape derive/uneven-sends"
        " runtime/alignment runtime/assume runtime/element-type runtime/overlap runtime/plan runtime/rank runtime/read-only runtime/require"
        " runtime/scalar runtime/shape runtime/size-conflict runtime/size-unknown runtime/strides runtime/workspace runtime/division-by-zero"
    ),
    Category.PERFORMANCE_ANALYSIS: "assemble/spill",
}
_BY_CODE = {code: category for category, codes in CODES.items() for code in codes.split()}

#: Codes of the tool that lie in a namespace of the text.
OF_THE_TOOL = frozenset(["emulate/unsupported", "assemble/no-assembler", "assemble/ptxas-error", "assemble/ptxas-failed", "assemble/timeout"])


def category_of(code: str) -> Category | None:
    """The category of a code of the compiler; None of what concerns the tool, and of a stranger's namespace."""
    if code in OF_THE_TOOL:
        return None
    return _BY_CODE.get(code) or NAMESPACES.get(code.partition("/")[0])
