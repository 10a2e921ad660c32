"""The hardware lanes of one profile: which process samples for it, and where its file lies."""

from __future__ import annotations

import os
import time
from typing import Optional

from ._hardware import WRITE_SECONDS, HardwareSampler, give_name, own_path
from ._shared_hardware import SharedSampler, is_shared
from ._warnings import warn


class HardwareLanes:
    """Nothing without an interval. Never raises; what is missing is a warning."""

    def __init__(self, interval_ns: int) -> None:
        self.interval_ns = interval_ns
        self.command = ""  # `lanescope record` names it
        self._own: Optional[HardwareSampler] = None
        self._shared: Optional[SharedSampler] = None

    def start(self, directory: str, max_bytes: int) -> str:
        """Samples before the first window opens; returns the name of the file up to then, "" if there is none."""
        if not self.interval_ns:
            return ""
        try:
            if directory:
                os.makedirs(directory, exist_ok=True)
        except OSError:  # the recording says so
            pass
        environ = dict(os.environ)
        if is_shared(environ):
            self._shared = SharedSampler(self.interval_ns, max_bytes, directory, environ)
            self._shared.start(self.command)
            if self._shared.problem:
                self.warn(self._shared.problem)
            return self._shared.path()
        path = own_path(directory)
        self._own = HardwareSampler(self.interval_ns, max_bytes)
        self._own.start(path, self.command)
        self._own.wait()
        if self._own.problem:
            self.warn(self._own.problem)
        return path if os.path.exists(path) else ""

    def give_name(self, path: str, recording: str) -> None:
        """Puts the file next to the recording, once that has its name."""
        if not path:
            return
        problem = self._shared.give_name(path, recording) if self._shared is not None else give_name(path, recording)
        if problem:
            self.warn(problem)

    def wait_for_samples(self) -> None:
        """Returns when what was sampled up to now is in the file."""
        if self._own is not None or self._shared is not None:
            time.sleep(WRITE_SECONDS)

    def stop(self) -> None:
        for sampler in (self._own, self._shared):
            if sampler is None:
                continue
            before = sampler.problem
            sampler.stop()
            if sampler.problem != before:
                self.warn(sampler.problem)
        self._own = self._shared = None

    def warn_when_going_on(self) -> None:
        if self.interval_ns:
            self.warn("a profile that goes on after stop() has hardware lanes up to the first stop()")

    @staticmethod
    def warn(problem: str) -> None:
        warn(f"lanescope: hardware: {problem}", once=True)
