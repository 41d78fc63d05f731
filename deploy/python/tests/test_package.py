"""The Python package without its programs: which torch is right, where folds are read from."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from togl_sweeps import TheCommandFailed, frames, launch, read


class AWorkerNeedsTheOneTorch(unittest.TestCase):
    def torch(self, version=None, library=True):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        torch = pathlib.Path(folder.name) / "torch"
        (torch / "lib").mkdir(parents=True)
        if version is not None:
            (torch / "version.py").write_text(f"from typing import Optional\n__version__ = '{version}'\ndebug = False\n")
        if library:
            (torch / "lib" / "libtorch_cpu.so").touch()
        return torch

    def complaint(self, torch):
        return launch.complaint(torch, launch.version_of(torch))

    def test_the_right_version_is_taken_whatever_it_was_built_for(self):
        for version in [launch.TORCH, launch.TORCH + "+cu130", launch.TORCH + "+cpu"]:
            self.assertIsNone(self.complaint(self.torch(version)))

    def test_what_is_wrong_is_said_in_one_line_with_the_version_that_is_needed(self):
        cases = {
            "is 2.12.1": self.torch("2.12.1"),
            "is 2.13.01": self.torch("2.13.01"),
            "unknown version": self.torch(None),
            "libtorch_cpu.so": self.torch(launch.TORCH, library=False),
        }
        for words, torch in cases.items():
            said = self.complaint(torch)
            self.assertIn(words, said)
            self.assertNotIn("\n", said)
        self.assertIn(f"needs torch {launch.TORCH}", launch.complaint(None, None))


class FoldsAreRead(unittest.TestCase):
    def test_bad_arguments_are_named(self):
        with self.assertRaisesRegex(ValueError, "use 'polars' or 'pandas'"):
            read("sweep", frame="excel")
        with self.assertRaisesRegex(FileNotFoundError, "no file .*missing.parquet"):
            read("missing.parquet")
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(FileNotFoundError, "0 files of folds"):
            read(folder)

    def test_a_sweep_is_asked_of_the_command_and_what_it_says_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            command = pathlib.Path(folder) / "togl"
            command.write_text('#!/bin/sh\necho "error: $*" >&2\nexit 2\n')
            command.chmod(0o755)
            usual, frames._command = frames._command, lambda: str(command)
            self.addCleanup(setattr, frames, "_command", usual)
            with self.assertRaises(TheCommandFailed) as failed:
                read("-hostile", options=["--state", "here"])
            self.assertRegex(str(failed.exception), r"^error: table --state here --out \S+ -- -hostile$")


if __name__ == "__main__":
    unittest.main()
