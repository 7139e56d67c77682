"""The newcomer beside this file as a module: test folders are no packages."""

import importlib.util
import sys
from pathlib import Path

if "newcomer" not in sys.modules:
    spec = importlib.util.spec_from_file_location("newcomer", Path(__file__).with_name("newcomer.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["newcomer"] = module
    spec.loader.exec_module(module)
