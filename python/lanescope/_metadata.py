"""The top-level entries that a profile writes into its trace: ids, options, the job, the program's own entries."""

from __future__ import annotations

import json
import uuid
from typing import Callable, Dict, Optional

from . import _job
from ._core import InvalidArgumentError, Profiler

_OPTIONS = ("profile_memory", "record_shapes", "with_stack", "with_flops", "with_modules")


def _check_json(key: str, value: str) -> None:
    try:
        json.loads(value)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"metadata {key!r}: expected one JSON value, found {value!r:.80}: {error}") from None


class TraceMetadata:
    """The part of :class:`lanescope.profile` that names a trace and describes its run."""

    _core: Optional[Profiler]

    def __init__(self, custom_trace_id_callback: Optional[Callable[[], str]]) -> None:
        self.custom_trace_id_callback = custom_trace_id_callback
        self.preset_metadata: Dict[str, str] = {}
        self._trace_id: Optional[str] = None
        self._job_json = ""  # the distributedInfo that was written last

    def _name_cycle(self) -> None:
        callback = self.custom_trace_id_callback
        self._trace_id = str(callback()) if callback is not None else uuid.uuid4().hex.upper()
        if self._core is not None:
            self._core.add_metadata_json("trace_id", json.dumps(self._trace_id))

    def _describe(self, core: Profiler) -> None:
        for name in _OPTIONS:
            if getattr(self, name):
                core.add_metadata_json(name, "1")
        for key, value in self.preset_metadata.items():
            core.add_metadata_json(key, value)
        self.describe_job()

    def describe_job(self) -> None:
        """Writes this process's place in its job into the trace, when it has one and it is not written yet.

        Called by itself when a window opens or ends and when torch.distributed is set up or taken down.
        """
        if self._core is None or "distributedInfo" in self.preset_metadata:
            return
        info = _job.job_json()
        if info and info != self._job_json:
            self._job_json = info
            self._core.add_metadata_json("distributedInfo", info)

    def add_metadata(self, key: str, value: str) -> None:
        """A text into the trace's top-level entries; any text is escaped as it should be."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """One JSON value into the trace's top-level entries.

        Raises InvalidArgumentError when ``value`` is not JSON; torch.profiler would write a file that nothing can read.
        """
        _check_json(key, value)
        if self._core is not None:
            self._core.add_metadata_json(key, value)
        else:
            self.preset_metadata[key] = value

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Like :meth:`add_metadata_json`, before ``start()``; it goes into every trace of this profile."""
        _check_json(key, value)
        self.preset_metadata[key] = value
        if self._core is not None:
            self._core.add_metadata_json(key, value)

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """The next cycles' trace ids come from ``callback``."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> Optional[str]:
        """The id of the last recorded cycle; None before the first one."""
        return self._trace_id
