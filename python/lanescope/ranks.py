"""Many ranks of one job: what `lanescope ranks` prints, as objects and columns."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Sequence, Tuple, Union

from . import _core

if TYPE_CHECKING:
    import numpy

Path = Union[str, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True)
class JobVerdict:
    """What holds the job up. Times are nanoseconds a step; docs/definitions/ranks.md#verdict."""

    kind: str  # "straggler", "rotating", "uneven", "pipeline", "balanced", "unknown"
    text: str
    ranks: List[int]
    late_ns: int
    threshold_ns: int
    step_ns: int
    notes: List[str]

    def __str__(self) -> str:
        return self.text


class Ranks:
    """The ranks of a job. `data` has everything, as in docs/formats/json_output.md#ranks."""

    def __init__(self, job: _core.RankJob) -> None:
        self._job = job
        self._arrays: Dict[str, "numpy.ndarray[Any, Any]"] = {}
        answer, self._text = job.answer()
        self.data: Dict[str, Any] = json.loads(answer)
        found = self.data["verdict"]
        self.verdict = JobVerdict(found["kind"], found["text"], found["ranks"], found["late_ns"], found["threshold_ns"],
                                  found["step_ns"], [note["text"] for note in found["notes"]])

    def __len__(self) -> int:
        return len(self.data["ranks"])

    def __str__(self) -> str:
        return self._text

    @property
    def remarks(self) -> List[str]:
        """What does not fit: unreadable files, missing ranks, mismatched collectives, ..."""
        return [remark["text"] for remark in self.data["remarks"]]

    @property
    def ranks(self) -> List[int]:
        """The numbers of the compared ranks, in order."""
        return [rank["rank"] for rank in self.data["ranks"] if rank["compared"]]

    def column(self, name: str) -> "numpy.ndarray[Any, Any]":
        """One value for each compared rank, int64 nanoseconds a step: "own_ns", "step_ns", "exposed_wait_ns", ...

        Made at the first access, then kept; read-only.
        """
        return self._made_once(
            f"column {name}", lambda: [rank["per_step"][name] for rank in self.data["ranks"] if rank["compared"]]
        )

    def steps(self, name: str = "own_ns") -> "numpy.ndarray[Any, Any]":
        """A row a step and a column a compared rank, int64 nanoseconds: "own_ns", "step_ns" or "late_ns".

        Made at the first access, then kept; read-only.
        """
        return self._made_once(f"steps {name}", lambda: [step[name] for step in self.data["steps"]])

    def _made_once(self, key: str, values: Callable[[], List[Any]]) -> "numpy.ndarray[Any, Any]":
        if key not in self._arrays:
            import numpy as np

            array = np.array(values(), dtype=np.int64)
            array.flags.writeable = False
            self._arrays.setdefault(key, array)
        return self._arrays[key]

    def diff(self, other: "Union[Ranks, Path, Sequence[Path]]") -> "RanksDiff":
        """What changed from this job to the other one: parts of the step, ranks, collectives.

        Raises lanescope.Error when the two have nothing to compare.
        """
        later = other if isinstance(other, Ranks) else read_ranks(other)
        return RanksDiff(self._job.diff(later._job))

    def check(self, budget: Path) -> "RanksCheck":
        """Whether every rank keeps the limits of a budget file (docs/formats/budget.md#jobs).

        Raises lanescope.Error when the file cannot be read or has no such limits.
        """
        return RanksCheck(self._job.check(os.fspath(budget)))


class _Answer:
    """`data` is what the command prints with --json (docs/formats/json_output.md), `str()` what it prints without."""

    def __init__(self, answer: Tuple[str, str]) -> None:
        self.data: Dict[str, Any] = json.loads(answer[0])
        self._text = answer[1]

    def __str__(self) -> str:
        return self._text


class RanksDiff(_Answer):
    """What changed between two jobs, as `lanescope ranks diff` says."""


class RanksCheck(_Answer):
    """Whether every rank of a job keeps its limits, as `lanescope ranks check` says."""

    @property
    def kept(self) -> bool:
        """All limits are kept, and all could be checked."""
        return bool(self.data["kept"])


class Hang(_Answer):
    """Why a job hangs, as `lanescope ranks hang` says."""

    @property
    def findings(self) -> List[str]:
        """The likeliest cause first; empty: no sign of a hang."""
        return [finding["text"] for finding in self.data["findings"]]

    @property
    def remarks(self) -> List[str]:
        """Files that do not count, and why."""
        return list(self.data["remarks"])


def read_ranks(path: Union[Path, Sequence[Path]], *, workers: int = 0) -> Ranks:
    """Reads the traces of a job's ranks: a folder, a pattern, a file, parts, or a list of these.

    `workers`: files to read at a time; 0: one a core. Raises lanescope.Error if nothing can be read.
    """
    return Ranks(_core.read_ranks(_paths(path), workers or os.cpu_count() or 1))


def read_hang(path: Union[Path, Sequence[Path]]) -> Hang:
    """Reads PyTorch's flight-recorder dumps, or the recordings of killed ranks, and says which rank stopped or which
    collective differs: a folder, a pattern, a file, or a list of these. Raises lanescope.Error if nothing can be read.
    """
    return Hang(_core.read_hang(_paths(path)))


def _paths(path: Union[Path, Sequence[Path]]) -> List[str]:
    return [os.fspath(each) for each in ([path] if isinstance(path, (str, os.PathLike)) else path)]
