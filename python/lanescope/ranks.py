"""Many ranks of one job: what `lanescope ranks` prints, as objects and columns."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any, Dict, List, Sequence, Union

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

    def __init__(self, data: Dict[str, Any], text: str) -> None:
        self.data, self._text = data, text
        found = data["verdict"]
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
        """One value for each compared rank, int64 nanoseconds a step: "own_ns", "step_ns", "exposed_wait_ns", ..."""
        import numpy as np

        return np.array([rank["per_step"][name] for rank in self.data["ranks"] if rank["compared"]], dtype=np.int64)

    def steps(self, name: str = "own_ns") -> "numpy.ndarray[Any, Any]":
        """A row a step and a column a compared rank, int64 nanoseconds: "own_ns", "step_ns" or "late_ns"."""
        import numpy as np

        return np.array([step[name] for step in self.data["steps"]], dtype=np.int64)


def read_ranks(path: Union[Path, Sequence[Path]], *, workers: int = 0) -> Ranks:
    """Reads the traces of a job's ranks: a folder, a pattern, a file, parts, or a list of these.

    `workers`: files to read at a time; 0: one a core. Raises lanescope.Error if nothing can be read.
    """
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    answer, text = _core.read_ranks([os.fspath(each) for each in paths], workers or os.cpu_count() or 1)
    return Ranks(json.loads(answer), text)
