"""_memory_profile() and export_memory_timeline sort memory as torch.profiler does, for the same program."""

from __future__ import annotations

import gc
import gzip
import json
import os
import subprocess
import sys
import tempfile
import warnings

import pytest

import lanescope
from lanescope import tensor_identities

FLAGS = dict(profile_memory=True, record_shapes=True, with_stack=True)


def mlp_and_adam(torch):
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters())
    loss_of = torch.nn.CrossEntropyLoss()

    def steps():
        for _ in range(2):
            inputs, targets = torch.randn(32, 64), torch.randint(0, 10, (32,))
            optimizer.zero_grad()
            loss_of(model(inputs), targets).backward()
            optimizer.step()

    return steps


def foreach_adam(torch):
    model = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(20)))  # lists of more than 30 tensors
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)

    def steps():
        for _ in range(2):
            model(torch.randn(4, 16)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    return steps


def conv_and_sgd(torch):
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 16, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(16, 4),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    inputs, targets = torch.randn(8, 3, 16, 16), torch.randint(0, 4, (8,))

    def steps():
        for _ in range(3):
            optimizer.zero_grad(set_to_none=False)
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()

    return steps


def inference(torch):
    model = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()

    def steps():
        with torch.no_grad():
            for _ in range(2):
                model(torch.randn(2, 5, 32))

    return steps


def views_and_resizes(torch):
    """A TensorImpl that gets another storage, in-place changes, tensors of no elements, and addresses that come again."""
    weight = torch.ones(64, requires_grad=True)

    def steps():
        grown = torch.ones(4)
        grown.resize_(1024)
        swapped = torch.ones(8)
        swapped.data = torch.ones(2048)
        empty = torch.empty(0)
        for _ in range(10):
            value = (weight * 2).view(8, 8)[1:].t().contiguous()
            value.sum().backward()
        torch.cat([grown, swapped, empty])
        (grown + 1j).abs()

    return steps


PROGRAMS = [mlp_and_adam, foreach_adam, conv_and_sgd, inference, views_and_resizes]


def recorded(torch, profile, program):
    torch.manual_seed(1)
    steps = program(torch)
    with profile(activities=[torch.profiler.ProfilerActivity.CPU], **FLAGS) as prof:
        steps()
    return prof


def rows(profile):
    """What was there before, sorted; then everything else in order."""
    found = [
        [action.name, size, getattr(profile._categories.get(key, version), "name", None), str(key.device), time < 0]
        for time, action, (key, version), size in profile.timeline
    ]
    return sorted((row for row in found if row[-1]), key=str), [row for row in found if not row[-1]]


def files(prof, folder):
    raw, plain = os.path.join(folder, "m.raw.json.gz"), os.path.join(folder, "m.json")
    prof.export_memory_timeline(raw, device="cpu")
    prof.export_memory_timeline(plain, device="cpu")
    with gzip.open(raw, "rt") as file:
        events = json.load(file)
    with open(plain, encoding="utf-8") as file:
        times, sizes = json.load(file)
    assert times == sorted(times) and len(times) == len(sizes)
    return sorted(row[1:] for row in events if row[0] == -1), [row[1:] for row in events if row[0] != -1], sizes[0], sizes[-1]


def flow(profile):
    """Which tensors each operator takes, makes and destroys, by their ids and versions."""
    return [
        [node._event.name, [[k.id, v] for k, (_, v) in node.inputs.items()], [[k.id, v] for k, v in node.outputs.items()]]
        for node in profile._data_flow_graph.flow_nodes
    ]


def main(which):
    """Prints what one profiler finds in each program."""
    import torch

    profile = {"torch": torch.profiler.profile, "lanescope": lanescope.profile}[which]
    if which == "lanescope":
        warnings.filterwarnings("error", message=".*category Unknown.*")
    found = {}
    for program in PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            prof = recorded(torch, profile, program)
            memory = prof._memory_profile()
            found[program.__name__] = {"rows": rows(memory), "flow": flow(memory), "files": files(prof, folder)}
        # torch's CPU allocator reports the frees of what was allocated in a window, and forgets it only while a profiler
        # counts memory. What stayed would appear in the next program's window, by chance.
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True):
            del prof, memory
            gc.collect()
    print("RESULT", json.dumps(found))


@pytest.fixture(scope="module")
def found():
    """By profiler; each in a process of its own, for addresses of freed memory that one left change what the other sees."""
    pytest.importorskip("torch.profiler._memory_profiler")
    result = {}
    for which in ("torch", "lanescope"):
        done = subprocess.run([sys.executable, __file__, which], stdout=subprocess.PIPE, check=True, text=True, timeout=600)
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        result[which] = json.loads(line[len("RESULT ") :])
    return result


