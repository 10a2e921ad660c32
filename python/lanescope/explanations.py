"""What bounds a step, and why: `lanescope explain` as Python values, text, Markdown, JSON and a page."""

from __future__ import annotations

import html
import json
import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _core
from .traces import PathLike, file_of

if TYPE_CHECKING:
    from .profiler import profile


class Evidence(NamedTuple):
    """One line of proof. Without a slice, only the text is set and the other fields are None.

    ``row`` is the slice's row in the columns of :attr:`Explanation.trace`; ``start_ns`` counts nanoseconds since the trace's
    ``base_time_ns``, ``dur_ns`` is nanoseconds.
    """

    text: str
    row: Optional[int]
    name: Optional[str]
    start_ns: Optional[int]
    dur_ns: Optional[int]


class Finding(NamedTuple):
    """What one rule says. ``docs/rules/<rule>.md`` explains the rule.

    ``kind``: "bound" (what limits the step), "ends" (what ends the program sooner or later), "cost" (time that a change
    may give back), "where", "memory" (what holds or loses it), "once", "normal" (looks alarming, is not) or "trust"
    (about the recording itself). ``at_stake_ns``: nanoseconds by which a step could become shorter at most; for "once"
    and "trust" in total. ``at_stake_ratio``: its share of a step's wall, 0 to 1. Findings overlap: never add these up.
    ``confidence``: "low", "medium", "high", from ``sample_count`` x ``sample_noun``.
    """

    rule: str
    kind: str
    verdict: str
    at_stake_ns: int
    at_stake_ratio: float
    confidence: str
    sample_count: int
    sample_noun: str
    arithmetic: Tuple[str, ...]
    evidence: Tuple[Evidence, ...]
    try_next: Tuple[str, ...]


class NotChecked(NamedTuple):
    """A rule that could not run, its question, and what the trace lacks for it."""

    rule: str
    question: str
    missing: str


class Wall(NamedTuple):
    """Where the wall time of a step went on a device: nanoseconds, exact.

    compute + exposed_communication + exposed_copy + idle == wall, and the causes add up to idle. Each is defined in
    docs/definitions/wall.md#wall-partition and #idle-causes. ``number``: of ProfilerStep#N, None for a recording without steps and
    for sums; ``start_ns``: since the trace's ``base_time_ns``, None for sums.
    """

    number: Optional[int]
    start_ns: Optional[int]
    wall_ns: int
    compute_ns: int
    exposed_communication_ns: int
    exposed_copy_ns: int
    idle_ns: int
    idle_by_cause_ns: Mapping[str, int]


class DeviceWalls(NamedTuple):
    """The walls of one device: the sum over the steady steps, and every step. The findings look at one device only."""

    device: int
    rules_look_at_it: bool
    steady: Wall
    steps: Tuple[Wall, ...]


class CpuWall(NamedTuple):
    """Where a thread's time went during a step, in a trace without GPU work: nanoseconds, exact.

    The other times add up to ``wall_ns``; docs/definitions/wall.md#host-wall defines them. ``number`` and ``start_ns`` as in
    :class:`Wall`.
    """

    number: Optional[int]
    start_ns: Optional[int]
    wall_ns: int
    compiling_ns: int
    input_data_ns: int
    backward_ns: int
    optimizer_ns: int
    other_operators_ns: int
    outside_of_operators_ns: int


class CpuWalls(NamedTuple):
    """The walls of the thread that runs the steps: the sum over the steady steps, and every step.

    ``thread``: its id; None if the file has a name instead of a number.
    """

    thread: Optional[int]
    steady: CpuWall
    steps: Tuple[CpuWall, ...]


def _cpu_wall(data: Mapping[str, Any]) -> CpuWall:
    return CpuWall(data.get("number"), data.get("start_ns"), *(data[name] for name in CpuWall._fields[2:]))


