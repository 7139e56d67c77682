"""Tables of what a kernel's plan says: roles, maps of memory, pipelines."""

from __future__ import annotations

from cake_core.cli.output import table


def print_plan(arch, plan, roles, shared_map, pipelines) -> None:
    """`roles`, `shared_map`, `pipelines`: records as a manifest has them."""
    rows = [(r["name"], _warps(r), r["instances"], r["warps"], r["pad_warps"] or None, r["words"].get("regs")) for r in roles]
    table("Roles", ("role", "warps of the CTA", "instances", "warps each", "pads", "regs"), rows)
    if shared_map:
        table("Shared memory", ("name", "offset", "bytes", "holds", "swizzle"), [_shared_row(x) for x in shared_map], _free(arch, plan))
    if plan.tensors:
        used = sum(t.columns for t in plan.tensors.values() if t.alias is None)
        note = f"{used} of {arch.limit('tensor_columns')} columns, taken as the least power of two that holds them"
        table("Tensor memory", ("name", "column", "columns", "holds"), [_tensor_row(t) for t in plan.tensors.values()], note)
    if pipelines:
        table("Pipelines", ("pipeline", "slots", "buffers", "from", "to", "barriers"), [_pipeline_row(p) for p in pipelines])


def _warps(role: dict) -> str:
    first, last = role["first_warp"], role["first_warp"] + role["instances"] * role["warps"] - 1
    return str(first) if first == last else f"{first}-{last}"


def _shared_row(x: dict) -> tuple:
    slots = "".join(f"[{s}]" for s in x["slots"])
    if x["kind"] == "buffer":
        where = f", in the bytes of {x['alias']}" if x["alias"] else ""
        return x["name"], x["offset"], x["bytes"], f"{x['elem']}{slots}[{', '.join(map(str, x['shape']))}]{where}", x["swizzle"] or None
    return x["name"], x["offset"], x["bytes"], f"{x['kind']}{slots}, {x['count']} arrival{'s' if x['count'] != 1 else ''} a phase", None


def _tensor_row(t) -> tuple:
    slots = "".join(f"[{s}]" for s in t.slots)
    where = f", in the columns of {t.alias}" if t.alias else ""
    return t.name, t.column, t.columns, f"{t.elem}{slots}[{', '.join(map(str, t.shape))}]{where}"


def _free(arch, plan) -> str:
    limit = arch.limit("shared_bytes_per_block")
    slack = plan.shared_bytes - plan.planned_bytes
    return f"{plan.planned_bytes} bytes planned, {slack} to align the base, {limit - plan.shared_bytes} of {limit} free"


def _pipeline_row(p: dict) -> tuple:
    barriers = ", ".join(f"{b['name']}[{b['slots']}] of {b['count']}" for b in p["barriers"])
    return p["name"], p["slots"], ", ".join(p["buffers"]), ", ".join(p["producers"]), ", ".join(p["consumers"]), barriers
