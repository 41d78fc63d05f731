"""A store of simulated folds, exported and read back: every fold once, every number equal, and a second export adds nothing.
Run by deploy/test-exports, which brings the packages."""
import csv
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

TOGL = str(pathlib.Path(os.environ["TOGL"]).resolve())


def togl(*arguments, code=0):
    done = subprocess.run([TOGL, *arguments], capture_output=True, text=True)
    assert done.returncode == code, f"togl {arguments}: {done.returncode}\n{done.stderr}"
    return done.stdout + done.stderr


def folds(state):
    """What a table is made of: the numbers of each fold by its name."""
    togl("table", "bench", "--rows", "data_seed", "--out", f"{state}/table")
    togl("export", "wandb-csv", "bench", "--out", f"{state}/runs.csv")
    with open(f"{state}/runs.csv", newline="") as file:
        runs = {run["Name"]: run for run in csv.DictReader(file)}
    with open(f"{state}/runs-curves.csv", newline="") as file:
        curves = {}
        for line in csv.DictReader(file):
            curves.setdefault(line["Name"], []).append(line)
    return runs, curves


def tensorboard(folder, runs, curves):
    from tensorboard.backend.event_processing import plugin_event_multiplexer as multiplexer
    from tensorboard.backend.event_processing import tag_types
    from tensorboard.util import tensor_util

    for _ in range(2):
        togl("export", "tensorboard", "bench", "--out", folder)
    read = multiplexer.EventMultiplexer(tensor_size_guidance={}).AddRunsFromDirectory(folder)
    read.Reload()
    found = read.Runs()
    assert len(found) == len(runs), f"{len(found)} runs of {len(runs)} folds"
    seen = set()
    for run, tags in found.items():
        def values(tag):
            return [(event.step, tensor_util.make_ndarray(event.tensor_proto)) for event in read.Tensors(run, tag)]

        text = values("provenance")[0][1].item().decode()
        fold = next(line.split("|")[2].strip() for line in text.splitlines() if line.startswith("| fold |"))
        seen.add(fold)
        assert "| dataset | no-op |" in values("settings")[0][1].item().decode()
        assert abs(values("result/test_accuracy")[0][1].item() - float(runs[fold]["test_acc"])) < 1e-7
        losses = values("validation/loss")
        assert [step for step, _ in losses] == [int(line["epoch"]) for line in curves[fold]]
        for (_, value), line in zip(losses, curves[fold]):
            assert abs(value.item() - float(line["val_loss"])) < 1e-6
        assert "train/accuracy" in tags[tag_types.TENSORS]
    assert seen == set(runs)
    print(f"TensorBoard read {len(seen)} runs back")


def serve(folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(pathlib.Path(sys.executable).parent / "mlflow"), "server", "--host", "127.0.0.1", "--port", str(port),
               "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--workers", "1"]
    log = open(f"{folder}/server.log", "w")
    server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, start_new_session=True)
    url = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{url}/health", timeout=1)
            return server, url
        except OSError:
            assert server.poll() is None, open(f"{folder}/server.log").read()
            time.sleep(0.2)
    raise AssertionError("the MLflow server does not come up")


def mlflow(folder, runs, curves):
    server, url = serve(folder)
    try:
        read_mlflow(url, runs, curves)
    finally:
        os.killpg(server.pid, signal.SIGTERM)


def read_mlflow(url, runs, curves):
    from mlflow.tracking import MlflowClient

    # An export that is killed in the middle, then the whole one, then once more.
    client = MlflowClient(url)
    killed = subprocess.Popen([TOGL, "export", "mlflow", "bench", "--to", url], stderr=subprocess.DEVNULL)
    while killed.poll() is None:
        experiment = client.get_experiment_by_name("bench")
        if experiment and len(client.search_runs([experiment.experiment_id])) > 5:
            killed.kill()
    assert killed.wait() != 0, "it was over before it could be killed"
    togl("export", "mlflow", "bench", "--to", url)
    said = togl("export", "mlflow", "bench", "--to", url)
    assert f"made 0 runs in the experiment bench; {len(runs)} there already" in said, said
    experiment = client.get_experiment_by_name("bench").experiment_id
    found = client.search_runs([experiment], max_results=1000)
    children = {run.data.tags["togl.fold"]: run for run in found if "togl.fold" in run.data.tags}
    parents = {run.info.run_id: run for run in found if "togl.fold" not in run.data.tags}
    assert len(found) == len(children) + len(parents), "no fold is there twice"
    assert set(children) == set(runs)
    assert all(run.info.status == "FINISHED" for run in found)
    for fold, run in children.items():
        assert run.data.tags["mlflow.parentRunId"] in parents
        assert run.data.params["dataset"] == "no-op" and run.data.params["split"] == runs[fold]["fold"]
        assert run.data.metrics["test_accuracy"] == float(runs[fold]["test_acc"])
        assert run.data.tags["togl.worker"] == runs[fold]["worker"]
        losses = client.get_metric_history(run.info.run_id, "validation/loss")
        assert [at.step for at in losses] == [int(line["epoch"]) for line in curves[fold]], "each epoch once"
        assert [at.value for at in losses] == [float(line["val_loss"]) for line in curves[fold]]
    assert all("test_accuracy_mean" in run.data.metrics for run in parents.values())
    print(f"MLflow read {len(children)} folds of {len(parents)} trials back")


def main():
    folder = tempfile.mkdtemp(prefix="togl-exports-")
    os.environ["TOGL_STATE"] = f"{folder}/state"
    for name in list(os.environ):
        if name.startswith("MLFLOW_") or name in ("TOGL_TOKEN", "TOGL_COORDINATOR"):
            del os.environ[name]
    togl("bench", "dispatch", "--folds", "60", "--workers", "2", "--slots", "2", "--keep", f"{folder}/state")
    runs, curves = folds(folder)
    assert len(runs) == 60 and all(curves.get(fold) for fold in runs)
    tensorboard(f"{folder}/runs", runs, curves)
    mlflow(folder, runs, curves)
    shutil.rmtree(folder)


main()
