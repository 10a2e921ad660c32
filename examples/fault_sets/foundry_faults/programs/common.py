"""What the programs share; the list and the parts are those of the other folders."""

from __future__ import annotations

import torch

from pair_list import pair, PAIRS, recorded, trap  # noqa: F401  of examples/faults, for the programs and record.py
from training_parts import tower, update  # noqa: F401  of examples/faults


def half(device: str) -> torch.dtype:
    return torch.bfloat16 if device == "cuda" else torch.float32


def captured(s, function, stream=None):
    """A function that replays a CUDA graph and returns its outputs; on a CPU the function itself."""
    if s.device != "cuda":
        return function
    stream = stream or torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        outputs = function()

    def replay():
        graph.replay()
        return outputs

    replay.reads = function  # the graph holds addresses only
    return replay
