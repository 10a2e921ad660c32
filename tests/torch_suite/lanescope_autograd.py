"""What torch's tests get for torch.autograd.profiler: lanescope's module of that name. rewrite.py puts this name."""

from __future__ import annotations

from lanescope.autograd_profiler import profile

__all__ = ["profile"]
