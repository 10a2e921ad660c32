"""``prof.profiler.kineto_results``: a recording's events with the methods of torch's C++ objects.

Scripts that want raw events without torch's tables read these: ``for event in results.events(): event.name()``. Each
method returns the same as in torch's ``_KinetoEvent`` and ``_ProfilerResult`` (torch/_C/_autograd.pyi), in the same units.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple, Union

from . import _core
from ._device import DeviceType
from .function_event import FunctionEvent, Source


class KinetoEvent:
    """One recorded event, or one allocation or free ("[memory]"). Times in nanoseconds since 1970."""

    def __init__(self, results: "KinetoResults", event: FunctionEvent, start_ns: int, end_ns: int, memory: Optional[Dict[str, Any]]):
        self._results = results
        self._event = event
        self._start_ns = start_ns
        self._end_ns = end_ns
        self._memory = memory  # the arguments of an allocation or free

    def name(self) -> str:
        """As recorded: ``ProfilerStep#3``."""
        return str(self._event.name if self._event.trace_name is None else self._event.trace_name)

    def overload_name(self) -> str:
        return str(self._event.overload_name or "")

    def start_ns(self) -> int:
        return self._start_ns

    def end_ns(self) -> int:
        return self._end_ns

    def duration_ns(self) -> int:
        return self._end_ns - self._start_ns

    def device_type(self) -> DeviceType:
        return self._event.device_type

    def device_index(self) -> int:
        return int(self._event.device_index)

    def device_resource_id(self) -> int:
        return int(self._event.device_resource_id)

    def start_thread_id(self) -> int:
        """A small number per thread of this trace."""
        return int(self._event.thread)

    def end_thread_id(self) -> int:
        """The thread on which it began: a trace does not say where an asynchronous event (:meth:`is_async`) ended."""
        return int(self._event.thread)

    def is_async(self) -> bool:
        return bool(self._event.is_async)

    def correlation_id(self) -> int:
        return 0 if self._memory is not None else int(self._event.id)

    def linked_correlation_id(self) -> int:
        return int(self._event.linked_correlation_id)

    def external_id(self) -> int:
        return int(self._event.external_id)

    def fwd_thread_id(self) -> int:
        return int(self._event.fwd_thread or 0)

    def sequence_nr(self) -> int:
        return int(self._event.sequence_nr)

    def scope(self) -> int:
        return int(self._event.scope)

    def stack(self) -> List[str]:
        return list(self._event.stack or [])

    def shapes(self) -> List[Any]:
        return list(self._event.input_shapes or [])

    def structured_input_shapes(self) -> List[Any]:
        return list(self._event.structured_input_shapes or [])

    def structured_input_strides(self) -> List[Any]:
        return list(self._event.structured_input_strides or [])

    def dtypes(self) -> List[str]:
        return list(self._event.input_dtypes or [])

    def concrete_inputs(self) -> List[Any]:
        return list(self._event.concrete_inputs or [])

    def kwinputs(self) -> Dict[str, Any]:
        return dict(self._event.kwinputs or {})

    def flops(self) -> int:
        return int(self._event.flops or 0)

    def nbytes(self) -> int:
        """For "[memory]": bytes allocated, negative when freed; 0 for all others."""
        return 0 if self._memory is None else int(self._memory.get("Bytes", 0))

    def activity_type(self) -> str:
        return str(self._event.activity_type)

    def is_user_annotation(self) -> bool:
        return bool(self._event.is_user_annotation)

    def is_python_function(self) -> bool:
        return bool(self._event.is_python_function)

    def metadata_json(self) -> str:
        """Empty, as in torch without ``expose_kineto_event_metadata``; ``FunctionEvent.args`` has the arguments."""
        return str(self._event.metadata_json or "")

    def extra_meta(self) -> Dict[str, str]:
        """Empty, as in torch without ``expose_kineto_event_metadata``."""
        return {}

    def is_hidden_event(self) -> bool:
        """False: what torch hides from its lists is not among these events."""
        return False

    def python_id(self) -> int:
        return int(self._event.python_id)

    def python_parent_id(self) -> int:
        return int(self._event.python_parent_id)

    def python_module_id(self) -> int:
        return int(self._event.python_module_id)

    def flow_id(self) -> int:
        """Number of the arrow from a forward operator to its backward one; 0: no arrow."""
        return int(self._event.flow_id or 0)

    def flow_type(self) -> int:
        return int(self._event.flow_type or 0)

    def flow_start(self) -> bool:
        return bool(self._event.flow_start)

    def cuda_elapsed_us(self) -> int:
        """-1, as torch has it where operators were not timed with CUDA events, which lanescope never does."""
        return -1

    privateuse1_elapsed_us = cuda_elapsed_us

    def __repr__(self) -> str:
        return f"<lanescope.KinetoEvent {self.name()!r}: {self.duration_ns()} ns>"


class KinetoResults:
    """The events of one trace for scripts that read torch's ``kineto_results``."""

    def __init__(self, trace: _core.Trace, with_flops: bool) -> None:
        self.trace = trace
        self._source = Source(trace, with_flops=with_flops, own_frames=True)

    def trace_start_ns(self) -> int:
        """When the recorded window began, in nanoseconds since 1970."""
        return self.trace.base_time_ns + self.trace.window_start_ns

    def events(self) -> List[KinetoEvent]:
        """In order of their starts: operators, ranges, Python frames, calls, device work, and each allocation and free."""
        trace, base_ns = self.trace, self.trace.base_time_ns
        starts, durations = trace.start_ns, trace.dur_ns
        found: List[KinetoEvent] = []
        for at in range(len(self._source.core)):
            event = self._source.event(at)
            row = event._row.slice
            if row is not None:  # else a memory record, which comes below with all others
                start_ns = base_ns + int(starts[row])
                found.append(KinetoEvent(self, event, start_ns, start_ns + int(durations[row]), None))
        found += self._memory_events()
        found.sort(key=lambda event: (event.start_ns(), -event.end_ns()))
        return found

    def _memory_events(self) -> List[KinetoEvent]:
        from .memory_timeline import memory_rows

        made, tracks = [], self.trace.tracks
        for row in memory_rows(self.trace):
            args = self.trace.instant_args(row)
            time_ns = self.trace.base_time_ns + int(self.trace.instant_time_ns[row])
            track = int(self.trace.instant_track_id[row])
            thread = tracks[track]["thread"]
            event = FunctionEvent(
                0, "[memory]", track, 0.0, 0.0,
                device_type=DeviceType(int(args.get("Device Type", 0))), device_index=int(args.get("Device Id", -1)),
                device_resource_id=thread if isinstance(thread, int) else track, activity_type="cpu_instant_event",
            )  # fmt: skip
            made.append(KinetoEvent(self, event, time_ns, time_ns, args))
        return made

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the Chrome trace JSON that ``export_chrome_trace`` writes. May be called again."""
        _core.write_kineto_json(self.trace, os.fspath(path))

    def experimental_event_tree(self) -> List[Any]:
        """Raises UnsupportedError: nodes of torch's tree hold the tensors that operators took."""
        raise _core.UnsupportedError(
            "experimental_event_tree: torch's tree tells each tensor that an operator took, with sizes and types, which lanescope "
            "does not give; prof.events() has the tree of operators in cpu_parent and cpu_children, prof.trace the columns, and "
            "prof._memory_profile() what each tensor is for. For the tensors use torch.profiler for this run"
        )

    def __repr__(self) -> str:
        return f"<lanescope.KinetoResults: {len(self._source.core)} events>"
