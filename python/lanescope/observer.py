"""Build the torch observer ahead of its first use: ``python3 -m lanescope.observer build`` or ``status``.

Exit codes: 0 it is there, 1 it is not (the reason is printed), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Optional, Sequence

from ._observer_build import ObserverUnavailable, build, cached_path, find_compiler, find_torch


def status() -> str:
    """Several lines: torch, compiler, where the observer is or will be. Raises ObserverUnavailable."""
    torch = find_torch()
    path = cached_path(torch)
    lines = [f"torch     {torch.version} in {torch.directory} (C++11 ABI {torch.cxx11_abi})"]
    try:
        lines.append(f"compiler  {' '.join(find_compiler())}")
    except ObserverUnavailable as error:
        lines.append(f"compiler  none: {error}")
    lines.append(f"observer  {path} ({'built' if os.path.exists(path) else 'not built yet'})")
    return "\n".join(lines)


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m lanescope.observer", description=__doc__)
    parser.add_argument("action", choices=("build", "status"), help="compile it now, or say how things are")
    parser.add_argument("--again", action="store_true", help="build: compile even when it is there")
    arguments = parser.parse_args(argv)
    try:
        if arguments.action == "build":
            print(build(again=arguments.again, announce=True))
            return 0
        print(status())
        return 0 if os.path.exists(cached_path(find_torch())) else 1
    except ObserverUnavailable as error:
        print(f"lanescope: torch operators cannot be observed here: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
