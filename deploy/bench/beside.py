#!/usr/bin/env python3
"""What does a background worker cost the work beside it? Runs a command in turn with and without the worker.

    deploy/bench/beside.py --worker 'togl-worker join --background' [--times 3] -- COMMAND...

A coordinator must have work for it. Prints wall time and processor time of each run, what was trained meanwhile, and the
ratio of the medians. Run it where nothing else does.
"""

import argparse, os, resource, statistics, subprocess, sys, time

WARM_UP = 20  # seconds until the worker has joined and trains


def run(command):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"beside: error: the command failed\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def trained(worker):
    """Seconds of processor time of the trainers of a worker so far."""
    ticks = 0
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open(f"/proc/{number}/stat").read().rsplit(") ", 1)[1].split()
        except OSError:
            continue
        if worker and int(fields[1]) == worker.pid:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--worker", required=True)
    arguments.add_argument("--times", type=int, default=3)
    arguments.add_argument("command", nargs="+")
    arguments = arguments.parse_args()
    walls = {True: [], False: []}
    for turn in range(2 * arguments.times):
        beside, worker = turn % 2 == 0, None
        if beside:
            quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            worker = subprocess.Popen("exec " + arguments.worker, shell=True, start_new_session=True, **quiet)
        time.sleep(WARM_UP)
        before = trained(worker)
        if beside and before == 0:
            sys.exit("beside: error: the worker does not train\n  hint: does its coordinator have folds for it?")
        wall, used = run(" ".join(arguments.command))
        meanwhile = trained(worker) - before
        walls[beside].append(wall)
        word = "with" if beside else "without"
        print(f"{word:8} {wall:7.2f} s wall {used:7.2f} s processor; trained {meanwhile:.1f} s meanwhile", flush=True)
        if worker:
            worker.terminate()
            worker.wait()
    print(f"with / without: {statistics.median(walls[True]) / statistics.median(walls[False]):.3f}")


main()
