#!/usr/bin/env python3
"""Installs a build of lanescope into a temporary prefix and uses it from there, as a stranger's project would.

    run_test.py --build-dir build/release [--cmake cmake] [--prefix-path DIRS]

Checks that find_package(lanescope) works, that the installed headers are enough, that a program links, runs and finds
liblanescope_record.so, that the installed command opens what that program wrote, and that it still does so after the
prefix was moved.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def call(*words, **kwargs):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **kwargs)
    if done.returncode != 0:
        print(done.stdout)
        sys.exit(f"exit code {done.returncode}: {' '.join(map(str, words))}")
    return done.stdout


def expect(condition, what, text):
    if not condition:
        print(text)
        sys.exit(f"expected {what}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--compiler", default=None)
    arguments = parser.parse_args()
    here = pathlib.Path(__file__).resolve().parent
    env = {name: value for name, value in os.environ.items() if name != "CPATH"}
    with tempfile.TemporaryDirectory(prefix="lanescope-install-") as folder:
        root = pathlib.Path(folder)
        call(arguments.cmake, "--install", arguments.build_dir, "--prefix", root / "first", env=env)
        # A package that remembers where it was installed would fail from here on.
        prefix = root / "moved"
        shutil.move(root / "first", prefix)
        flags = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release"]
        if arguments.compiler:
            flags.append(f"-DCMAKE_CXX_COMPILER={arguments.compiler}")
        call(arguments.cmake, "-S", here, "-B", root / "build", *flags, env=env)
        call(arguments.cmake, "--build", root / "build", env=env)
        trace = root / "uses_lanescope.json"
        printed = call(root / "build" / "uses_lanescope", trace, env=env)
        expect("outer_range" in printed and "inner_range" in printed, "both ranges in the program's table", printed)
        command = prefix / "bin" / "lanescope"
        if command.exists():
            table = call(command, "table", trace, env=env)
            rows = {line.split()[0]: line.split()[-1] for line in table.splitlines() if "_range" in line}
            expect(rows == {"outer_range": "1", "inner_range": "3"}, "1 outer and 3 inner calls", table)
    print("find_package(lanescope) works from an installed and moved prefix")


if __name__ == "__main__":
    main()
