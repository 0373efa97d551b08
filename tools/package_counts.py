"""The numbers of the source tree, by their former name: `python tools/source_tree.py --numbers` is the one to use."""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.argv.insert(1, "--numbers")
    runpy.run_path(str(Path(__file__).with_name("source_tree.py")), run_name="__main__")
