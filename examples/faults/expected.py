"""What `lanescope explain` should say of a program, for the files expectations.py of the sets of faults."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Expected:
    """One pair of a bad program and its good twin. Patterns find words in a text of explain; a reader decides."""

    mechanism: str  # a sentence: who holds the time, and why
    cause: str  # pattern of the mechanism
    place: str = ""  # the line of the program, or its function
    owner: str = ""  # pattern of who holds the time; empty: the cause names it, too
    remedy: str = ""  # a sentence
    fix: str = ""  # pattern of the remedy
    gain: str = ""  # about how much of the bad step the fault holds, on a GPU; empty: nobody wrote it down
    forbidden: str = ""  # pattern: false of the good twin
    told: str = ""  # what a reader counts as told
    partly: str = ""  # what a reader counts as partly told


def trap(why: str, forbidden: str) -> Expected:
    """A program without the fault that it seems to have. `forbidden`: pattern of what would be false of it."""
    nothing = "$^"
    return Expected(why, cause=nothing, owner=nothing, fix=nothing, gain="nothing", forbidden=forbidden)
