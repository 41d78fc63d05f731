"""A graph isomorphism network of PyTorch Geometric on a set of the TU collection, from the files that togl has fetched.

By hand, on any split of your own: the indices come from togl, so run it with `togl run sweeps/examples/programs/gin.yaml`.
"""

import io
import pathlib
import zipfile

import togl
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MLP, GINConv, global_add_pool

EPOCHS = 12


def read(folder, name):
    """The graphs of a set, with the node labels as one-hot features; degrees where there are none."""

    def numbers(what):
        inside = f"{name}_{what}.txt"
        for archive in (folder / "tu" / f"{name}.zip", folder / f"{name}.zip"):
            if archive.is_file():
                with zipfile.ZipFile(archive) as files:
                    found = [entry for entry in files.namelist() if entry.endswith(inside)]
                    return _table(files.read(found[0]).decode()) if found else None
        for place in (folder / "tu" / name / inside, folder / name / inside):
            if place.is_file():
                return _table(place.read_text())
        return None

    edges, owner, classes = numbers("A").T - 1, numbers("graph_indicator")[:, 0] - 1, numbers("graph_labels")[:, 0]
    labels = numbers("node_labels")
    if labels is None:
        labels = torch.bincount(edges[0], minlength=len(owner)).clamp(max=50)
    else:
        labels = labels[:, 0] - labels.min()
    features = torch.nn.functional.one_hot(labels).float()
    classes = torch.unique(classes, return_inverse=True)[1]
    first = torch.searchsorted(owner, torch.arange(len(classes)))
    sizes, graph_of_edge = torch.bincount(owner), owner[edges[0]]
    order = torch.argsort(graph_of_edge, stable=True)
    edges, counts = edges[:, order], torch.bincount(graph_of_edge, minlength=len(classes)).tolist()
    graphs = []
    for at, part in enumerate(edges.split(counts, dim=1)):
        nodes = slice(int(first[at]), int(first[at] + sizes[at]))
        graphs.append(Data(x=features[nodes], edge_index=part - first[at], y=classes[at]))
    return graphs


def _table(text):
    rows = [[int(float(number)) for number in line.split(",")] for line in io.StringIO(text) if line.strip()]
    return torch.tensor(rows)


class GIN(torch.nn.Module):
    def __init__(self, inputs, width, depth, classes):
        super().__init__()
        layers = [MLP([inputs if layer == 0 else width, width, width]) for layer in range(depth)]
        self.layers = torch.nn.ModuleList(GINConv(layer, train_eps=True) for layer in layers)
        self.last = torch.nn.Linear(width, classes)

    def forward(self, batch):
        states = batch.x
        for layer in self.layers:
            states = layer(states, batch.edge_index).relu()
        return self.last(global_add_pool(states, batch.batch))


def measure(model, graphs, device):
    model.eval()
    hits, loss = 0, 0.0
    with torch.no_grad():
        for batch in DataLoader(graphs, 64):
            batch = batch.to(device)
            scores = model(batch)
            hits += int((scores.argmax(1) == batch.y).sum())
            loss += float(torch.nn.functional.cross_entropy(scores, batch.y, reduction="sum"))
    return hits / len(graphs), loss / len(graphs)


with togl.fold(width=32, depth=3) as fold:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    graphs = read(pathlib.Path(fold.data_dir), fold.dataset)
    parts = {part: [graphs[index] for index in fold.indices(part)] for part in ("train", "validation", "test")}
    torch.manual_seed(fold.seed)
    classes = 1 + max(int(graph.y) for graph in graphs)
    model = GIN(graphs[0].num_features, fold.settings["width"], fold.settings["depth"], classes).to(fold.device)
    adam = torch.optim.Adam(model.parameters(), lr=fold.settings["lr"])
    start, best, chosen = 0, -1.0, None
    if fold.resume:
        state = torch.load(fold.resume, weights_only=True)
        model.load_state_dict(state["model"])
        adam.load_state_dict(state["adam"])
        start, best, chosen = state["epoch"] + 1, state["best"], state["chosen"]
    for epoch in range(start, EPOCHS):
        model.train()
        # What is random in an epoch follows from the epoch, so that whoever goes on draws the same.
        torch.manual_seed(1_000_003 * fold.seed + epoch)
        for batch in DataLoader(parts["train"], 32, shuffle=True):
            batch = batch.to(fold.device)
            adam.zero_grad()
            torch.nn.functional.cross_entropy(model(batch), batch.y).backward()
            adam.step()
        (train, train_loss), (validation, validation_loss) = (
            measure(model, parts[part], fold.device) for part in ("train", "validation")
        )
        if validation > best:
            test = measure(model, parts["test"], fold.device)[0]
            best, chosen = validation, {"epoch": epoch, "train": train, "test": test}
        fold.epoch(
            epoch, EPOCHS, train=train, train_loss=train_loss, validation=validation, validation_loss=validation_loss
        )
        if fold.wants_save:
            with fold.saving(epoch) as path:
                state = {"model": model.state_dict(), "adam": adam.state_dict(), "epoch": epoch}
                torch.save({**state, "best": best, "chosen": chosen}, path)
    fold.result(
        test=chosen["test"],
        validation=best,
        train=chosen["train"],
        best_epoch=chosen["epoch"],
        parameters=sum(weights.numel() for weights in model.parameters()),
    )
