"""A loaded kernel as a callable."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cake_core.runtime import views as arrays
from cake_core.runtime.binding import Binding, Signature, bind_shapes, check_pointers, name_arguments, read_signature, scalar, solve_sizes
from cake_core.runtime.contracts import Contracts
from cake_core.runtime.device_array import DeviceArray
from cake_core.runtime.driver import Driver, driver
from cake_core.runtime.elements import ELEMENTS
from cake_core.runtime.errors import LaunchError
from cake_core.runtime.formula import formula_text
from cake_core.runtime.host_inputs import device_of, read, shape_of
from cake_core.runtime.launch import (
    ArgumentBlock,
    Loaded,
    configuration,
    grid_blocks,
    image_for,
    load_function,
    load_library,
    relaunch,
)
from cake_core.runtime.loader import LoadedArtifact, read_artifact
from cake_core.runtime.lru import Lru
from cake_core.runtime.maps import TensorMaps
from cake_core.runtime.plan import Plan, check_plan, inputs_of, make_items, scalars_of
from cake_core.runtime.views import View
from cake_core.runtime.workspace import Workspaces, stream_key

BINDINGS, LAUNCHES = 256, 256  # shapes, and argument sets, that a kernel remembers
PLANS = 16  # tables of items that a kernel remembers, by the values that they were made from
CONFIGURATIONS = 64  # streams that a prepared launch remembers
IDENTITY = 6  # leading fields of a View that a launch depends on: pointer, shape, strides, elem, device, readonly


class Kernel:
    """A kernel of an artifact, for calls on GPU arrays.

        d = k(A=a, B=b)               # sizes from shapes; D is allocated and returned
        k(a, b, d, stream=s)          # positional: the parameters in order, sizes left out

    Arrays: torch, cupy, anything with `__cuda_array_interface__` or `__dlpack__`. Sizes that shapes name may be left out
    or given (they must agree). An `out` array left out is allocated: by torch or cupy if the first array is theirs (and
    cupy has the type), else as a DeviceArray. Returns the array written, or a tuple of several in the order of the text.

    Where the schedule takes a table of items (`plan`), a call makes it from its inputs, for which it reads them back and waits
    for the stream; `plan=k.plan(..)` saves that.

    Launches on `stream` (a stream object or handle); None is torch's or cupy's current stream if their arrays are given,
    else the legacy default stream. Nothing waits for the GPU. With outputs given, a call after the first on a device
    allocates no device memory and may be captured into a graph.

    Raises LaunchError before anything is launched where an argument breaks the contract, DriverError where the driver
    refuses. May be called from several threads.

    A kernel with workspaces has one set a stream, made by the first call on it; that call can't be captured.
    """

    def __init__(self, artifact: LoadedArtifact):
        self.artifact = artifact
        self.manifest = artifact.manifest
        self._signature: Signature = read_signature(artifact.manifest)
        self._contracts = Contracts(artifact, self._signature)
        self._maps = TensorMaps(artifact.manifest.tensor_maps)
        self._bindings: Lru[Binding] = Lru(BINDINGS)
        self._launches: Lru[Launch] = Lru(LAUNCHES)
        self._plans: Lru[Plan] = Lru(PLANS)
        self.workspaces = Workspaces()
        self._loaded: dict[tuple[int, int], Loaded] = {}
        self._libraries: dict[str, Any] = {}  # by the file that they were loaded from
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.manifest.kernel

    @property
    def unproved(self) -> tuple[str, ...]:
        """What the build did not prove of this kernel."""
        return tuple(self.manifest.unproved)

    @property
    def allowed_unproved(self) -> tuple[str, ...]:
        """Of these, what a build refuses unless it is told to let it pass (`cake build --allow-unproved`)."""
        return tuple(self.manifest.allowed_unproved)

    @property
    def signature(self) -> str:
        """The parameters as the text has them."""
        kind = lambda p: f"{p.mode} {p.elem}[{', '.join(map(formula_text, p.shape))}]" if p.kind == "tensor" else p.elem  # noqa: E731
        return f"{self.name}({', '.join(f'{p.name}: {kind(p)}' for p in self.manifest.params if p.name not in self.manifest.hidden)})"

    def __repr__(self) -> str:
        unproved = f", unproved: {', '.join(self.unproved)}" if self.unproved else ""
        violated = f", violated: {', '.join(self.manifest.violated)}" if self.manifest.violated else ""
        return f"<cake kernel {self.signature} for {self.manifest.arch}{unproved}{violated}>"

    def __call__(self, *args: Any, stream: Any = None, plan: Plan | None = None, **kwargs: Any) -> Any:
        given = name_arguments(self._signature, args, kwargs)
        handle = self._stream(given) if stream is None else arrays.stream_handle(stream)
        launch, results = self._ready(given, handle, plan)
        launch.run(handle)
        return results

    def prepare(self, *args: Any, plan: Plan | None = None, **kwargs: Any) -> Prepared:
        """Check the arguments now and build everything that a launch needs: `p = k.prepare(A=a, B=b, D=d); p(stream=s)`.

        The arrays are kept alive and must stay where they are. The first launch on each stream builds a configuration.
        """
        given = name_arguments(self._signature, args, kwargs)
        current = arrays.current_stream(self._arrays(given))
        launch, results = self._ready(given, current(), plan)
        return Prepared(launch, current, results, tuple(given.values()), self._on_streams(given, plan) if self.manifest.workspaces else None)

    def _on_streams(self, given: dict[str, Any], plan: Plan | None) -> Callable[[int], Launch]:
        """The launch of these arguments on a stream, with its workspaces: made when it is asked for, and kept."""
        held = {n: a for n, a in given.items() if n not in self.manifest.hidden}
        made: dict[Any, tuple[Launch, dict[str, Any]]] = {}

        def launch(stream: int) -> Launch:
            key = stream_key(stream)
            if key not in made:
                arguments = dict(held)
                made[key] = self._ready(arguments, stream, plan)[0], arguments
            return made[key][0]

        return launch

    def plan(self, *, device: int | None = None, stream: Any = None, **given: Any) -> Plan:
        """The table of items for launches with these sizes and offsets: `p = k.plan(CQ=cq, CK=ck, H=16)`; `k(.., plan=p)`.

        Needs the inputs that the schedule and the cost of an item are made of, and the sizes that their shapes do not give.
        Inputs in host memory cost least; others are read back, for which the host waits for `stream` (None: as for a call).
        A plan serves any number of launches while those values stay as they are. Raises LaunchError.
        """
        info = self.manifest.plan
        if info is None:
            raise self._no_plan()
        for name in given:
            if name not in self._signature.known:
                raise LaunchError("runtime/unknown-argument", f"'{self.name}' has no parameter '{name}'")
        handle = self._stream(given) if stream is None else arrays.stream_handle(stream)
        cuda, params = driver(), {p.name: p for p in self._signature.tensors}
        inputs = {}
        for name in inputs_of(info):
            if given.get(name) is None:
                raise LaunchError("runtime/missing-argument", f"a plan for '{self.name}' needs '{name}'", resource=name)
            inputs[name] = read(params[name], given[name], handle, cuda)
        scalars = {p.name: scalar(p, given[p.name]) for p in self._signature.scalars if given.get(p.name) is not None}
        shapes = {n: shape_of(n, a, handle, cuda) for n, a in given.items() if n in params and n not in inputs} | {
            n: x.shape for n, x in inputs.items()
        }
        found = solve_sizes(self._signature, shapes, scalars, scalars_of(info))
        values = {n: found[n] for n in scalars_of(info)}
        if device is None:
            device = next((d for a in self._arrays(given) if (d := device_of(a)) is not None), None)
        loaded = self._load(cuda, self._device(cuda, device))
        key = (loaded.device, int(loaded.context), tuple(values.items()), tuple([x.tobytes() for x in inputs.values()]))
        return self._plans.get(key, lambda: self._make_plan(cuda, loaded, values, inputs))

    def _make_plan(self, cuda: Driver, loaded: Loaded, values: dict, inputs: dict) -> Plan:
        table = make_items(self.manifest, values, inputs, loaded.resident)
        items = DeviceArray(table.shape, "i32", loaded.device, cuda)
        if table.size:
            items.copy_from(table)
        return Plan(self.name, values, items, len(table))

    def _planned(self, given: dict[str, Any], plan: Plan | None, stream: int) -> Plan:
        """The plan that was given; without one it is made, or found again, from what the inputs hold now."""
        if plan is None:
            return self.plan(stream=stream, **given)
        if self.manifest.plan is None:
            raise self._no_plan()
        return plan

    def _no_plan(self) -> LaunchError:
        return LaunchError("runtime/no-plan", f"the schedule of '{self.name}' takes no table of items", fix="call it without a plan")

    def check(self, *args: Any, stream: Any = None, **kwargs: Any) -> None:
        """Check the kernel's contracts about its data, its `assume`s, where the data are: by a launch on `stream` and its verdicts, which
        the host waits for, or, of inputs in host memory, on the host.

        Takes the arguments of a call. Raises LaunchError (`runtime/assume`) with the first contract that does not hold.
        """
        given = name_arguments(self._signature, args, kwargs)
        handle = self._stream(given) if stream is None else arrays.stream_handle(stream)
        self._contracts.check(given, handle, driver())

    def _arrays(self, given: dict[str, Any]) -> list[Any]:
        return [given[p.name] for p in self._signature.tensors if p.name in given]

    def _stream(self, given: dict[str, Any]) -> int:
        return arrays.current_stream(self._arrays(given))()

    def _ready(self, given: dict[str, Any], stream: int, plan: Plan | None) -> tuple[Launch, Any]:
        """The launch for these arguments, from the cache where they were seen before, and what a call returns."""
        s, cuda = self._signature, driver()
        if plan is not None or self.manifest.plan is not None:
            plan = self._planned(given, plan, stream)
            given[self.manifest.plan.table] = plan.items
        views = {p.name: arrays.describe(p.name, given[p.name], stream, cuda) for p in s.tensors if p.name in given}
        scalars = {p.name: scalar(p, given[p.name]) for p in s.scalars if p.name in given}
        for view in views.values():
            arrays.wait_for(view, stream, cuda)
        # Floats by their bits: 0.0 and -0.0 are equal, NaN is not equal to itself.
        numbers = tuple([(n, x.hex() if type(x) is float else x) for n, x in scalars.items()])
        binding = None
        if len(views) < len(s.tensors):
            binding = self._bind(views, scalars, numbers)
            self._allocate(cuda, binding, given, views, stream)
        key = (tuple([views[p.name][:IDENTITY] for p in s.tensors]), numbers)
        launch = self._launches.find(key)
        if launch is None:
            binding = binding or self._bind(views, scalars, numbers)
            if plan is not None:
                check_plan(self.name, plan, binding.values)
            launch = self._launches.add(key, self._build(cuda, binding, views))
        outputs = tuple([given[name] for name in s.outputs])
        return launch, outputs[0] if len(outputs) == 1 else outputs or None

    def _bind(self, views: dict[str, View], scalars: dict, numbers: tuple) -> Binding:
        key = (tuple([(n, v.shape, v.strides, v.elem) for n, v in views.items()]), numbers)
        return self._bindings.get(key, lambda: bind_shapes(self._signature, views, scalars))

    def _allocate(self, cuda: Driver, b: Binding, given: dict[str, Any], views: dict[str, View], stream: int) -> None:
        """Make the outputs that were left out, and find the stream's workspaces."""
        first = next(iter(self._arrays(given)), None)
        device = self._device(cuda, next((v.device for v in views.values() if v.device is not None), None))
        for name in b.missing:
            elem = next(p.elem for p in self._signature.tensors if p.name == name)
            if name in self.manifest.workspaces:
                given[name] = self.workspaces.get(cuda, device, stream, name, b.shapes[name], elem)
            else:
                given[name] = allocate(b.shapes[name], elem, first, device, cuda)
            views[name] = arrays.describe(name, given[name], 0, cuda)

    def _build(self, cuda: Driver, b: Binding, views: dict[str, View]) -> Launch:
        device = self._device(cuda, check_pointers(self._signature, b, views))
        loaded = self._load(cuda, device)
        blocks = grid_blocks(self._signature, b, loaded.resident)
        block = ArgumentBlock(cuda, self._signature, b, views, self._maps) if blocks else None
        return Launch(cuda, self.manifest.launch, loaded, blocks, block)

    @staticmethod
    def _device(cuda: Driver, device: int | None) -> int:
        """The arrays' device; without memory anywhere, the current context's, else 0."""
        if device is not None:
            return device
        return int(cuda.call("cuCtxGetDevice")) if cuda.current() is not None else 0

    def _load(self, cuda: Driver, device: int) -> Loaded:
        context = cuda.context(device)
        key = (device, int(context))
        if key not in self._loaded:
            with self._lock:
                if key not in self._loaded:
                    image = image_for(cuda, self.artifact, device)
                    with cuda.active(context):
                        if image not in self._libraries:
                            self._libraries[image] = load_library(cuda, self.artifact, image)
                        self._loaded[key] = load_function(cuda, self.artifact, image, self._libraries[image], context, device)
        return self._loaded[key]


