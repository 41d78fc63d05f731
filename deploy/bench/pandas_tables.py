"""The table of a million folds with pandas, for comparison with `togl`.

Reads the Parquet file that the example `million_folds` keeps when it is given a name, and makes the same table: mean,
sample standard deviation and number of folds of the test accuracy for each method on each data set, in percent, with
the best of each column, a check that no fold is there twice, and a check that each cell is of one program and one data
digest. Renders it as text, CSV, HTML and as JSON that names the folds behind every cell; togl adds Markdown and LaTeX, for
which pandas needs further packages. Needs pandas and pyarrow.

    cargo run --release -p togl-analysis --example million_folds -- 1000000 folds.parquet
    python3 deploy/bench/pandas_tables.py folds.parquet
"""

import resource
import sys
import time

import pandas


def timed(what, work):
    start = time.perf_counter()
    outcome = work()
    print(f"{time.perf_counter() - start:8.3f} s  {what}")
    return outcome


def load(path):
    frame = pandas.read_parquet(path)
    repeated = frame.duplicated(["trial", "split", "seed"])
    if repeated.any():
        raise SystemExit(f"{repeated.sum()} folds are there twice")
    return frame.sort_values(["position", "split", "seed"], kind="stable")


def table(frame):
    cells = frame.groupby(["method", "dataset"], sort=False)
    summary = cells["test_accuracy"].agg(["mean", "std", "count"])
    summary[["mean", "std"]] *= 100
    same = ["code_version", "commit", "dirty", "libtorch", "data_digest", "device", "numerics"]
    summary["mixed"] = (cells[same].nunique() > 1).any(axis=1)
    summary["best"] = summary["mean"] == summary.groupby("dataset")["mean"].transform("max")
    return summary


def render(frame, cells):
    folds = frame["trial"] + "/" + frame["split"].astype(str) + "/" + frame["seed"].astype(str)
    named = folds.groupby([frame["method"], frame["dataset"]], sort=False).agg(list)
    whole = cells.assign(folds=named).reset_index().to_json(orient="records", lines=True)
    return sum(map(len, [cells.to_string(), cells.to_csv(), cells.to_html(), whole]))


def main():
    frame = timed("loaded Parquet (duplicates checked, rows ordered)", lambda: load(sys.argv[1]))
    print(f"{len(frame)} folds, {frame.shape[1]} columns")
    cells = timed("made the table", lambda: table(frame))
    length = timed("rendered text, CSV, HTML and JSON", lambda: render(frame, cells))
    print(f"{len(cells)} cells, {length} characters, pandas {pandas.__version__}")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB at the most")


if __name__ == "__main__":
    main()