@pytest.mark.parametrize("program", [program.__name__ for program in PROGRAMS])
@pytest.mark.parametrize("part", ["rows", "flow", "files"])
def test_timeline_data_flow_and_files_are_torchs(found, program, part):
    theirs, ours = found["torch"][program][part], found["lanescope"][program][part]
    assert ours == theirs
    assert len(theirs) > 1


def test_a_training_step_has_each_category(found):
    assert {row[2] for row in found["lanescope"]["mlp_and_adam"]["rows"][1]} >= {
        "PARAMETER", "GRADIENT", "OPTIMIZER_STATE", "INPUT", "TEMPORARY", "ACTIVATION", "AUTOGRAD_DETAIL"
    }  # fmt: skip


def test_each_flag_is_needed(torch):
    for missing in FLAGS:
        with lanescope.profile(activities=[torch.profiler.ProfilerActivity.CPU], **{**FLAGS, missing: False}) as prof:
            torch.nn.Linear(2, 2)(torch.ones(1, 2))
        with pytest.raises(ValueError, match=f"^{missing}=True required for memory profiling"):
            prof._memory_profile()
        assert not any("lanescope tensors" in prof.trace.args(row) for row in range(len(prof.trace)))


def test_each_cycle_has_its_parameters(torch):
    model, found = torch.nn.Linear(32, 32), []

    def ready(prof):
        found.append(rows(prof._memory_profile()))

    with lanescope.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=lanescope.schedule(wait=1, warmup=0, active=1, repeat=2),
        on_trace_ready=ready,
        **FLAGS,
    ) as prof:
        for _ in range(4):
            model(torch.randn(4, 32)).sum()
            prof.step()
    assert len(found) == 2
    for before, _ in found:
        assert {row[1] for row in before if row[2] == "PARAMETER"} == {32 * 32 * 4, 32 * 4}


def test_the_hook_of_optimizers_ends_with_the_window_and_is_not_seen(torch):
    from torch.optim import optimizer

    before = len(optimizer._global_optimizer_post_hooks)
    prof = recorded(torch, lanescope.profile, mlp_and_adam)
    assert len(optimizer._global_optimizer_post_hooks) == before
    if sys.version_info >= (3, 11):
        assert not [name for name in prof.trace.names if "_tensors.py" in name]


def test_tensors_beyond_the_limit_are_recorded_as_lost(torch):
    rows = torch.zeros(1000, 1)
    with lanescope.profile(activities=[torch.profiler.ProfilerActivity.CPU], **FLAGS) as prof:
        for _ in range(270):  # 1000 new tensors each time; there is room for 262144
            torch.cat(rows.unbind())
    trace, lost = prof.trace, []
    for row in range(len(trace)):
        if trace.name(row) == "aten::cat":
            tensors = tensor_identities._as_list(trace.args(row)["lanescope tensors"])
            assert len(tensors) == 1000
            lost.append(sum(tensor[0] == tensor_identities._LOST for tensor in tensors))
    assert len(lost) == 270 and sum(lost[:262]) == 0 and all(count == 1000 for count in lost[263:])


def test_scalars_as_torch_prints_them():
    assert [tensor_identities._scalar(text) for text in ("True", "False", "-3", "1.", "1e-05", "(1+2j)", "x")] == [
        True, False, -3, 1.0, 1e-05, 1 + 2j, None
    ]  # fmt: skip


class Thing(tensor_identities.Allocation):
    def __init__(self, address, size):
        super().__init__({"Addr": address, "Bytes": size}, "cpu")


class FakeTorch:
    strided, sparse_coo, uint8 = "strided", "sparse", "uint8"


def operator(*tensors):
    inputs = [tensor_identities.Tensor(FakeTorch, address, implementation, 4, "cpu") for address, implementation in tensors]
    return tensor_identities.Operator("aten::x", 0, inputs)


def test_ids_by_hand():
    """Address 1: a tensor, freed, then another one; address 2: never a tensor's; TensorImpl 8 changes its storage."""
    fields = [
        Thing(1, 4), operator((1, 7)), Thing(2, 4), Thing(1, -4), Thing(1, 4), operator((1, 8)), Thing(3, 4),
        operator((3, 8), (0, 9)),
    ]  # fmt: skip
    events = [tensor_identities.Event(None, field, "", 1, at, at) for at, field in enumerate(fields)]
    tensor_identities.identify(events)
    assert [thing.allocation_id for thing in fields if isinstance(thing, Thing)] == [1, 2, 1, 3, 4]
    assert [thing.id for thing in fields if isinstance(thing, Thing)] == [0, None, 0, 1, 1]
    last = fields[-1].inputs
    assert [(tensor.id, tensor.allocation_id) for tensor in last] == [(1, 4), (2, 5)]


if __name__ == "__main__":
    main(sys.argv[1])
