#!/usr/bin/env python3
"""Rewrites tests/golden from what the reports print now. Run it when a change of the texts is meant; the commit says why.

usage: tools/update_golden.py [BUILD_FOLDER]   (default build/release; its report_test must be built)
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    build = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/release"
    program = build / "src/lanescope/report/report_test"
    if not program.exists():
        print(f"update_golden: {program} is not built: cmake --build {build} --target report_test", file=sys.stderr)
        return 2
    (ROOT / "tests/golden").mkdir(parents=True, exist_ok=True)
    done = subprocess.run([program, "--gtest_brief=1", "--gtest_filter=*GoldenTest*"], check=False,
                          env={**os.environ, "LANESCOPE_UPDATE_GOLDEN": "1"})
    if done.returncode == 0:
        subprocess.run(["git", "-C", ROOT, "status", "--short", "tests/golden"], check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
