#!/usr/bin/env python3
"""Reads every C++ source alone with clang-tidy 16: clang's warnings, its thread-safety analysis, and the checks of .clang-tidy.

usage: run_tidy.py [--build build/clang] [--jobs 2] [FILE...]

Reads compile_commands.json of a configured build; nothing needs to be compiled. Sources that passed are remembered in
BUILD/tidy_passed and read again when they, a header, the command or .clang-tidy changed. Exit code 1: something was found.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOOL = "clang-tidy-16"


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / os.fsdecode(name) for name in listed.split(b"\0") if name]


def read_commands(build):
    """Command of each source, by its path. A batch or a generated source is no file of git."""
    return {pathlib.Path(entry["file"]): entry["command"] for entry in json.loads((build / "compile_commands.json").read_text())}


def hash_of(*parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def check(source, build):
    done = subprocess.run([TOOL, "-p", str(build), "--quiet", str(source)], capture_output=True, text=True, check=False)
    # Its count of what it does not show comes on stderr; an error of the tool itself does, too.
    return done.returncode, done.stdout if done.returncode in (0, 1) else done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "clang")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    build = options.build.resolve()
    if not (build / "compile_commands.json").exists():
        sys.exit(f"{build}: expected a configured build, found no compile_commands.json; run: cmake --preset clang")
    commands = read_commands(build)
    wanted = [path.resolve() for path in options.files] or tracked("*.cpp")
    sources = [path for path in wanted if path in commands]
    if not sources:
        sys.exit(f"{build}: none of {len(wanted)} sources is part of this build")

    common = hash_of((ROOT / ".clang-tidy").read_bytes(), *(path.read_bytes() for path in tracked("*.h", "*.inc") if path.exists()))
    passed_file = build / "tidy_passed"
    passed = set(passed_file.read_text().split()) if passed_file.exists() else set()
    keys = {path: hash_of(common.encode(), shlex.join(shlex.split(commands[path])).encode(), path.read_bytes()) for path in sources}
    left = [path for path in sources if keys[path] not in passed]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool, passed_file.open("a") as remembered:
        for path, (code, text) in zip(left, pool.map(lambda path: check(path, build), left)):
            if code == 0:
                remembered.write(keys[path] + "\n")
                continue
            failed += 1
            print(f"FOUND in {path.relative_to(ROOT)}\n{text}", flush=True)
    print(f"run_tidy: {len(left)} of {len(sources)} sources read, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
