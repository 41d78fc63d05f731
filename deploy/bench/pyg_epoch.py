"""Times a training epoch of a four-layer GCN in PyTorch Geometric, for the ratios of docs/benchmarks.md.

    pip install torch torch_geometric numpy
    python deploy/bench/pyg_epoch.py enzymes DATA_DIR [EPOCHS]
    python deploy/bench/pyg_epoch.py necklaces - [EPOCHS]

Forward, backward and Adam over batches collated beforehand, width 146, one thread. ENZYMES: training part of fold 0,
batches of 20 graphs. Necklaces: 800 graphs in batches of 32.
"""
import io
import pathlib
import sys
import time
import zipfile

import numpy as np
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, global_mean_pool

torch.set_num_threads(1)
torch.set_num_interop_threads(1)


def enzymes(folder):
    archive = zipfile.ZipFile(pathlib.Path(folder) / "tu" / "ENZYMES.zip")

    def read(ending, kind):
        name = next(name for name in archive.namelist() if name.endswith(ending))
        return np.loadtxt(io.BytesIO(archive.read(name)), delimiter=",", dtype=kind, ndmin=1)

    arcs = read("ENZYMES_A.txt", np.int64) - 1
    graph_of = read("graph_indicator.txt", np.int64) - 1
    labels = read("graph_labels.txt", np.int64) - 1
    features = read("node_attributes.txt", np.float32)
    graphs = []
    for graph in range(len(labels)):
        nodes = np.flatnonzero(graph_of == graph)
        own = arcs[graph_of[arcs[:, 0]] == graph] - nodes[0]
        graphs.append(Data(x=torch.tensor(features[nodes]), edge_index=torch.tensor(own.T).contiguous(),
                           y=torch.tensor([int(labels[graph])])))
    fold = (pathlib.Path(folder) / "splits" / "ENZYMES_train.index").read_text().splitlines()[0]
    return [graphs[int(index)] for index in fold.split(",")], 20, 6


def necklaces(_):
    random = np.random.RandomState(0)
    graphs = []
    for _ in range(810):
        nodes = random.randint(10, 20)
        length = nodes - 4
        a, b = length // 3, 2 * length // 3
        p1, p2, q1, q2 = range(length, length + 4)
        label = random.randint(2)
        edges = [(k, k + 1) for k in range(length - 1)] + [(p1, p2), (q1, q2)]
        edges += [(a, p1), (a, p2), (b, q1), (b, q2)] if label else [(a, p1), (a, q1), (b, p2), (b, q2)]
        forward = np.array(edges).T
        both = np.concatenate([forward, forward[::-1]], axis=1)
        graphs.append(Data(x=torch.randn(nodes, 3), edge_index=torch.tensor(both).long().contiguous(),
                           y=torch.tensor([label])))
    return graphs, 32, 2


class Layer(torch.nn.Module):
    def __init__(self, width, last):
        super().__init__()
        self.convolution = GCNConv(width, width, add_self_loops=False)
        self.norm = torch.nn.BatchNorm1d(width)
        self.last = last

    def forward(self, x, arcs):
        y = self.norm(self.convolution(x, arcs))
        return (y if self.last else y.relu()) + x


class Network(torch.nn.Module):
    def __init__(self, features, classes, width=146, depth=4):
        super().__init__()
        self.embedding = torch.nn.Linear(features, width)
        self.layers = torch.nn.ModuleList(Layer(width, i == depth - 1) for i in range(depth))
        self.head = torch.nn.Sequential(
            torch.nn.Linear(width, width // 2), torch.nn.ReLU(), torch.nn.Linear(width // 2, width // 4),
            torch.nn.ReLU(), torch.nn.Linear(width // 4, classes))

    def forward(self, batch):
        x = self.embedding(batch.x)
        for layer in self.layers:
            x = layer(x, batch.edge_index)
        return self.head(global_mean_pool(x, batch.batch, batch.num_graphs))


def main():
    graphs, size, classes = {"enzymes": enzymes, "necklaces": necklaces}[sys.argv[1]](sys.argv[2])
    epochs = int(sys.argv[3]) if len(sys.argv) > 3 else 15
    batches = [Batch.from_data_list(graphs[i:i + size]) for i in range(0, len(graphs) - size + 1, size)]
    network = Network(graphs[0].x.shape[1], classes)
    optimiser = torch.optim.Adam(network.parameters(), lr=7e-4)
    loss_of = torch.nn.CrossEntropyLoss()
    times = []
    for epoch in range(epochs + 3):
        begun = time.thread_time()
        for batch in batches:
            optimiser.zero_grad()
            loss_of(network(batch), batch.y).backward()
            optimiser.step()
        if epoch >= 3:
            times.append(1e3 * (time.thread_time() - begun))
    print(f"PyG GCN-4: median {np.median(times):.1f} ms, least {min(times):.1f} ms")


main()
