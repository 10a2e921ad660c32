"""The lines that led to an operator are the same whether Python frames are recorded or not."""

from __future__ import annotations

import functools
import sys

import pytest

import lanescope
from lanescope import _frames, profile

from test_torch_stacks import Triple, Worker, leaf

CPU = [lanescope.ProfilerActivity.CPU]


def record(run, imports=True):
    prof = profile(activities=CPU, with_stack=True)
    prof._frames_of_imports = imports
    with prof:
        run()
    return prof


def stacks_by_thread(prof):
    """(name, lines of the calls) of each operator, in order, thread by thread."""
    by_thread = {}
    for event in prof.events():
        if event.name.startswith(("aten::", "autograd::", "mine")):
            by_thread.setdefault(event.thread, []).append((event.name, event.args.get("Call stack")))
    return sorted(by_thread.values(), key=len)


def stacks_both_ways(run, monkeypatch):
    run()
    profs = []
    for with_frames in (True, False):
        with monkeypatch.context() as patch:
            if not with_frames:
                patch.setattr(_frames, "hold", lambda *args, **options: [])
            profs.append(record(run))
        assert ("python_function" in profs[-1].trace.categories) == with_frames
    return [stacks_by_thread(prof) for prof in profs]


@pytest.fixture
def worker():
    made = Worker()
    yield made
    made.end()


def numbers(x):
    for _ in range(3):
        x = x + 1
        yield x.neg()


def delegating(x):
    try:
        yield from numbers(x)
    except ValueError:
        x.abs()
        yield x.sqrt()


def fail_after(x):
    x.exp()
    raise ValueError(x.neg().sum().item())


def catch(x):
    try:
        fail_after(x)
    except ValueError:
        x.abs()
    return x.neg()


def throw_into(x):
    generator = delegating(x)
    next(generator)
    x.sin()
    generator.throw(ValueError())
    generator.close()
    return x.cos()


def in_c_functions(torch, x):
    list(map(leaf, [x, x]))
    sorted([2, 1], key=lambda value: leaf(x).sum().item() + value)
    functools.partial(leaf, x)()
    torch.stack([x, x]).sum()
    first = x * 2
    second = first - x
    functools.reduce(lambda a, b: a + b, [first, second, x])
    return second @ first


def backward_with_hooks(x):
    """Python code runs between the nodes of one call, on the way to them and in them."""
    y = x.exp()
    y.register_hook(leaf)
    z = y.sin() * 2
    z.register_hook(lambda gradient: leaf(gradient) + gradient.abs())
    z.sum().backward()
    return x.grad.neg()


def test_recording_frames_changes_no_stack_of_an_operator(torch, worker, monkeypatch):
    x = torch.ones(3, requires_grad=True)
    triple = Triple.make(torch)

    def program():
        for value in delegating(x):
            value.sum()
        catch(x)
        throw_into(x)
        in_c_functions(torch, x)
        triple.apply(x).sum().backward()
        backward_with_hooks(x)
        worker.run(lambda: catch(torch.ones(2)))
        exec(compile("def made(x):\n  return [x.neg() for _ in 'ab']\nmade(x)", "made", "exec"), {"x": x})

    with_frames, alone = stacks_both_ways(program, monkeypatch)
    assert len(alone) >= 2 and len(alone[-1]) > 60
    assert all(stack for _, stack in alone[-1])
    assert with_frames == alone


def scripted(torch):
    if sys.version_info >= (3, 14):
        pytest.skip("torch.jit.script supports Python up to 3.13")

    def forked(x):
        future = torch.jit.fork(torch.neg, x)
        return torch.jit.wait(future).abs() + x.sin()

    return torch.jit.script(forked)


def test_operators_of_a_thread_without_python_have_no_stack(torch, monkeypatch):
    run, x = scripted(torch), torch.ones(3)

    def program():
        for _ in range(3):
            run(x)
            leaf(x)

    with_frames, alone = stacks_both_ways(program, monkeypatch)
    assert sum(len(operators) for operators in alone) == sum(len(operators) for operators in with_frames)
    for threads in (with_frames, alone):
        found = [stack for operators in threads for name, stack in operators if name == "aten::neg"]
        assert None in found and any(stack and "leaf" in stack for stack in found)
        assert all("in program" in stack or "program" in stack for stack in found if stack)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="needs Python 3.11 or older: sys.monitoring has a place for each tool")
def test_a_hook_that_comes_later_leaves_no_wrong_stacks(torch, monkeypatch):
    x = torch.ones(3)

    def replaced():
        sys.setprofile(lambda *event: None)
        x.neg()

    def sibling():
        x.neg()
        return x + 1

    def program():
        replaced()
        sibling()
        list(map(leaf, [x, x]))
        sys.setprofile(None)
        sibling()

    with_frames, alone = stacks_both_ways(program, monkeypatch)
    assert with_frames == alone


def test_an_import_whose_frames_are_left_out_changes_no_stack(torch, tmp_path, monkeypatch):
    lines = "import torch\nfrom test_torch_stacks import Triple\nTriple.make(torch).apply(torch.ones(3, requires_grad=True)).sum().backward()\n"
    (tmp_path / "works_when_imported.py").write_text(lines)
    monkeypatch.syspath_prepend(str(tmp_path))

    def run():
        sys.modules.pop("works_when_imported", None)
        __import__("works_when_imported")

    monkeypatch.setattr(sys.modules[__name__], "record", functools.partial(record, imports=False))
    with_frames, without = stacks_both_ways(run, monkeypatch)
    assert with_frames == without
    assert any("test_torch_stacks.py" in str(lines) and "backward" in str(lines) for _, lines in with_frames[0])
