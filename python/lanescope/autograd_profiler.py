"""torch.autograd.profiler's API, recorded by lanescope, for programs that use that older module.

Replace ``import torch.autograd.profiler as profiler`` by ``import lanescope.autograd_profiler as profiler``::

    with profiler.profile(record_shapes=True) as prof:
        with profiler.record_function("forward"):
            model(batch)
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))

``emit_nvtx``, ``emit_itt`` and all other names are torch's own objects.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Type, Union

from . import _activities
from ._activities import ProfilerActivity
from ._core import record_function
from ._warnings import warn
from .events import EventList
from .profiler import profile as _profile
from .results import NotStartedError

__all__ = ["profile", "record_function"]

_NOT_HERE = ("activities", "schedule", "on_trace_ready", "execution_trace_observer")  # arguments of lanescope.profile


class profile(_profile):  # noqa: N801 - torch's name
    """Records everything inside a ``with`` block; without schedule and steps.

    Args:
        enabled: False records nothing, and the block runs as without this object.
        use_cuda: the same as ``use_device="cuda"``, deprecated as in torch.
        use_device: ``"cuda"`` records the GPU, too; a warning where there is none.
        use_cpu: False records the GPU alone, and needs ``use_kineto=True``, as in torch.
        use_kineto: accepted; there is one way of recording.
        record_shapes, with_flops, profile_memory, with_stack, with_modules, experimental_config, acc_events,
            custom_trace_id_callback, post_processing_timeout_s: as in :class:`lanescope.profile`.
        activity_filters: accepted; all kinds of events are recorded.
        recording: what only :class:`lanescope.profile` has (``output_dir``, ``max_size``, ``budget``, and more).

    Raises AssertionError when nothing is left to record, as torch does.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: Optional[str] = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Optional[object] = None,
        acc_events: bool = False,
        custom_trace_id_callback: Optional[Callable[[], str]] = None,
        post_processing_timeout_s: Optional[float] = None,
        activity_filters: Optional[Dict[ProfilerActivity, Set[str]]] = None,
        **recording: Any,
    ) -> None:
        unknown = [name for name in recording if name in _NOT_HERE]
        if unknown:
            raise TypeError(f"profile() got an unexpected keyword argument {unknown[0]!r}; lanescope.profile has it")
        self.enabled = bool(enabled)
        self.entered = False
        self.use_cpu = use_cpu
        self.use_cuda = use_cuda
        activities = self._chosen(use_cpu, use_device, use_kineto) if self.enabled else [ProfilerActivity.CPU]
        super().__init__(
            activities=activities,
            record_shapes=record_shapes or with_flops,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
            experimental_config=experimental_config,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
            **recording,
        )
        self.activity_filters = activity_filters or {}

    def _chosen(self, use_cpu: bool, use_device: Optional[str], use_kineto: bool) -> List[ProfilerActivity]:
        """The activities, with torch's warnings and errors."""
        if self.use_cuda:
            warn("lanescope: `use_cuda` is deprecated, use `use_device='cuda'` instead", FutureWarning)
            use_device = "cuda"
        if not use_cpu and not use_kineto:
            raise AssertionError("use_cpu=False needs use_kineto=True, as in torch.autograd.profiler")
        activities = [ProfilerActivity.CPU] if use_cpu else []
        if use_device == "cuda" and not (_activities.has_gpu() and _activities.torch_sees_cuda()):
            warn("lanescope: there is no GPU that torch can use, so use_device='cuda' records none")
            self.use_cuda = False
        elif use_device is not None:
            activity = {"cuda": "CUDA", "xpu": "XPU", "mtia": "MTIA", "hpu": "HPU"}.get(use_device)
            if activity is None:
                warn(f"lanescope: {use_device!r} is not a valid use_device; expected 'cuda'")
            else:
                activities.append(ProfilerActivity[activity])
        if not activities:
            raise AssertionError("no activity is left to record: use_cpu=False, and no device that can be recorded")
        return activities

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

    def export_chrome_trace(  # type: ignore[override]  # torch's two classes differ in the same way
        self, path: "Union[str, os.PathLike[str]]", metadata: Optional[Dict[str, str]] = None, use_python_export: bool = False
    ) -> None:
        """As :meth:`lanescope.profile.export_chrome_trace`; ``metadata`` are values in JSON, by their keys."""
        for key, value in (metadata or {}).items():
            self.add_metadata_json(key, value)
        super().export_chrome_trace(path, use_python_export)

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[Any]) -> None:  # torch's other name of it
        super().toggle_collection_dynamic(enabled, activities)

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
