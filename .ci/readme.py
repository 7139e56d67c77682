"""The commands of README.md: `python .ci/readme.py HEADING` prints the first `sh` block under that heading."""

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def command(heading: str) -> str:
    """Exits with a message where there is none."""
    section = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", README.read_text(encoding="utf-8"), re.M | re.S)
    block = section and re.search(r"^```sh\n(.*?)^```$", section[1], re.M | re.S)
    if not block:
        sys.exit(f"README.md has no command under '{heading}'")
    return block[1]


if __name__ == "__main__":
    print(command(sys.argv[1]), end="")