class Launch:
    """One set of arguments made ready, for any stream and thread. `blocks` 0: there is nothing to do."""

    __slots__ = ("_address", "_api_launch", "_block", "_configurations", "_driver", "_function", "_info", "_loaded", "blocks")

    def __init__(self, cuda: Driver, info: Any, loaded: Loaded, blocks: int, block: ArgumentBlock | None):
        self._driver, self._info, self._loaded, self._block, self.blocks = cuda, info, loaded, block, blocks
        self._function = loaded.function
        self._address = block.address if block else 0
        self._api_launch = cuda.api.cuLaunchKernelEx
        self._configurations: dict[int, Any] = {}

    def run(self, stream: int) -> None:
        """Launch on the stream of this handle."""
        config = self._configurations.get(stream)
        if config is None:
            if not self.blocks:
                return
            config = self._configure(stream)
        status = self._api_launch(config, self._function, self._address, 0)[0]
        if status:
            relaunch(self._driver, self._loaded, config, self._address, status)

    def _configure(self, stream: int) -> Any:
        config = configuration(self._driver, self._info, self.blocks, stream)
        if len(self._configurations) >= CONFIGURATIONS:
            self._configurations = {}
        self._configurations[stream] = config
        return config


class Prepared:
    """A launch whose arguments are fixed: `p(stream=None)` costs little more than the driver's own call.

    `outputs` is what a call returns: the array written, or a tuple. `on_stream`: of a kernel with workspaces, the launch on a stream.
    """

    __slots__ = ("_current", "_keep", "_launch", "_on_stream", "outputs")

    def __init__(self, launch: Launch, current: Callable[[], int], outputs: Any, keep: tuple, on_stream: Callable[[int], Launch] | None = None):
        self._launch, self._current, self.outputs, self._keep, self._on_stream = launch, current, outputs, keep, on_stream

    @property
    def blocks(self) -> int:
        """Blocks of the grid; 0 where a launch does nothing."""
        return self._launch.blocks

    def __call__(self, stream: Any = None) -> Any:
        if stream is None:
            stream = self._current()
        elif type(stream) is not int:
            stream = arrays.stream_handle(stream)
        launch = self._launch if self._on_stream is None else self._on_stream(stream)
        launch.run(stream)
        return self.outputs


