"""Every order of start, step, stop and their parts that torch.profiler accepts records what torch.profiler records."""

from __future__ import annotations

import warnings

import pytest

import lanescope
from lanescope import ProfilerActivity


@pytest.fixture
def both(torch):
    """Runs one program with torch's profiler and with ours, and gives what each saw."""

    def names(prof, with_steps):
        kept = ("aten::sin", "aten::cos", "aten::tan", "aten::exp", "mine")
        return [
            event.trace_name
            for event in prof.events()
            if event.name in kept or (with_steps and event.name == "ProfilerStep*")
        ]

    def run(program, with_steps=True, **options):
        seen = []
        for module in (torch.profiler, lanescope):
            plan = options.get("plan")
            more = {} if plan is None else {"schedule": module.schedule(**plan)}
            ready = []
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                prof = module.profile(
                    activities=[ProfilerActivity.CPU],
                    on_trace_ready=lambda p, ready=ready: ready.append(names(p, with_steps)),
                    **more,
                    **{key: value for key, value in options.items() if key != "plan"},
                )
                program(prof)
            seen.append((names(prof, with_steps), ready))
        return seen

    return run


CYCLES = {"wait": 1, "warmup": 1, "active": 2, "repeat": 2}


def steps(torch, count):
    def program(prof):
        for _ in range(count):
            torch.ones(2).sin()
            prof.step()

    return program


def test_step_without_start_records_as_torch_does(both, torch):
    def program(prof):
        steps(torch, 4)(prof)

    theirs, ours = both(program, plan=CYCLES)
    assert theirs[0] == ["ProfilerStep#2", "aten::sin", "ProfilerStep#3", "aten::sin"] and theirs == ours


@pytest.mark.parametrize("count", [3, 4, 8, 9, 12])
def test_a_schedule_in_a_with_statement(both, torch, count):
    def program(prof):
        with prof:
            steps(torch, count)(prof)

    theirs, ours = both(program, plan=CYCLES)
    assert theirs[0] and theirs == ours


@pytest.mark.parametrize("repeat", [0, 3])
def test_cycles_without_warm_up_and_wait(both, torch, repeat):
    def program(prof):
        with prof:
            steps(torch, 3)(prof)

    theirs, ours = both(program, plan={"wait": 0, "warmup": 0, "active": 1, "repeat": repeat})
    assert theirs[0] and theirs == ours


def test_enter_by_hand(both, torch):
    def program(prof):
        entered = prof.__enter__()
        assert entered is prof
        torch.ones(2).sin()
        prof.__exit__(None, None, None)

    theirs, ours = both(program)
    assert theirs == ours == (["aten::sin"], [["aten::sin"]])


def test_start_and_stop_again_and_again(both, torch):
    def program(prof):
        for function in (torch.sin, torch.cos):
            prof.start()
            function(torch.ones(2))
            prof.stop()
            torch.ones(2).tan()

    theirs, ours = both(program)
    assert theirs == ours == (["aten::cos"], [["aten::sin"], ["aten::cos"]])


def test_start_again_goes_on_accumulating(torch):
    """torch has the later cycle first."""

    def seen(module):
        prof = module.profile(activities=[ProfilerActivity.CPU], acc_events=True)
        for function in (torch.sin, torch.cos):
            prof.start()
            function(torch.ones(2))
            prof.stop()
            torch.ones(2).tan()
        prof.start()
        prof.stop()
        return {event.name for event in prof.events()} & {"aten::sin", "aten::cos", "aten::tan"}

    assert seen(lanescope) == seen(torch.profiler) == {"aten::sin", "aten::cos"}


def test_a_recording_that_can_go_on_ends_with_its_profile(run_python, tmp_path):
    done = run_python(
        "-Walways",
        env={"TMPDIR": str(tmp_path)},
        code="""
import gc, glob, os, lanescope
pattern = os.path.join(os.environ["TMPDIR"], "*.lspool")
first, second = (lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], acc_events=True) for _ in range(2))
for prof in (first, second):
    for name in ("one", "two"):
        with prof:
            with lanescope.record_function(name):
                pass
    assert [event.name for event in prof.events()] == ["one", "two"], prof.events()
    assert prof.cycles == range(1, 3)
del first, prof
gc.collect()
assert glob.glob(pattern)
""",
    )
    assert done.stderr == "" and not list(tmp_path.glob("*.lspool"))


def test_start_again_goes_on_with_the_schedule(both, torch):
    def program(prof):
        prof.start()
        steps(torch, 3)(prof)
        prof.stop()
        prof.start()
        steps(torch, 1)(prof)
        prof.stop()

    theirs, ours = both(program, plan={"wait": 1, "warmup": 1, "active": 4})
    assert theirs[0] == ["ProfilerStep#3", "aten::sin", "ProfilerStep#4"] and theirs == ours


