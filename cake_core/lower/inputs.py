"""What the entry takes: tensor maps, then pointers, then scalars; only what the body asked for, scalars always.

Tensor maps come first, in the order of the tensors in the text, several maps of one tensor in the order of their first
use. Then one pointer a tensor that is accessed by address. Then every scalar parameter. Names carry a prefix (`map_A`, `ptr_X`,
`arg_M`), so that none is a reserved word of PTX.
"""

from __future__ import annotations

from dataclasses import field

from cake_core.artifact import EntryParamInfo, ParamInfo, TensorMapInfo
from cake_core.diagnostics import fail
from cake_core.frozen import thawed
from cake_core.ir.formula import formula
from cake_core.ir.nodes import Kernel, Param
from cake_core.ptx.builder import Addr, Builder, Operand, Reg, Sym
from cake_core.ptx.module import EntryParam

#: Scalar element type to (type of the parameter, type of the load, register class). A predicate is loaded as a byte.
SCALARS = {
    "i32": ("b32", "b32", "b32"),
    "u32": ("b32", "b32", "b32"),
    "f32": ("f32", "f32", "f32"),
    "f16": ("b16", "b16", "b16"),
    "bf16": ("b16", "b16", "b16"),
    "bool": ("b8", "u8", "b32"),
}

#: What a host's tensor address must be a multiple of, in bytes: the contract that alignments are derived from
#: (also what a tensor map's base address needs: CUDA driver API, cuTensorMapEncodeTiled).
TENSOR_ALIGN = 16


@thawed
class Inputs:
    """Hands out registers for parameters while the body is written, and the entry's parameter list when it is done."""

    kernel: Kernel
    b: Builder  # of the prologue, whose registers dominate the whole body
    maps: dict[tuple[str, tuple[int, ...], int], Reg] = field(default_factory=dict)
    pointers: dict[str, Reg] = field(default_factory=dict)
    loaded: dict[str, Operand] = field(default_factory=dict)  # scalars by name
    unknown_zero: Reg | None = None

    @property
    def tensors(self) -> dict[str, Param]:
        return {p.name: p for p in self.kernel.params if p.mode is not None}

    @property
    def scalars(self) -> tuple[Param, ...]:
        return tuple(p for p in self.kernel.params if p.mode is None)

    def tensor(self, name: str, span=None) -> Param:
        """The tensor parameter `name`. Raises CakeError where there is none."""
        if name not in self.tensors:
            raise fail("derive/not-a-tensor", f"'{name}' is no tensor parameter", span)
        return self.tensors[name]

    def load_scalars(self) -> None:
        """Emit the loads of all scalars into `loaded`."""
        for p in self.scalars:
            kinds = SCALARS.get(p.declared.name)
            if kinds is None or p.declared.groups:
                raise fail(
                    "derive/scalar-type",
                    f"'{p.name}' has the type '{p.declared.name}', which no scalar parameter can have",
                    p.span,
                    fix=f"use one of {', '.join(SCALARS)}",
                )
            _, load, kind = kinds
            with self.b.at(p.span):
                register = self.b.reg(kind)
                self.b.emit(f"ld.param.{load}", register, Addr(Sym(f"arg_{p.name}")))
                self.loaded[p.name] = self.b.op("setp.ne.s32", register, 0) if p.declared.name == "bool" else register

    def tensor_map(self, tensor: str, box: tuple[int, ...], swizzle: int) -> Reg:
        """The register that holds the address of this map; one map for each (tensor, box, swizzle)."""
        self.tensor(tensor)
        key = (tensor, box, swizzle)
        if key not in self.maps:
            self.maps[key] = self.b.reg("b64")
        return self.maps[key]

    def pointer(self, tensor: str) -> Reg:
        self.tensor(tensor)
        if tensor not in self.pointers:
            self.pointers[tensor] = self.b.reg("b64")
        return self.pointers[tensor]

    def zero(self) -> Reg:
        """See `LowerContext.zero`. Grids have one dimension, which the assembler is not told."""
        if self.unknown_zero is None:
            self.unknown_zero = self.b.op("mov.u32", Sym("%ctaid.y"))
        return self.unknown_zero

    # --- when the body is done

    def finish(self) -> tuple[list[EntryParam], tuple[EntryParamInfo, ...], tuple[TensorMapInfo, ...]]:
        """Emit the address of every map and pointer; the entry's parameters, and what the manifest says of them."""
        params: list[EntryParam] = []
        infos: list[EntryParamInfo] = []
        maps: list[TensorMapInfo] = []
        for tensor, param in self.tensors.items():
            asked = [key for key in self.maps if key[0] == tensor]
            for i, key in enumerate(asked):
                name = f"map_{tensor}" if len(asked) == 1 else f"map_{tensor}${i}"  # `$` can't stand in a name of the text
                self._address_of_map(self.maps[key], name, param)
                params.append(EntryParam(name, f".align 64 .b8 {name}[128]", param.span))
                infos.append(EntryParamInfo("map", len(maps)))
                maps.append(TensorMapInfo(name, tensor, param.declared.name, key[1], key[2]))
        for tensor, param in self.tensors.items():
            if tensor in self.pointers:
                name = f"ptr_{tensor}"
                with self.b.at(param.span):
                    generic = self.b.reg("b64")
                    self.b.emit("ld.param.b64", generic, Addr(Sym(name)))
                    self.b.emit("cvta.to.global.u64", self.pointers[tensor], generic)
                params.append(EntryParam(name, f".b64 {name}", param.span))
                infos.append(EntryParamInfo("pointer", tensor, param.declared.name))
        for param in self.scalars:
            params.append(EntryParam(f"arg_{param.name}", f".{SCALARS[param.declared.name][0]} arg_{param.name}", param.span))
            infos.append(EntryParamInfo("scalar", param.name, param.declared.name))
        return params, tuple(infos), tuple(maps)

    def _address_of_map(self, register: Reg, name: str, param: Param) -> None:
        # PTX ISA, "Tensor-map": a map in .param space is named by its generic address, which cvta.param gives.
        with self.b.at(param.span):
            self.b.emit("mov.b64", register, Sym(name))
            self.b.emit("cvta.param.u64", register, register)

    def param_infos(self) -> tuple[ParamInfo, ...]:
        """The kernel's parameters as the host sees them. A tensor that is accessed by address must be packed: its address
        arithmetic counts in extents; one that only maps reach may have padded rows."""
        names = frozenset(p.name for p in self.scalars)
        infos = []
        for p in self.kernel.params:
            if p.mode is None:
                infos.append(ParamInfo(p.name, "scalar", p.declared.name))
                continue
            shape = tuple(formula(d, {}, names) for g in p.declared.groups for d in g)
            infos.append(ParamInfo(p.name, "tensor", p.declared.name, p.mode, shape, p.name in self.pointers, TENSOR_ALIGN))
        return tuple(infos)
