#!/usr/bin/env python3
"""Reads every include under src/lanescope and fails when a folder uses one that it may not.

The table below is the rule of ARCHITECTURE.md: a folder may use what it names and whatever those use.
"""
import pathlib
import re
import sys

MAY_USE = {
    "base": [],
    "model": ["base"],
    "codec": ["base"],
    "format": ["codec", "model"],
    "record": ["codec", "model"],
    "sample": ["record"],
    "sample_native": ["sample"],
    "record_torch": ["record"],
    "record_cupti": ["record"],
    "names": ["model"],
    "analysis": ["names"],
    "simulate": ["analysis"],
    "explain": ["simulate"],
    "ranks": ["explain"],
    "ranks_mpi": ["ranks"],
    "view": ["explain"],
    "report": ["view", "ranks"],
    "profiler": ["record", "format", "report"],
    "sql": ["report"],
    "server": ["report", "view", "format"],
    "cli": ["profiler", "format", "report", "record", "record_cupti", "sample_native", "server", "sql", "ranks_mpi"],
    "testing": ["codec", "model"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]lanescope/([^/">]+)/')


def reachable(folder):
    seen, todo = set(), [folder]
    while todo:
        current = todo.pop()
        if current not in seen:
            seen.add(current)
            todo.extend(MAY_USE[current])
    return seen


def main():
    root = pathlib.Path(__file__).resolve().parent.parent / "src" / "lanescope"
    problems, read = [], 0
    for path in sorted(root.rglob("*")):
        if path.suffix not in {".h", ".cpp"}:
            continue
        relative = path.relative_to(root)
        if len(relative.parts) == 1:  # lanescope/profiler.h forwards to the facade
            continue
        folder = relative.parts[0]
        if folder not in MAY_USE:
            problems.append(f"src/lanescope/{folder}: not in the layer table of tools/check_layers.py")
            continue
        allowed = reachable(folder)
        is_test = path.stem.endswith("_test") or "fuzz" in path.stem
        read += 1
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match or match.group(1) in allowed or (is_test and match.group(1) in ("testing", "format")):
                continue
            problems.append(f"src/lanescope/{relative}:{number}: {folder} may not use {match.group(1)}; "
                            f"allowed: {', '.join(sorted(allowed))}")
    for problem in sorted(set(problems)):
        print(problem)
    print(f"check_layers: {read} files read, {len(set(problems))} problems")
    return 1 if problems or read == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
