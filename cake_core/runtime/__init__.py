"""The GPU runtime: loads an artifact and launches it through the CUDA driver. Needs no parser, no plugin and no solver."""

from cake_core.runtime.device_array import DeviceArray
from cake_core.runtime.errors import ArtifactError, DriverError, LaunchError
from cake_core.runtime.kernel import Kernel, Prepared, load
from cake_core.runtime.plan import Plan

__all__ = ["ArtifactError", "DeviceArray", "DriverError", "Kernel", "LaunchError", "Plan", "Prepared", "load"]
