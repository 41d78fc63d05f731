#!/usr/bin/env python3
"""Trains the same folds with two programs and compares whole results, bit for bit.

    python deploy/bench/same_bits.py OLD_WORKER NEW_WORKER [DATA_DIR]

Without DATA_DIR: two epochs on Necklaces of every kind of network. With it, also short folds on
ENZYMES and PROTEINS. Ends with 1 if a result differs; what may differ is left out: seconds,
energy, memory and the program's own version.
"""

import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

NETWORKS = [
    {},
    {"batch_norm": False, "residual": False, "weight_decay": 0.01},
    {"model": "gin"},
    {"model": "gat", "num_heads": 2},
    {"model": "gatedgcn"},
    {"model": "gfl", "depth": 1},
    {"model": "perslay", "depth": 1},
    {"togl": True, "features": "random"},
    {"togl": True, "static": True, "residual_and_bn": False},
    {"togl": True, "tanh_filtrations": True, "share_filtration_parameters": False, "swap_bn_order": True},
    {"togl": True, "deepset": True, "aggregation_fn": "max"},
    {"togl": True, "deepset": True, "static": True, "deepset_type": "linear"},
    {"togl": True, "deepset": True, "deepset_type": "shallow", "aggregation_fn": "sum", "dist_dim1": True},
]
SMALL = {"dataset": "necklaces", "hidden_dim": 8, "depth": 2, "dropout_p": 0.1, "batch_size": 256, "max_epochs": 2}
LARGE = {"dataset": "necklaces", "depth": 4, "max_epochs": 2, "batch_size": 32}
PUBLISHED = [
    {"depth": 4, "batch_size": 20, "max_epochs": 2},
    {"depth": 4, "batch_size": 20, "max_epochs": 2, "togl": True},
    {"depth": 4, "batch_size": 20, "max_epochs": 2, "togl": True, "deepset": True},
    {"depth": 3, "batch_size": 20, "max_epochs": 2, "model": "gin"},
    {"depth": 3, "batch_size": 20, "max_epochs": 2, "model": "gat", "num_heads": 2},
]
VARYING = ["seconds", "finished_at", "energy_joules", "peak_memory"]


def train(worker: str, settings: dict, data: str | None) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trial.yaml"
        file.write_text(f"version: 1\nname: bits\nbase: {json.dumps(settings)}\n")
        command = [worker, "train", "--trial", str(file), "--split", "3", "--seed", "4", "--format", "json", "--fresh"]
        command += ["--checkpoint-dir", folder] + (["--data-dir", data] if data else [])
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{worker}: {settings}: {done.stderr}")
        result = json.loads(done.stdout)
    for field in VARYING:
        result.pop(field, None)
    for field in ["code_version", "commit", "dirty", "host"]:
        result["provenance"].pop(field, None)
    return result


def main() -> int:
    old, new, *data = sys.argv[1:]
    folds = [({**SMALL, **network}, None) for network in NETWORKS]
    folds += [({**LARGE, **network}, None) for network in NETWORKS[:3] + NETWORKS[7:8] + NETWORKS[10:11]]
    for name in ["ENZYMES", "PROTEINS"]:
        folds += [({"dataset": name, **settings}, data[0]) for settings in PUBLISHED if data]
    different = 0
    for settings, folder in folds:
        with ThreadPoolExecutor(2) as pool:
            before, after = pool.map(lambda worker: train(worker, settings, folder), [old, new])
        fields = [field for field in before if before[field] != after.get(field)]
        different += bool(fields)
        print("same     " if not fields else f"DIFFERENT {fields}", json.dumps(settings), flush=True)
    print(f"{len(folds) - different} of {len(folds)} results are the same")
    return different > 0


sys.exit(main())
