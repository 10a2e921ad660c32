"""torch.autograd.profiler's words, recorded by lanescope, for programs that use that older module.

Replace ``import torch.autograd.profiler as profiler`` by ``import lanescope.autograd_profiler as profiler``::

    with profiler.profile(record_shapes=True) as prof:
        with profiler.record_function("forward"):
            model(batch)
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))

``emit_nvtx``, ``emit_itt`` and all other names are torch's own objects.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, List, Optional, Type

from ._activities import ProfilerActivity
from ._core import record_function
from .events import EventList
from .profiler import profile as _profile
from .results import NotStartedError

__all__ = ["profile", "record_function"]


class profile(_profile):  # noqa: N801 - torch's name
    """Records everything inside a ``with`` block; without schedule and steps.

    Args:
        enabled: False records nothing, and the block runs as without this object.
        use_device: ``"cuda"`` records the GPU, too.
        use_cuda: the same, deprecated as in torch.
        use_cpu: False records the GPU alone.
        use_kineto: accepted; there is one way of recording.
        arguments: those of :class:`lanescope.profile` that have the same names here (``record_shapes``, ``with_flops``,
            ``profile_memory``, ``with_stack``, ``with_modules``, ``experimental_config``, ``acc_events``, and more).
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: Optional[str] = None,
        use_cpu: bool = True,
        use_kineto: bool = False,
        **arguments: Any,
    ) -> None:
        self.enabled = bool(enabled)
        self.entered = False
        wants_gpu = use_cuda or use_device == "cuda"
        activities: List[ProfilerActivity] = [ProfilerActivity.CPU] if use_cpu or not (self.enabled and wants_gpu) else []
        if wants_gpu:
            activities.append(ProfilerActivity.CUDA)
        super().__init__(activities=activities, **arguments)

    def __enter__(self) -> Any:
        if not self.enabled:
            return None  # as torch
        if self.entered:
            raise RuntimeError("this profile was entered before: make a new one for each `with` block")
        self.entered = True
        self.start()
        return self

    def __exit__(
        self, exc_type: Optional[Type[BaseException]], exc: Optional[BaseException], tb: Optional[TracebackType]
    ) -> None:
        if self.enabled:
            super().__exit__(exc_type, exc, tb)

    @property
    def function_events(self) -> EventList:
        """Every recorded event, as :meth:`lanescope.profile.events`."""
        return self.events()

    def _text(self, of: Any) -> str:
        try:
            return str(of(self.events()))
        except NotStartedError:
            return "<unfinished lanescope.autograd_profiler.profile>"

    def __str__(self) -> str:
        return self._text(str)

    def __repr__(self) -> str:
        return self._text(repr)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from torch.autograd import profiler
    except ImportError as error:
        raise AttributeError(
            f"{__name__}.{name} is torch.autograd.profiler's, and torch cannot be imported: {error}"
        ) from None
    return getattr(profiler, name)
