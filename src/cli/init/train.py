"""One fold of a sweep: `togl run` starts this file once for every trial, split and training seed.

By hand, where the wheel of togl is installed: python3 train.py lr=0.1 split=3
"""

import json
import math
import random

import togl

EPOCHS = 30


def points(seed, count):
    """Two clouds that overlap a little. Put your data set here; fold.data_dir says where those of togl are."""
    draw = random.Random(seed)
    labels = [draw.randrange(2) for _ in range(count)]
    return [([draw.gauss(2 * label, 1.2), draw.gauss(label, 1.2)], label) for label in labels]


def score(weights, point):
    value = weights[0] + sum(weight * x for weight, x in zip(weights[1:], point))
    return 1 / (1 + math.exp(-max(-30, min(30, value))))


def accuracy(weights, data):
    return sum((score(weights, point) > 0.5) == (label == 1) for point, label in data) / len(data)


with togl.fold(lr=0.1, width=8) as fold:
    data = points(fold.split, 400)
    train, validation, test = data[:240], data[240:320], data[320:]
    draw = random.Random(fold.seed)
    weights = [draw.gauss(0, 0.1) for _ in range(3)]
    if fold.resume:  # an earlier attempt was interrupted: go on after its last checkpoint
        weights = json.loads(fold.resume.read_text())
    for epoch in range(fold.start, EPOCHS):
        order = random.Random(f"{fold.seed} {epoch}").sample(train, len(train))
        for begin in range(0, len(order), fold.settings["width"]):
            batch = order[begin : begin + fold.settings["width"]]
            errors = [(score(weights, point) - label, [1, *point]) for point, label in batch]
            for at in range(3):
                weights[at] -= fold.settings["lr"] * sum(error * x[at] for error, x in errors) / len(batch)
        fold.epoch(epoch, EPOCHS, train=accuracy(weights, train), validation=accuracy(weights, validation))
        if fold.wants_save:
            with fold.saving(epoch) as path:  # leaves here when the fold was told to stop
                path.write_text(json.dumps(weights))
    fold.result(test=accuracy(weights, test), validation=accuracy(weights, validation))
