"""How many tasks a second HyperQueue gets through, and what its server needs for one, with the package of PyPI.

    pip install hyperqueue
    python deploy/bench/hyperqueue_tasks.py TASKS

The package runs server and workers as threads of this process: the server's is the one that is there before any worker is.
Eight workers of eight cores; each task starts the program `true`. Nothing is kept on disk. Prints tasks a second and
microseconds of the server's processor time for each task.
"""

import os
import sys
import time

from hyperqueue.cluster import LocalCluster, WorkerConfig
from hyperqueue.job import Job


def seconds(thread):
    fields = open(f"/proc/self/task/{thread}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    tasks = int(sys.argv[1])
    cluster = LocalCluster()
    time.sleep(1)
    server = [thread for thread in os.listdir("/proc/self/task") if int(thread) != os.getpid()]
    for _ in range(8):
        cluster.start_worker(WorkerConfig(cores=8))
    client, job = cluster.client(), Job()
    for _ in range(tasks):
        job.program(["true"], stdout=None, stderr=None)
    before, begin = sum(map(seconds, server)), time.monotonic()
    client.wait_for_jobs([client.submit(job)])
    took = time.monotonic() - begin
    print(f"{tasks / took:.1f} tasks/s, {(sum(map(seconds, server)) - before) * 1e6 / tasks:.2f} us", flush=True)
    os._exit(0)  # the threads of the cluster have no other end


main()