def _wall(data: Mapping[str, Any]) -> Wall:
    return Wall(
        number=data.get("number"),
        start_ns=data.get("start_ns"),
        wall_ns=data["wall_ns"],
        compute_ns=data["compute_ns"],
        exposed_communication_ns=data["exposed_communication_ns"],
        exposed_copy_ns=data["exposed_copy_ns"],
        idle_ns=data["idle_ns"],
        idle_by_cause_ns=data["idle_by_cause_ns"],
    )


def _evidence(data: Mapping[str, Any], row: Optional[int]) -> Evidence:
    place = data.get("slice", {})
    return Evidence(data["what"]["text"], row, place.get("name"), place.get("start_ns"), place.get("dur_ns"))


def _finding(data: Mapping[str, Any], rows: Sequence[Optional[int]]) -> Finding:
    return Finding(
        rule=data["rule"],
        kind=data["kind"],
        verdict=data["verdict"]["text"],
        at_stake_ns=data["at_stake_ns"],
        at_stake_ratio=data["at_stake_ratio"] or 0.0,
        confidence=data["confidence"],
        sample_count=data["sample_count"],
        sample_noun=data["sample_noun"],
        arithmetic=tuple(line["text"] for line in data["arithmetic"]),
        evidence=tuple(_evidence(each, row) for each, row in zip(data["evidence"], rows)),
        try_next=tuple(data["try_next"]),
    )


class Explanation:
    """What bounds a step of a trace, the time at stake, the proof, and what was not checked.

    ``str()`` is the first screen of ``lanescope explain``, ``full_text()`` all of it; a notebook shows the page of ``--html``
    in a separate frame, which neither sees nor changes the notebook. Made by :func:`explain`; never changes.
    """

    def __init__(self, explained: _core.Explained, trace: _core.Trace, trace_name: str) -> None:
        self._explained = explained
        self._trace_name = trace_name
        self.trace: _core.Trace = trace

    @cached_property
    def _data(self) -> Dict[str, Any]:
        data: Dict[str, Any] = json.loads(self._explained.json())
        return data

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        text: str = self._data["headline"]["text"]
        return text

    @cached_property
    def findings(self) -> List[Finding]:
        """What the rules found, in the order in which to read it: the bound, costs by time at stake, then the rest."""
        rows = self._explained.evidence_rows()
        return [_finding(each, each_rows) for each, each_rows in zip(self._data["findings"], rows)]

    @cached_property
    def not_checked(self) -> List[NotChecked]:
        """Rules that could not run, and what to record so that they can."""
        return [
            NotChecked(rule["id"], rule["question"], rule["missing"])
            for rule in self._data["rules"]
            if rule["state"] == "not_checked"
        ]

    @cached_property
    def quiet(self) -> List[str]:
        """Ids of the rules that found nothing."""
        return [rule["id"] for rule in self._data["rules"] if rule["state"] == "quiet"]

    @cached_property
    def covered(self) -> Dict[str, str]:
        """Rules whose cost another finding explains more exactly: their id, and that finding's rule."""
        return {rule["id"]: rule["covered_by"] for rule in self._data["rules"] if rule["state"] == "covered"}

    @cached_property
    def walls(self) -> List[DeviceWalls]:
        """Exact wall times in nanoseconds, for each device and step."""
        return [
            DeviceWalls(each["device"], each["rules_look_at_it"], _wall(each["steady"]), tuple(map(_wall, each["steps"])))
            for each in self._data["devices"]
        ]

    @cached_property
    def cpu_walls(self) -> Optional[CpuWalls]:
        """Exact wall times of the CPU in nanoseconds, for each step; None in a trace with GPU work, where ``walls`` says more."""
        cpu = self._data.get("cpu")
        if cpu is None:
            return None
        return CpuWalls(cpu.get("thread"), _cpu_wall(cpu["steady"]), tuple(map(_cpu_wall, cpu["steps"])))

    @property
    def cut_steps(self) -> List[int]:
        """Numbers of incomplete steps at the end of the recording; they are not steady."""
        return list(self._data["cut_steps"])

    @property
    def steady_steps(self) -> List[Optional[int]]:
        """Numbers of the steps that sums are made from; ``[None]`` for a recording without steps."""
        return list(self._data["steady_steps"])

    @property
    def long_step(self) -> Optional[int]:
        """Number of a later step that is not steady, because it took longer than all steady steps together."""
        number: Optional[int] = self._data.get("long_step")
        return number

    def to_markdown(self) -> str:
        """The text with Markdown headings, as ``lanescope explain --md`` prints it, names of the trace escaped."""
        return self._explained.text(markdown=True, full=True)

    def full_text(self) -> str:
        """The text of ``lanescope explain --full``: every finding with its arithmetic and its evidence."""
        return self._explained.text(markdown=False, full=True)

    def to_json(self) -> str:
        """The JSON of ``lanescope explain --json`` (docs/formats/json_output.md): times in nanoseconds."""
        return self._explained.json()

    def to_html(self, path: PathLike) -> None:
        """Writes the page of ``lanescope explain --html``: one file that loads nothing (docs/formats/explain_page.md).

        An existing file is replaced once the page is complete. Raises IoError.
        """
        self._explained.write_html(os.fspath(path), trace_name=self._trace_name)

    def __str__(self) -> str:
        return self._explained.text(markdown=False, full=False)

    def __repr__(self) -> str:
        return f"<lanescope.Explanation {self.headline!r}: {len(self.findings)} findings>"

    def _repr_html_(self) -> str:
        # The frame has a separate origin (no allow-same-origin), and the page in it its own policy.
        page = self._explained.html(trace_name=self._trace_name, has_links=False)
        return (
            '<iframe title="lanescope explain" sandbox="allow-scripts" '
            'style="width:100%;height:42rem;border:1px solid #8888;border-radius:6px;resize:vertical" '
            f'srcdoc="{html.escape(page, quote=True)}"></iframe>'
        )


