"""The folds of a sweep as a frame, one row a fold.

Owns how rows reach Python: from a Parquet file, or through the command ``togl`` from a store or a coordinator. Must not
compute anything from them: means, choices and tests are those of ``togl table``.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Sequence, Union, overload

if TYPE_CHECKING:
    import os

    import pandas
    import polars


class TheCommandFailed(RuntimeError):
    """``togl`` could not give the folds; the text is what it said."""


@overload
def read(
    path_or_sweep: Union[str, "os.PathLike[str]"], frame: Literal["polars"] = "polars", *, options: Sequence[str] = ()
) -> "polars.DataFrame": ...


@overload
def read(
    path_or_sweep: Union[str, "os.PathLike[str]"], frame: Literal["pandas"], *, options: Sequence[str] = ()
) -> "pandas.DataFrame": ...


def read(path_or_sweep, frame="polars", *, options=()):  # type: ignore[no-untyped-def]
    """The folds of a sweep, one row a fold.

    path_or_sweep: a Parquet file that ``togl table --out`` wrote, or the folder that holds it, or the name of a sweep.
    frame: ``"polars"`` or ``"pandas"``; the package of that name must be installed.
    options: further options of ``togl table`` for a sweep, such as ``["--state", "DIR"]`` or ``["--coordinator", "HOST:PORT"]``.
    """
    if frame not in ("polars", "pandas"):
        raise ValueError(f"frame is {frame!r}; use 'polars' or 'pandas'")
    path = Path(path_or_sweep)
    if path.is_dir():
        return _load(_the_folds_in(path), frame)
    if path.is_file():
        return _load(path, frame)
    if path.suffix == ".parquet" or len(path.parts) != 1:
        raise FileNotFoundError(f"there is no file {path}")
    with tempfile.TemporaryDirectory(prefix="togl-") as folder:
        _ask_the_command(str(path_or_sweep), folder, options)
        return _load(_the_folds_in(Path(folder)), frame)


def _the_folds_in(folder: Path) -> Path:
    found = sorted(folder.glob("*.parquet"))
    if len(found) != 1:
        raise FileNotFoundError(f"{folder} has {len(found)} files of folds (.parquet); name one")
    return found[0]


def _load(path: Path, frame: str):  # type: ignore[no-untyped-def]
    if frame == "polars":
        import polars

        return polars.read_parquet(path)
    import pandas

    return pandas.read_parquet(path)


def _ask_the_command(sweep: str, folder: str, options: Sequence[str]) -> None:
    # `--` so that no name is taken for an option.
    arguments = [_command(), "table", *options, "--out", folder, "--", sweep]
    done = subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise TheCommandFailed(done.stderr.decode(errors="replace").strip())


def _command() -> str:
    """``togl`` as it was installed with this package, else the one on the path."""
    beside = Path(sysconfig.get_path("scripts")) / "togl"
    found = str(beside) if beside.is_file() else shutil.which("togl")
    if found is None:
        raise FileNotFoundError("the command togl is neither beside this Python nor on the path")
    return found
