"""Times GUDHI on random graphs of two sizes, for the ratios of docs/benchmarks.md.

    pip install gudhi numpy
    python deploy/bench/gudhi_persistence.py

Builds the simplex tree of a lower-star filtration and computes its persistence in dimensions 0 and 1, once inserting
simplices one by one and once with insert_batch; microseconds per (graph, filtration).
"""
import time

import gudhi
import numpy as np


def one_by_one(values, edges):
    tree = gudhi.SimplexTree()
    for vertex, value in enumerate(values):
        tree.insert([vertex], filtration=value)
    for u, w in edges:
        tree.insert([u, w], filtration=max(values[u], values[w]))
    tree.compute_persistence(persistence_dim_max=True)


def batched(values, edges):
    tree = gudhi.SimplexTree()
    tree.insert_batch(np.arange(len(values))[None, :], values)
    tree.insert_batch(edges.T.copy(), np.maximum(values[edges[:, 0]], values[edges[:, 1]]))
    tree.compute_persistence(persistence_dim_max=True)


def graph(random, vertices, edges):
    tree = [(random.integers(vertex), vertex) for vertex in range(1, vertices)]
    seen = set(tree)
    while len(seen) < edges:
        u, w = sorted(random.integers(vertices, size=2))
        if u != w:
            seen.add((u, w))
    return np.array(sorted(seen), dtype=np.int32)


random = np.random.default_rng(0)
for vertices, edges in [(33, 62), (284, 716)]:
    graphs = [(random.random(vertices), graph(random, vertices, edges)) for _ in range(50)]
    plain = [(values.tolist(), pairs.tolist()) for values, pairs in graphs]  # one by one is faster on plain numbers
    for name, compute, inputs in [("one by one", one_by_one, plain), ("insert_batch", batched, graphs)]:
        times = []
        for values, list_of_edges in inputs * 4:
            begun = time.perf_counter()
            compute(values, list_of_edges)
            times.append(1e6 * (time.perf_counter() - begun))
        print(f"{vertices} vertices, {edges} edges, {name}: median {np.median(times):.1f} us, least {min(times):.1f} us")