def _chosen(question: Optional[Union[str, Sequence[str]]]) -> List[str]:
    if question is None:
        return []
    chosen = []
    for each in [question] if isinstance(question, str) else question:
        found = _core.rules_for_question(each)  # empty: an id; None: all rules
        if found is None:
            return []
        chosen += found or [each]
    known = [rule for rule, _ in _core.explain_rules()]
    for rule in chosen:
        if rule not in known:
            import difflib

            close = difflib.get_close_matches(rule, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
            raise _core.InvalidArgumentError(f"question is a rule's id, or words of its question; found {rule!r}; {hint}")
    return chosen


def explain(
    source: Union[PathLike, _core.Trace, "profile"],
    *,
    step: Optional[int] = None,
    question: Optional[Union[str, Sequence[str]]] = None,
) -> Explanation:
    """What bounds a step, and why, with the slices that prove it and what to try.

    ``source`` is a trace file (as :func:`lanescope.read_trace` takes it), a ``Trace`` or a stopped ``profile``.
    ``step``: only the ProfilerStep with this number, instead of all but the first. ``question`` runs only some rules:
    ids as ``lanescope explain --list`` prints them, each with a page in docs/rules/; or a question in words ("why is
    the first step slow?"), which runs the best matching rules, up to five, or all ("what should I fix first?"). The
    headline is always that of all rules.

    Raises IoError, CorruptInputError, UnsupportedError or LimitError for a file, UnavailableError for a profile that recorded
    nothing, InvalidArgumentError for a step or a question that does not exist.
    """
    only = _chosen(question)
    name = ""
    if isinstance(source, _core.Trace):
        trace = source
    elif isinstance(source, (str, os.PathLike)):
        path = file_of(source)
        trace = _core.read_trace(path, None)
        name = os.path.basename(path)
    else:
        trace = source.trace
    return Explanation(_core.explain(trace, step=step, only=only), trace, name)
