"""The helper of programs against a played worker: what it reads, what it says, when it leaves; and the same script by hand.

Runs under every Python from 3.9 that is on the path or named in TOGL_PYTHONS, each in a process of its own.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HELPER = pathlib.Path(__file__).resolve().parent.parent / "togl_sweeps" / "program.py"


def pythons():
    """Those that work: a name on the path may be a promise that nobody keeps."""
    named = os.environ.get("TOGL_PYTHONS", "").split(os.pathsep)
    found = {}
    for candidate in [sys.executable, *(f"python3.{minor}" for minor in range(9, 14)), *filter(None, named)]:
        path = shutil.which(candidate)
        ask = "import sys; print(sys.version_info >= (3, 9), sys.version.split()[0], sys.executable)"
        said = subprocess.run([path, "-c", ask], capture_output=True, text=True).stdout.split() if path else []
        if said[:1] == ["True"]:
            found.setdefault(said[1], said[2])
    return found


PYTHONS = pythons()

SCRIPT = """
import togl
with togl.fold(width=3) as fold:
    assert fold.settings == {"lr": 0.5, "width": 3}, fold.settings
    assert (fold.split, fold.seed, fold.device, fold.dataset) == (2, 7, "cpu", "MUTAG")
    assert fold.indices("train") == [3, 1] and fold.indices("test") == [0]
    for epoch in range(fold.start, 3):
        fold.epoch(epoch, 3, train=0.5, validation=0.25, lr=0.1)
    fold.result(test=1, validation=0.5, sizes=(8, 1, 1))
"""

WAITS = """
import sys, togl
with togl.fold() as fold:
    fold.epoch(0, 2, train=0, validation=0)
    while not fold.wants_save:
        pass
    with fold.saving(0) as path:
        path.write_text("state")
    print("went on", flush=True)
    while not fold.wants_save:
        pass
    with fold.saving(0) as path:
        path.write_text("state")
    print("must not be reached")