def test_a_framework_opens_and_closes_windows_itself(both, torch):
    def program(prof):
        prof.prepare_trace()
        torch.ones(2).tan()
        prof.start_trace()
        torch.ones(2).sin()
        with lanescope.record_function("mine"):
            pass
        prof.stop_trace()
        torch.ones(2).exp()

    theirs, ours = both(program)
    assert theirs == ours == (["aten::sin", "mine"], [])

    def twice(prof):
        program(prof)
        prof.prepare_trace()
        prof.start_trace()
        torch.ones(2).cos()
        prof.stop_trace()

    theirs, ours = both(twice)
    assert theirs == ours == (["aten::cos"], [])


def test_a_framework_accumulates(torch):
    prof = lanescope.profile(activities=[ProfilerActivity.CPU], acc_events=True)
    for function in (torch.sin, torch.cos):
        prof.prepare_trace()
        prof.start_trace()
        function(torch.ones(2))
        prof.stop_trace()
    assert {"aten::sin", "aten::cos"} <= {event.name for event in prof.events()}
    assert prof.key_averages().cycles == range(1, 3)


def test_a_window_that_a_framework_closed_ends_without_a_word(run_python):
    done = run_python(
        "-Walways",
        code="""
import gc, lanescope
for acc_events in (False, True):
    prof = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], acc_events=acc_events)
    prof.prepare_trace()
    prof.start_trace()
    with lanescope.record_function("mine"):
        pass
    prof.stop_trace()
    assert [event.name for event in prof.events()] == ["mine"]
    if not acc_events:
        del prof
        gc.collect()
""",
    )
    assert done.stderr == ""


def test_the_parts_say_when_they_are_called_too_early():
    prof = lanescope.profile(activities=[ProfilerActivity.CPU])
    for call in (prof.start_trace, prof.stop_trace, prof.stop, prof.events, prof.key_averages, prof.total_average):
        with pytest.raises(AssertionError):
            call()
        with pytest.raises(RuntimeError):
            call()
    assert prof.profiler is None
    prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])  # torch says nothing here either


def test_steps_that_can_record_nothing_are_said_once():
    lanescope.profiler._warned.clear()
    prof = lanescope.profile(activities=[ProfilerActivity.CPU])
    with pytest.warns(UserWarning, match="does not run: call start"):
        prof.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prof.step()


def test_collection_is_switched_off_and_on_in_the_middle_of_a_cycle(both, torch):
    def program(prof):
        with prof:
            torch.ones(2).sin()
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
            torch.ones(2).tan()
            with torch.profiler.record_function("mine"):
                torch.ones(2).tan()
            prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
            torch.ones(2).cos()

    theirs, ours = both(program)
    assert theirs == ours == (["aten::sin", "aten::cos"], [["aten::sin", "aten::cos"]])


@pytest.mark.parametrize("kept", [False, True])
def test_what_is_switched_off_stays_within_its_cycle(tmp_path, kept):
    def work(name):
        with lanescope.record_function(name):
            pass

    prof = lanescope.profile(
        activities=[ProfilerActivity.CPU],
        schedule=lanescope.schedule(wait=0, warmup=1, active=1),
        output_dir=str(tmp_path) if kept else None,
    )
    seen = []
    prof.on_trace_ready = lambda p: seen.append([e.name for e in p.events() if e.name != "ProfilerStep*"])
    with prof:
        for number in range(2):
            prof.step()
            work(f"before {number}")
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
            work("left out")
            prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
            work(f"after {number}")
            prof.step()
    assert seen == [["before 0", "after 0"], ["before 1", "after 1"]]
    assert prof.key_averages().cycles == range(2, 3)


def test_one_side_alone_is_not_switched(monkeypatch):
    import lanescope.profiler as module

    module._warned.clear()
    monkeypatch.setattr(module._activities, "has_gpu", lambda: True)
    monkeypatch.setattr(module._activities, "cupti_library", lambda: "there")
    with lanescope.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        with pytest.warns(UserWarning, match="name CUDA as well"):
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        with lanescope.record_function("still recorded"):
            pass
    assert "still recorded" in [event.name for event in prof.events()]


def test_steps_stay_where_they_are_with_adjust_profiler_step(torch):
    """torch.profiler would begin each step inside step(), without the operators of the step."""
    lanescope.profiler._warned.clear()
    config = torch._C._profiler._ExperimentalConfig(adjust_profiler_step=True)
    plan = lanescope.schedule(wait=0, warmup=1, active=3, repeat=1)
    with pytest.warns(UserWarning, match="adjust_profiler_step is ignored: .* leave the option out"):
        prof = lanescope.profile(
            activities=[lanescope.ProfilerActivity.CPU], with_stack=True, schedule=plan, experimental_config=config
        )
    with prof:
        for _ in range(5):
            torch.ones(2).neg()
            prof.step()
    steps = [event for event in prof.events() if event.name == "ProfilerStep*"]
    assert [[child.name for child in step.cpu_children] for step in steps] == [["aten::ones", "aten::neg"]] * 3
