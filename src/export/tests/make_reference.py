#!/usr/bin/env python3
"""Writes events.out.tfevents.reference with TensorBoard's own messages and record writer (pip install tensorboard)."""
import pathlib

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util.tensor_util import make_tensor_proto

path = pathlib.Path(__file__).parent / "events.out.tfevents.reference"
with path.open("wb") as file:
    writer = RecordWriter(file)
    version = event_pb2.Event(wall_time=1_700_000_000.5, file_version="brain.Event:2")
    writer.write(version.SerializeToString(deterministic=True))
    scalar = summary_pb2.Summary.Value(tag="validation/loss", simple_value=0.625)
    metadata = summary_pb2.SummaryMetadata(data_class=summary_pb2.DATA_CLASS_TENSOR)
    metadata.plugin_data.plugin_name = "text"
    text = summary_pb2.Summary.Value(tag="settings", tensor=make_tensor_proto("| depth | 4 |"), metadata=metadata)
    event = event_pb2.Event(wall_time=1_700_000_001.25, step=3, summary=summary_pb2.Summary(value=[scalar, text]))
    writer.write(event.SerializeToString(deterministic=True))
