"""The lines of recorded call stacks, for tests. `file`: the base name of a test's own file."""

from __future__ import annotations

import re


def lines_of(event):
    """The lines of the calls, as they were recorded."""
    return event.args.get("Call stack", "").rstrip(";").split(";") if "Call stack" in event.args else []


def stacks_of(prof, name):
    return [lines_of(event) for event in prof.events() if event.name == name]


def in_file(stack, file):
    return [frame for frame in stack if f"/{file}(" in "/" + frame]


def functions_in(stack, file):
    return [frame.split("): ")[1] for frame in in_file(stack, file)]


def lines_in(stack, file):
    return [int(re.search(r"\((\d+)\): ", frame).group(1)) for frame in in_file(stack, file)]
