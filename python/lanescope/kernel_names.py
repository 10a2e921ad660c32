"""What the name of a GPU kernel says."""

from __future__ import annotations

from . import _core
from ._core import KernelName

__all__ = ["KernelName", "kernel_name"]


def kernel_name(text: str) -> KernelName:
    """Reads a kernel's raw name, mangled or not: library, operation, types, tile, ...

    Fields that the name does not give are ``None`` (lists: empty); ``tile`` is (m, n, k), with k if it is known.
    ``text`` is the short form for people; for a name that is not ``known``, it is the name without template
    arguments and namespaces.

    >>> kernel_name("ampere_sgemm_128x64_nn").text
    'GEMM f32 128x64 nn (cuBLAS, Ampere)'
    """
    return _core.kernel_name(text)
