"""The command ``togl-worker``: finds libtorch in this Python environment and becomes the real program.

Owns the check of torch's version, because a program that does not find its libraries cannot say so itself. Must not import
torch, which takes seconds.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import NoReturn, Optional

#: The one version whose libraries the worker was built with.
TORCH = "2.13.0"
USAGE = 2


def main() -> NoReturn:
    program = Path(__file__).resolve().parent / "bin" / "togl-worker"
    torch = find_torch()
    why = complaint(torch, version_of(torch) if torch else None)
    if why is not None:
        print(f"error: {why}", file=sys.stderr)
        print(f"\n  hint: install torch=={TORCH} into {sys.prefix}, with the same tool as this package", file=sys.stderr)
        sys.exit(USAGE)
    assert torch is not None
    environment = dict(os.environ)
    libraries = torch / "lib"
    # The program looks beside its own package; torch may lie in another folder of the same environment.
    if libraries != program.parent.parent.parent / "torch" / "lib":
        paths = [str(libraries), environment.get("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(path for path in paths if path)
    os.execve(program, ["togl-worker", *sys.argv[1:]], environment)


def find_torch() -> Optional[Path]:
    """The folder of the package torch, which is not imported."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).resolve().parent


def version_of(torch: Path) -> Optional[str]:
    try:
        text = (torch / "version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"^__version__ = '([^']+)'", text, re.MULTILINE)
    return found.group(1) if found else None


def complaint(torch: Optional[Path], version: Optional[str]) -> Optional[str]:
    """What is wrong with the torch that was found, in one line."""
    if torch is None:
        return f"the worker needs torch {TORCH}, and this Python has no torch"
    if version is None or version.split("+")[0] != TORCH:
        return f"the worker needs torch {TORCH}, and {torch} is {version or 'of an unknown version'}"
    if not (torch / "lib" / "libtorch_cpu.so").is_file():
        return f"the worker needs libtorch_cpu.so, and {torch / 'lib'} has none"
    return None
