"""One fold of a sweep that trains a program of your own: what it was asked for, how far it is, what came out.

    import togl

    with togl.fold(lr=0.01) as fold:
        model, start = load(fold.resume)  # fold.resume is None unless an earlier attempt has saved
        for epoch in range(start, 100):
            loss, accuracy = train(model, fold.settings["lr"])
            fold.epoch(epoch, 100, train=accuracy, train_loss=loss, validation=validate(model))
            if fold.wants_save:
                with fold.saving(epoch) as path:  # leaves here when the fold was told to stop
                    save(model, path)
        fold.result(test=test(model), validation=validate(model))

Every worker puts this file on the path of the programs that it runs, under the name ``togl``. Run by hand the same script
trains with what is given as ``KEY=VALUE`` and prints what it would have reported. Owns the lines between a program and its
worker; needs nothing but the standard library, Python 3.9 or newer. Must not import torch or anything else that takes time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import pathlib
import platform
import signal
import sys
import tempfile
import threading
from types import TracebackType
from typing import Any, Dict, Iterator, List, Optional, Sequence, TextIO, Type

__all__ = ["Fold", "fold"]

#: The descriptor on which events are written.
EVENTS = 3

#: Set by the worker where there is one.
UNDER_A_WORKER = "TOGL_PROGRAM"

#: Keys beside settings that may be given by hand.
_BY_HAND = ("dataset", "data_seed", "split", "seed", "device", "data_dir")

#: Packages that are named in the table's account if they were used; the others are in a digest.
_NAMED = ("torch", "torch_geometric", "numpy", "sklearn", "jax", "tensorflow", "dgl", "ogb", "scipy")


def fold(**defaults: Any) -> "Fold":
    """The fold to train. ``defaults`` are settings that the sweep need not give."""
    if UNDER_A_WORKER in os.environ:
        return _OfAWorker(defaults)
    return _ByHand(defaults)


class Fold:
    """One trial on one split with one training seed."""

    #: The settings of the trial: those of the sweep, and the defaults that it does not give.
    settings: Dict[str, Any]
    #: Name of the data set.
    dataset: str
    #: Seed of generated data sets.
    data_seed: int
    #: Fold of the data set, or seed of its split.
    split: int
    #: Training seed.
    seed: int
    #: ``cpu``, ``cuda`` or ``mps``: the one device that this process may use, as torch calls it.
    device: str
    #: Where data sets are.
    data_dir: pathlib.Path
    #: What an earlier attempt saved; None to begin at the beginning.
    resume: Optional[pathlib.Path]
    #: The first epoch that is still to do, from 0.
    start: int

    def __init__(self) -> None:
        self._wants_save = False
        self._stopping = False
        self._done = False

    def indices(self, part: str) -> List[int]:
        """The examples of ``train``, ``validation`` or ``test`` in this split, for data sets that togl knows."""
        raise NotImplementedError

    @property
    def wants_save(self) -> bool:
        """Whether somebody asked for a checkpoint: now and then, and before the program has to leave."""
        return self._wants_save or self._stopping

    def epoch(
        self,
        epoch: int,
        of: int,
        *,
        train: Any,
        validation: Any,
        train_loss: Any = None,
        validation_loss: Any = None,
        lr: Any = None,
    ) -> None:
        """An epoch, from 0, of so many is done: a line of the learning curve."""
        values = {"train": train, "validation": validation, "train_loss": train_loss}
        values.update(validation_loss=validation_loss, lr=lr)
        self._say({"event": "epoch", "epoch": int(epoch), "of": int(of), **_numbers(values)})

    @contextlib.contextmanager
    def saving(self, epoch: int) -> Iterator[pathlib.Path]:
        """Where to write a checkpoint, one file, after this epoch. It counts once the block ends. If the program was told
        to stop, it leaves there."""
        path = self._place_to_save()
        yield path
        self._wants_save = False
        if path.is_file():
            self._say({"event": "saved", "epoch": int(epoch)})
        if self._stopping:
            self._leave()

    def result(
        self,
        *,
        test: Any,
        validation: Any = None,
        train: Any = None,
        test_loss: Any = None,
        validation_loss: Any = None,
        train_loss: Any = None,
        best_epoch: Optional[int] = None,
        parameters: Optional[int] = None,
        sizes: Optional[Sequence[int]] = None,
        data_digest: Optional[str] = None,
    ) -> None:
        """The fold is finished. Values that are not given are those of the last epoch. ``test`` must come from the model
        that was chosen by ``validation``, and from nothing else. ``sizes`` are the numbers of examples to train, to validate
        and to test on, without which data of your own cannot race; togl knows those of its own data sets."""
        values = {"test": test, "validation": validation, "train": train, "test_loss": test_loss}
        values.update(validation_loss=validation_loss, train_loss=train_loss)
        event: Dict[str, Any] = {"event": "result", **_numbers(values)}
        for name, value in [("best_epoch", best_epoch), ("parameters", parameters)]:
            if value is not None:
                event[name] = int(value)
        if sizes is not None:
            train_size, validation_size, test_size = sizes
            event["sizes"] = [int(train_size), int(validation_size), int(test_size)]
        if data_digest is not None:
            event["data_digest"] = str(data_digest)
        event["environment"] = _environment()
        self._say(event)
        self._done = True

    def __enter__(self) -> "Fold":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        _trace: Optional[TracebackType],
    ) -> None:
        """Says why the fold failed, if it did; the error goes on and is printed as ever."""
        if error is not None and isinstance(error, Exception) and not self._done:
            message = f"{type(error).__name__}: {error}".splitlines()[0][:1000]
            self._say({"event": "failed", "class": _class_of(error), "message": message})

    def _say(self, event: Dict[str, Any]) -> None:
        raise NotImplementedError

    def _place_to_save(self) -> pathlib.Path:
        raise NotImplementedError

    def _leave(self) -> None:
        raise SystemExit(0)


class _OfAWorker(Fold):
    """Asked for by a worker: commands come on standard input, events leave on a descriptor of their own."""

    def __init__(self, defaults: Dict[str, Any]) -> None:
        super().__init__()
        os.set_inheritable(EVENTS, False)  # what this program starts has no business there
        self._events: TextIO = os.fdopen(EVENTS, "w", encoding="utf-8")
        self._lock = threading.Lock()
        asked = json.loads(sys.stdin.readline())
        self.settings = {**defaults, **asked["settings"]}
        self.dataset, self.data_seed = asked["dataset"], asked["data_seed"]
        self.split, self.seed = asked["split"], asked["seed"]
        self.device = asked["device"]
        self.data_dir = pathlib.Path(asked["data_dir"])
        self.resume = pathlib.Path(asked["resume"]) if asked.get("resume") else None
        self.start = asked.get("start", 0)
        self._save = pathlib.Path(asked["save"])
        self._name = asked["fold"]
        self._parts = asked.get("indices")
        self._split: Dict[str, List[int]] = {}
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda *_: self._stop())
        threading.Thread(target=self._listen, name="togl", daemon=True).start()
        self._say({"event": "started"})

    def indices(self, part: str) -> List[int]:
        if part not in ("train", "validation", "test"):
            raise ValueError(f"a split has no part {part!r}; use 'train', 'validation' or 'test'")
        if self._parts is None:
            raise LookupError(f"togl does not know the data set {self.dataset!r}, so its splits are yours to make")
        if not self._split:
            self._split = json.loads(pathlib.Path(self._parts).read_text(encoding="utf-8"))
        return list(self._split[part])

    def _listen(self) -> None:
        for line in sys.stdin:
            command = json.loads(line).get("command")
            if command == "save":
                self._wants_save = True
            elif command == "stop":
                self._stop()
        os._exit(1)  # the worker is gone, and there is nobody to train for

    def _stop(self) -> None:
        self._stopping = True

    def _say(self, event: Dict[str, Any]) -> None:
        if self._done:
            return
        with self._lock:
            self._events.write(json.dumps({**event, "fold": self._name}, allow_nan=True) + "\n")
            self._events.flush()

    def _place_to_save(self) -> pathlib.Path:
        return self._save


class _ByHand(Fold):
    """Run alone: settings are ``KEY=VALUE`` on the command line, and what would be reported is printed."""

    def __init__(self, defaults: Dict[str, Any]) -> None:
        super().__init__()
        given = dict(argument.split("=", 1) for argument in sys.argv[1:] if "=" in argument and argument[0] != "-")
        words = {key: given.pop(key) for key in _BY_HAND if key in given}
        self.settings = {**defaults, **{key: _value(text) for key, text in given.items()}}
        self.dataset, self.data_seed = words.get("dataset", ""), int(words.get("data_seed", 0))
        self.split, self.seed = int(words.get("split", 0)), int(words.get("seed", 0))
        self.device = words.get("device", "cpu")
        self.data_dir = pathlib.Path(words.get("data_dir", "."))
        self.resume, self.start = None, 0

    def indices(self, part: str) -> List[int]:
        raise LookupError(f"splits come from togl, which did not start this program; `togl run` gives it the {part} part")

    def _say(self, event: Dict[str, Any]) -> None:
        kind = event.pop("event")
        print(f"{kind}:", ", ".join(f"{key} {value}" for key, value in event.items()), flush=True)

    def _place_to_save(self) -> pathlib.Path:
        return pathlib.Path(tempfile.mkdtemp(prefix="togl-")) / "checkpoint"


def _value(text: str) -> Any:
    """A value as a sweep file would read it."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _numbers(values: Dict[str, Any]) -> Dict[str, float]:
    """What is given, as plain numbers, also where it comes as tensors of one element."""
    numbers = {name: float(value) for name, value in values.items() if value is not None}
    for name, number in numbers.items():
        if not math.isfinite(number):
            raise FloatingPointError(f"{name} is {number}")
    return numbers


def _class_of(error: Exception) -> str:
    words = str(error).lower()
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "out of memory" in words:
        return "out-of-memory"
    return "not-finite" if isinstance(error, (FloatingPointError, OverflowError)) else "error"


def _environment() -> str:
    """Which interpreter, which of the packages that people ask about, and a digest of all that are installed."""
    from importlib import metadata

    installed = sorted({f"{one.metadata['Name']}=={one.version}".lower() for one in metadata.distributions()})
    used = []
    for name in _NAMED:
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            used.append(f"{name} {version}")
    digest = hashlib.sha256("\n".join(installed).encode()).hexdigest()[:12]
    words = [f"{platform.python_implementation()} {platform.python_version()}", *used]
    return ", ".join([*words, f"{len(installed)} packages {digest}"])
