#!/usr/bin/env python3
"""Counts the tests of all JUnit files in a folder, names skips, failures and unsteady tests, and ends with one line.

usage: count_tests.py FOLDER [--seconds N] [BROKEN_STAGE...]     exit code 1 when a test failed or a stage broke

A test is a <testcase>: one of ctest, one of pytest, one fuzz target (run_fuzzers.py --junit), however many inputs it tried.
A test that failed and passed when it was run again has passed; the logs next to the JUnit files name it, and so does this.
"""
import argparse
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

FAILED_ONCE = re.compile(r"Test +#\d+: (\S.*?) \.*\*\*\*(?!Skipped|Not Run)|^RERUN (\S+)", re.MULTILINE)


def failed_once(log):
    """The tests that failed at least once: ctest's and pytest's names."""
    return {ctest or pytest for ctest, pytest in FAILED_ONCE.findall(log.read_text(errors="replace"))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("broken", nargs="*")
    arguments = parser.parse_args()
    passed, failed, skipped, bad_names = collections.Counter(), [], [], set()
    for path in sorted(arguments.folder.glob("*.xml")):
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            name = f"{path.stem}: {case.get('classname', '')}.{case.get('name')}"
            if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
                failed.append(name)
                bad_names.add(case.get("name"))
            elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
                reason = case.find("skipped")
                text = (reason.get("message") or "") if reason is not None else ""
                skipped.append(f"{name}: {text[:160]}")
            else:
                passed[path.stem] += 1
    for name in skipped:
        print(f"SKIPPED {name}")
    unsteady = sorted(f"{log.stem}: {name}" for log in arguments.folder.glob("test-*.log") for name in failed_once(log)
                      if name.split("::")[-1] not in bad_names)
    for name in unsteady:
        print(f"UNSTEADY {name}: failed, and passed when it was run again")
    for name in failed:
        print(f"FAILED  {name}")
    for stage in arguments.broken:
        print(f"FAILED  stage {stage}")
    parts = ", ".join(f"{stem} {count}" for stem, count in sorted(passed.items()))
    good = not failed and not arguments.broken and sum(passed.values()) > 0
    print(f"check: {'all good' if good else 'NOT GOOD'}: {sum(passed.values())} tests passed ({parts}), {len(failed)} failed, "
          f"{len(unsteady)} unsteady, {len(skipped)} skipped, {len(arguments.broken)} broken stages, {arguments.seconds // 60} min {arguments.seconds % 60} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
