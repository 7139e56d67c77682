"""The machine beside this file, as the module `warpgroups`: test folders are no packages."""

import importlib.util
import sys
from pathlib import Path

if "warpgroups" not in sys.modules:
    spec = importlib.util.spec_from_file_location("warpgroups", Path(__file__).with_name("warpgroups.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["warpgroups"] = module
    spec.loader.exec_module(module)