def allocate(shape: tuple[int, ...], elem: str, like: Any, device: int, cuda: Driver) -> Any:
    """An uninitialised array of the kind of `like`. cupy has no bf16 of its own: there it is a DeviceArray."""
    e = ELEMENTS[elem]
    if arrays.is_torch(like):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, e.torch), device=like.device)
    if arrays.library(like) == "cupy" and e.typestr is not None:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(device):
            return cupy.empty(shape, dtype=e.typestr)
    return DeviceArray(shape, elem, device, cuda)


def load(folder: str | Path, *, violated: bool = False, text: bool = False) -> Kernel:
    """Load an artifact folder. Reads manifest and cubin; the driver is not touched before the first call. Lines on stderr say what
    was left unproved by a build that was told to let it pass, and which rules its project has waived.

    `violated`: also one whose text the verifier refused, which is built for tests of what goes wrong. `text`: its PTX alone, for a driver that
    executes that. Raises ArtifactError
    (`runtime/artifact-*`) where the folder is no whole artifact of this version, `runtime/violated` where it is such a one.
    """
    kernel = Kernel(read_artifact(folder, violated, text))
    if kernel.allowed_unproved:
        print(f"cake: '{kernel.name}' was built with these left unproved: {', '.join(kernel.allowed_unproved)}", file=sys.stderr)
    if waived := kernel.manifest.waived:
        print(f"cake: '{kernel.name}' was built with these rules waived: {', '.join(w['rule'] for w in waived)}", file=sys.stderr)
    return kernel
