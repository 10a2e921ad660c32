"""TensorBoard's profiler plugin (torch-tb-profiler) reads lanescope's files as it reads torch.profiler's."""

from __future__ import annotations

import torch
from conftest import need, with_both
from small_models import images, resnet

need("torch_tb_profiler")
from torch_tb_profiler import io  # noqa: E402
from torch_tb_profiler.profiler.data import RunProfileData  # noqa: E402
from torch_tb_profiler.profiler.run_generator import RunGenerator  # noqa: E402


def train(profiler, folder, **arguments):
    model, inputs = resnet(), images()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU],
        schedule=profiler.schedule(wait=0, warmup=1, active=3, repeat=1),
        on_trace_ready=profiler.tensorboard_trace_handler(str(folder), worker_name="worker0"),
        record_shapes=True,
        **arguments,
    ) as prof:
        for _ in range(5):
            optimizer.zero_grad()
            model(inputs).sum().backward()
            optimizer.step()
            prof.step()


def read(folder):
    """As the plugin's loader does in a separate process."""
    path = max(folder.iterdir(), key=lambda file: int(file.name.split(".")[1]))
    cache = io.Cache()
    data = RunProfileData.parse("worker0", None, cache.get_remote_cache(str(path)), cache.cache_dir)
    return data, RunGenerator("worker0", None, data).generate_run_profile()


def calls(table, *columns):
    """Calls of each row of one of the plugin's tables; without times."""
    return sorted(tuple(str(row[column]) for column in columns) for row in table["data"])


def test_operator_view_steps_and_memory_view(tmp_path):
    def program(profiler):
        folder = tmp_path / profiler.__name__
        train(profiler, folder, profile_memory=True)
        data, profile = read(folder)
        memory = profile.get_memory_stats()
        return {
            "views": [view.display_name for view in profile.views],
            "steps": list(data.steps_names),
            "operators": calls(profile.operation_table_by_name, "name", "calls"),
            "operators and shapes": calls(profile.operation_table_by_name_input, "name", "input_shape", "calls"),
            "memory rows": {device: sorted((row[0], row[1]) for row in rows) for device, rows in memory["rows"].items()},
        }

    theirs, ours = with_both(program)
    assert len(theirs["operators"]) > 20 and theirs["steps"] == ["1", "2", "3"] and theirs["memory rows"]
    assert ours == theirs


def test_operator_tree(tmp_path):
    def program(profiler):
        folder = tmp_path / profiler.__name__
        train(profiler, folder)
        data, _ = read(folder)

        def names(node):
            return node.name, [names(child) for child in node.children]

        return [names(root) for _, root in sorted(data.tid2tree.items())]

    theirs, ours = with_both(program)
    assert [without_root(tree) for tree in ours] == [without_root(tree) for tree in theirs]


def without_root(tree):
    """A thread's root has the thread's id in its name."""
    return tree[1]


def test_module_view(tmp_path):
    def program(profiler):
        folder = tmp_path / profiler.__name__
        train(profiler, folder, with_stack=True, with_modules=True)
        _, profile = read(folder)
        view = profile.get_module_view()
        if view is None:
            return None

        def rows(modules):
            return [(row["name"], row["occurences"], row["operators"], rows(row["children"])) for row in modules]

        return rows(view["data"])

    theirs, ours = with_both(program)
    assert theirs
    assert ours == theirs
