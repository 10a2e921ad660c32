"""Switches on and off with the windows of a profile: torch's flag, Python frames, samples, an execution trace."""

from __future__ import annotations

from typing import Any, Callable, Optional

from . import _frames, _samples, _tensors, _torch
from ._hardware_lanes import HardwareLanes
from ._metadata import TraceMetadata
from ._schedule import RECORDING
from ._warnings import warn_about


class Windows(TraceMetadata):
    """The part of :class:`lanescope.profile` that switches things on and off around the recorded steps."""

    record_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_modules: bool
    on_trace_ready: Optional[Callable[[Any], Any]]
    execution_trace_observer: Optional[Any]
    _running: bool
    _action: int
    _hardware: HardwareLanes
    _frames_of_imports: bool
    _sample_rate: int

    def __init__(self, custom_trace_id_callback: Optional[Callable[[], str]]) -> None:
        super().__init__(custom_trace_id_callback)
        self._holds_flag = False
        self._holds_frames = False
        self._holds_samples = False

    def _before(self, action: int) -> None:
        if action in RECORDING and not self._holds_flag:
            self._holds_flag = True
            self._name_cycle()
            _torch.hold_flag()
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.start()

    def _frames_of(self, action: int) -> None:
        """Switches Python frames on and off with the recorded windows; a window must be open when they are switched on."""
        if (self.with_stack or self.with_modules) and action in RECORDING and not self._holds_frames:
            self._holds_frames = True
            if self.record_shapes and self.profile_memory and self.with_stack:
                _tensors.hold(self)
            for line in _frames.hold(self, every_frame=self.with_stack, imports=self._frames_of_imports):
                warn_about(line, once=True)

        if self._sample_rate and action in RECORDING and not self._holds_samples:
            self._holds_samples = True
            reason = _samples.hold(self, self._sample_rate)
            if reason:
                warn_about(f"sample_python: going on without samples: {reason}", once=True)

    def _after(self, action: int) -> None:
        if action not in RECORDING and self._holds_samples:
            self._holds_samples = False
            _samples.release(self)
        if action not in RECORDING and self._holds_frames:
            self._holds_frames = False
            _tensors.release(self)
            for line in _frames.release(self):
                warn_about(line, once=True)
        if action not in RECORDING and self._holds_flag:
            self._holds_flag = False
            _torch.release_flag()
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.stop()

    def _trace_ready(self) -> None:
        # The window is closed, the next step not yet begun: an execution trace has the same part of the program.
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.stop()
        if self.on_trace_ready is not None:
            self._hardware.wait_for_samples()
            self.on_trace_ready(self)
        if self.execution_trace_observer is not None and self._running and self._action in RECORDING:
            self.execution_trace_observer.start()
