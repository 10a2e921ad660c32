"""Tests that pass with torch.profiler and not with lanescope, for reasons outside of its public API, each named.

An entry holds only while the test fails as the entry says: a test that fails in another way counts as lanescope's.
"""

from __future__ import annotations

import fnmatch
import re
from typing import NamedTuple, Optional, Sequence


class Internal(NamedTuple):
    test: str  # a shell pattern of FILE::CLASS::TEST
    message: str  # a regular expression that the failure's text has somewhere
    reason: str


INTERNALS: Sequence[Internal] = (
    Internal(
        "*",
        r"UnsupportedError: experimental_event_tree",
        "reads torch's event tree, prof.profiler.kineto_results.experimental_event_tree(), whose nodes hold the identities of the "
        "tensors that operators take",
    ),
    Internal("*", r"AttributeError: .*'_stats'", "reads the private prof._stats(): how long torch took to build its own lists"),
    Internal(
        "*::test_profiler_type",
        r"ActiveProfilerType\.NONE.*ActiveProfilerType\.KINETO",
        "asks torch._C which of torch's own profilers runs; with lanescope it is none of them",
    ),
    Internal(
        "*::test_profiler_disable_fwd_bwd_link",
        r"AssertionError not raised",
        "turns off a switch of torch's exporter (torch._C._profiler._set_fwd_bwd_enabled_val), which has no getter",
    ),
    Internal(
        "*::test_cpu_annotation_overlap",
        r"False is not true",
        "expects steps that adjust_profiler_step=True moves into the function that calls step(); lanescope warns and leaves them. "
        "On purpose",
    ),
    Internal(
        "*::test_profiler_correlation_id",
        r"False is not true",
        "expects numbers of operators that go on from one profile to the next; lanescope's are those of the file and begin at 1. "
        "On purpose",
    ),
    Internal(
        "*::test_profiler_op_event_kwargs",
        r'args\["debug"\] == "None"',
        "expects that a keyword's text with a quotation mark in it is lost (torch.profiler writes \"None\"); lanescope keeps it. "
        "On purpose",
    ),
)


def reason_of(test: str, text: str) -> Optional[str]:
    """Why a failure is no public API's; None when it is."""
    for entry in INTERNALS:
        if fnmatch.fnmatchcase(test, entry.test) and re.search(entry.message, text, re.DOTALL):
            return entry.reason
    return None
