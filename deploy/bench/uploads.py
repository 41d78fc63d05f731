#!/usr/bin/env python3
"""What do checkpoints that move cost the coordinator, and how many epochs does a preemption lose? Real programs on loopback.

    deploy/bench/uploads.py [--times 3] [--kills 5] [--bin target/debug]

The first: one sweep in turn with a checkpoint brought after every epoch and with none; the processor time of the coordinator, by
upload. The second: a worker that brings one every two seconds is killed, with all that it had, again and again; the epochs that it
had reached less those after which the next one went on. Both are counts and processor times, so other work matters little.
"""

import argparse, os, pathlib, random, re, shutil, statistics, subprocess, sys, tempfile, time

TICKS = os.sysconf("SC_CLK_TCK")
SWEEP = """version: 1
name: {name}
base: {{dataset: necklaces, togl: true, hidden_dim: {width}, depth: 2, batch_size: 1000, max_epochs: {epochs}, lr_min: 0.0}}
splits: {splits}
"""


def processor_seconds(process):
    fields = open(f"/proc/{process.pid}/stat").read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Lab:
    """A coordinator with one sweep, in a folder of its own."""

    def __init__(self, place, binaries, name, sweep):
        self.bin, self.place = binaries, place / name
        self.place.mkdir()
        file = self.place / "sweep.yaml"
        file.write_text(sweep)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("TOGL_")}
        self.environment |= {"TOGL_STATE": str(self.place / "state"), "XDG_CACHE_HOME": str(place / "cache")}
        self.coordinator = subprocess.Popen([self.bin / "togl", "serve", "--listen", "127.0.0.1:0"], env=self.environment,
                                            stderr=open(self.place / "serve.err", "w"))
        until(lambda: (self.place / "state/coordinator.json").exists())
        self.address = re.search(r'"address": *"([^"]+)"', (self.place / "state/coordinator.json").read_text()).group(1)
        self.ask("submit", file)

    def ask(self, *words):
        return subprocess.run([self.bin / "togl", *map(str, words)], env=self.environment, capture_output=True, text=True, check=True).stdout

    def worker(self, name, *options):
        log = self.place / f"{name}.log"
        worker = subprocess.Popen(
            [self.bin / "togl-worker", "join", self.address, "--token-file", self.place / "state/worker.token", "--offline",
             "--device", "cpu", "--state", self.place / name, *options],
            env=self.environment | {"RUST_LOG": "info,togl_agent=debug,togl_worker=debug"}, stdout=subprocess.DEVNULL, stderr=open(log, "w"))
        return worker, log

    def end(self):
        self.coordinator.terminate()
        self.coordinator.wait()


def until(is_so, seconds=600):
    for _ in range(seconds * 20):
        if is_so():
            return
        time.sleep(0.05)
    sys.exit("uploads: error: waited in vain")


def cost(place, binaries, turn, uploads):
    """Processor seconds of the coordinator for one sweep, and how many checkpoints were brought."""
    lab = Lab(place, binaries, f"cost-{turn}-{uploads}", SWEEP.format(name="cost", width=64, epochs=60, splits=[1, 2, 3, 4]))
    before = processor_seconds(lab.coordinator)
    options = ["--checkpoint-seconds", "0"] + (["--upload-seconds", "0"] if uploads else ["--no-uploads"])
    worker, log = lab.worker("w", "--slots", "2", *options)
    began = time.monotonic()
    until(lambda: len(lab.ask("folds", "cost", "--in", "finished", "--format", "ndjson").splitlines()) == 4)
    wall = time.monotonic() - began
    worker.terminate()
    worker.wait()
    spent = processor_seconds(lab.coordinator) - before
    sizes = [int(size) for size in re.findall(r"brought a checkpoint.*?size=(\d+)|size=(\d+).*?brought a checkpoint", plain(log)) for size in size if size]
    lab.end()
    return spent, len(sizes), statistics.mean(sizes) if sizes else 0, wall


def plain(log):
    return re.sub(r"\x1b\[[0-9;]*m", "", log.read_text(errors="replace"))


def epoch(lab):
    """How far the fold in training is, as the coordinator has heard."""
    return max(map(int, re.findall(r'"epoch": *(\d+)', lab.ask("status", "killed", "--format", "json"))), default=0)


def losses(place, binaries, kills):
    """Of each preemption the epochs that were lost, and those of the two seconds before it."""
    lab = Lab(place, binaries, "killed", SWEEP.format(name="killed", width=16, epochs=100000, splits=[1]))
    reached, lost = 0, []
    for number in range(kills + 1):
        worker, log = lab.worker(f"w{number}", "--slots", "1", "--checkpoint-seconds", "1", "--upload-seconds", "2")
        if number:
            until(lambda: "goes on after epoch" in plain(log))
            lost.append((max(0, reached - int(re.search(r"goes on after epoch (\d+)", plain(log)).group(1))), recent))
        until(lambda: "brought a checkpoint" in plain(log))
        time.sleep(random.uniform(1, 4))
        before = epoch(lab)
        time.sleep(2)
        reached = epoch(lab)  # a lower bound: it is heard every half second
        recent = reached - before
        worker.kill()
        worker.wait()
        shutil.rmtree(lab.place / f"w{number}")
    lab.ask("cancel", "killed")
    lab.end()
    return lost


def tell_losses(place, arguments):
    for gone, recent in losses(place, arguments.bin, arguments.kills):
        print(f"a preemption lost {gone} epochs; {recent} were trained in the two seconds before it")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--times", type=int, default=3)
    arguments.add_argument("--kills", type=int, default=5)
    arguments.add_argument("--bin", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "target/debug")
    arguments = arguments.parse_args()
    place = pathlib.Path(tempfile.mkdtemp(prefix="togl-uploads."))
    try:
        with_uploads, without = [], []
        for turn in range(arguments.times):
            with_uploads.append(cost(place, arguments.bin, turn, True))
            without.append(cost(place, arguments.bin, turn, False))
            print("with uploads {:.2f} s ({} of {:.0f} bytes, {:.0f} s), without {:.2f} s ({:.0f} s)".format(
                *with_uploads[-1], without[-1][0], without[-1][3]), flush=True)
        if arguments.times == 0:
            return tell_losses(place, arguments)
        extra = statistics.median(spent for spent, *_ in with_uploads) - statistics.median(spent for spent, *_ in without)
        count = statistics.median(uploads for _, uploads, *_ in with_uploads)
        print(f"processor time of the coordinator for one upload: {1000 * extra / count:.2f} ms")
        tell_losses(place, arguments)
    finally:
        shutil.rmtree(place)


main()
