"""The module beside this file: test folders are no packages."""

import importlib.util
import sys
from pathlib import Path

NAME = "simulated_texts"
if NAME not in sys.modules:
    spec = importlib.util.spec_from_file_location(NAME, Path(__file__).with_name(f"{NAME}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
