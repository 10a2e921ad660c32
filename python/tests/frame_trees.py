"""The Python frames of a recording as trees; for the tests of python frames."""

from __future__ import annotations

import json
import re

import lanescope
from lanescope import profile

CPU = [lanescope.ProfilerActivity.CPU]


class Frame:
    """One python_function event of a written trace, with those that it called."""

    def __init__(self, event):
        self.event = event
        self.name = event["name"]
        self.tid = event["tid"]
        self.start, self.end = event["ts"], event["ts"] + event["dur"]
        self.children = []

    def tree(self):
        """Names below this one: (name, [of what it called])."""
        return (plain(self.name), [child.tree() for child in self.children])

    def below(self, name):
        found = [self] if plain(self.name) == name else []
        return found + [frame for child in self.children for frame in child.below(name)]


def plain(name):
    """Without the line, the folder and addresses: "file.py: f"."""
    name = re.sub(r" object at 0x[0-9a-f]+>", " object>", name)
    found = re.fullmatch(r"(?:.*/)?([^/]*)\(\d+\): (.*)", name)
    return f"{found[1]}: {found[2]}" if found else name


def written(prof, tmp_path):
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text(encoding="utf-8"))


def frames_of(trace):
    """All frames of a trace, by "Python id"; each has its children."""
    events = [event for event in trace["traceEvents"] if event.get("cat") == "python_function"]
    frames = {event["args"]["Python id"]: Frame(event) for event in events}
    assert len(frames) == len(events)
    for frame in frames.values():
        parent = frame.event["args"].get("Python parent id")  # None, or from torch 2.14 on absent
        if parent is None:
            continue
        above = frames[parent]
        assert above.tid == frame.tid
        # Times are whole nanoseconds; a parent holds its children but for their rounding.
        assert above.start <= frame.start + 0.0015 and frame.end <= above.end + 0.0015
        above.children.append(frame)
    return frames


def recorded(tmp_path, run, **options):
    options = options or {"with_stack": True}
    with profile(activities=CPU, **options) as prof:
        run()
    return list(frames_of(written(prof, tmp_path)).values())


def one(frames, name):
    found = [frame for frame in frames if plain(frame.name) == name]
    assert len(found) == 1, (name, sorted({plain(frame.name) for frame in frames}))
    return found[0]
