"""The machines beside this file as modules: test folders are no packages."""

import importlib.util
import sys
from pathlib import Path

for name in ("ptx_values", "warp_of_group", "warpgroups", "rowwise"):  # each behind those that it imports
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