"""


class PlayedWorker:
    """Starts a script as a worker does, with a pipe as its descriptor 3."""

    def __init__(self, python, script, **more):
        self.folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(self.folder.name)
        shutil.copy(HELPER, path / "togl.py")
        (path / "train.py").write_text(script)
        (path / "split.json").write_text('{"train": [3, 1], "validation": [2], "test": [0]}')
        self.request = {
            "command": "train", "fold": "ab/2/7", "attempt": 1, "settings": {"lr": 0.5}, "dataset": "MUTAG", "data_seed": 0,
            "split": 2, "seed": 7, "device": "cpu", "data_dir": str(path), "indices": str(path / "split.json"),
            "resume": None, "start": 0, "save": str(path / "save"), **more,
        }
        reads, writes = os.pipe()
        environment = {**os.environ, "TOGL_PROGRAM": "1", "PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"}

        def third():
            os.dup2(writes, 3)

        self.process = subprocess.Popen(
            [python, "train.py"], cwd=path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=environment, preexec_fn=third, close_fds=False,
        )
        os.close(writes)
        self.events = os.fdopen(reads)
        self.tell(self.request)

    def tell(self, command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def event(self):
        return json.loads(self.events.readline())

    def end(self):
        """All further events, what was printed, and the exit code."""
        events = [json.loads(line) for line in self.events]
        self.events.close()
        out, err = self.process.communicate()
        self.folder.cleanup()
        return events, out + err, self.process.returncode


class AProgramUnderAWorker(unittest.TestCase):
    def test_is_given_its_fold_and_reports_in_order(self):
        for python in PYTHONS.values():
            events, said, code = PlayedWorker(python, SCRIPT).end()
            self.assertEqual([event["event"] for event in events], ["started"] + 3 * ["epoch"] + ["result"], said)
            self.assertTrue(all(event["fold"] == "ab/2/7" for event in events))
            self.assertEqual(events[1]["of"], 3)
            result = events[-1]
            self.assertEqual((result["test"], result["validation"], code), (1.0, 0.5, 0))
            self.assertEqual(result["sizes"], [8, 1, 1])
            self.assertRegex(result["environment"], r"Python 3\.\d+\.\d+.*, \d+ packages [0-9a-f]{12}$")

    def test_goes_on_from_what_an_earlier_attempt_saved(self):
        for python in PYTHONS.values():
            script = "import togl\nwith togl.fold() as fold:\n    assert fold.resume.read_text() == 'x' and fold.start == 2\n    fold.result(test=1)\n"
            with tempfile.NamedTemporaryFile("w") as saved:
                saved.write("x")
                saved.flush()
                events, said, _ = PlayedWorker(python, script, resume=saved.name, start=2).end()
            self.assertEqual(events[-1]["event"], "result", said)

    def test_saves_when_asked_and_leaves_when_told(self):
        for python in PYTHONS.values():
            for how in ["command", "signal"]:
                worker = PlayedWorker(python, WAITS)
                self.assertEqual([worker.event()["event"], worker.event()["event"]], ["started", "epoch"])
                worker.tell({"command": "save"})
                self.assertEqual(worker.event()["event"], "saved")
                self.assertEqual(worker.process.stdout.readline(), "went on\n")
                if how == "command":
                    worker.tell({"command": "stop"})
                else:
                    worker.process.send_signal(signal.SIGTERM)
                events, said, code = worker.end()
                self.assertEqual([event["event"] for event in events], ["saved"], said)
                self.assertNotIn("must not be reached", said)
                self.assertEqual(code, 0)

    def test_tells_why_it_failed_and_says_so_in_the_log_too(self):
        cases = {
            "raise MemoryError()": "out-of-memory",
            "raise RuntimeError('CUDA out of memory')": "out-of-memory",
            "raise FloatingPointError('nan')": "not-finite",
            "fold.result(test=float('nan'), validation=1)": "not-finite",
            "raise ValueError('two\\nlines')": "error",
            "fold.indices('dev')": "error",
        }
        for body, kind in cases.items():
            script = f"import togl\nwith togl.fold() as fold:\n    {body}\n"
            events, said, code = PlayedWorker(sys.executable, script).end()
            self.assertEqual((events[-1]["event"], events[-1]["class"], code), ("failed", kind, 1), body)
            self.assertNotIn("\n", events[-1]["message"])
            self.assertIn("Traceback", said)

    def test_does_not_outlive_its_worker(self):
        worker = PlayedWorker(sys.executable, "import time, togl\nwith togl.fold() as fold:\n    time.sleep(1000)\n")
        self.assertEqual(worker.event()["event"], "started")
        worker.process.stdin.close()
        self.assertEqual(worker.process.wait(), 1)
        worker.process.stdin = None
        worker.end()

    def test_what_it_starts_cannot_speak_for_it(self):
        script = "import os, subprocess, togl\nwith togl.fold() as fold:\n    subprocess.run('echo rubbish >&3', shell=True)\n    fold.result(test=1)\n"
        events, _, _ = PlayedWorker(sys.executable, script).end()
        self.assertEqual([event["event"] for event in events], ["started", "result"])


class TheSameScriptByHand(unittest.TestCase):
    def run_script(self, script, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            shutil.copy(HELPER, path / "togl.py")
            (path / "train.py").write_text(script)
            environment = {key: value for key, value in os.environ.items() if key != "TOGL_PROGRAM"}
            return subprocess.run(
                [sys.executable, "-B", "train.py", *arguments], cwd=path, env=environment, capture_output=True, text=True
            )

    def test_takes_settings_from_its_command_line_and_prints_what_it_would_report(self):
        script = "import togl\nwith togl.fold(width=3, name='x') as fold:\n    print(fold.settings, fold.split)\n    fold.result(test=0.5)\n"
        ran = self.run_script(script, "lr=1e-3", "width=4", "split=2")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("{'width': 4, 'name': 'x', 'lr': 0.001} 2", ran.stdout)
        self.assertIn("result: test 0.5", ran.stdout)

    def test_says_that_splits_come_from_togl(self):
        ran = self.run_script("import togl\ntogl.fold().indices('train')\n")
        self.assertIn("splits come from togl", ran.stderr)

    def test_the_script_that_togl_init_writes_runs_alone(self):
        script = HELPER.parents[3] / "src" / "cli" / "init" / "train.py"
        ran = self.run_script(script.read_text(), "lr=0.3", "split=1")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("result: test", ran.stdout)


if __name__ == "__main__":
    print(f"the helper of programs under Python {', '.join(PYTHONS)}", file=sys.stderr)
    unittest.main()
