"""lanescope.profile with the arguments of torch.autograd.profiler.profile, which many of torch's tests use.

torch.autograd.profiler.profile is not part of torch.profiler, and lanescope has no such class. Its tests are about
results all the same, and so they run here: this adapter only translates arguments and adds nothing to the results.
"""

from __future__ import annotations

from typing import Any

import lanescope


class profile(lanescope.profile):  # noqa: N801 - torch's name
    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        use_cpu: bool = True,
        use_kineto: bool = True,
        **arguments: Any,
    ) -> None:
        self._enabled = enabled
        activities = [lanescope.ProfilerActivity.CPU] if use_cpu else []
        if use_cuda or use_device == "cuda":
            activities.append(lanescope.ProfilerActivity.CUDA)
        super().__init__(activities=activities, **arguments)

    def start(self) -> None:
        if self._enabled:
            super().start()

    def stop(self) -> None:
        if self._enabled:
            super().stop()

    def __str__(self) -> str:
        return str(self.key_averages().table())
