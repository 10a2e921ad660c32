#!/usr/bin/env python3
"""Runs the tests that ctest knows, many of a library in one process: under AddressSanitizer, starting one takes longer than most tests.

usage: run_unit_tests.py --build build/asan [--exclude-label python] [--jobs 2] [--waiting 2] [--junit FILE] [--remember]

Tests of libraries (programs in src/ of the build) run up to 40 in a process, --jobs processes at once. All others have a process
each, because they record, fork or use up the disk; they mostly wait, so --waiting of them run besides. A test that fails, and each
test of a process that ends badly without saying which failed, runs once more, in a process of its own. A failure is printed as ctest
prints it, and count_tests.py counts those that then pass as unsteady. Exit code 1: a test failed twice.

--remember: a process of library tests that all passed at once is not started again while its program, the shared libraries and every
file that the tests read are the same. The user's cache folder keeps what passed, as it does for run_tidy.py.
"""
import argparse
import concurrent.futures
import dataclasses
import hashlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

from check_cache import add_repository_files, add_shared_traces, cache_folder

PER_PROCESS = 40
ENDED = re.compile(r"\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:, where .*)? \((\d+) ms\)$", re.MULTILINE)


@dataclasses.dataclass
class Test:
    number: int
    name: str  # ctest's: prefix and GoogleTest's name
    command: list
    properties: dict

    def get(self, name, otherwise=None):
        return self.properties.get(name, otherwise)

    @property
    def filter(self):  # GoogleTest's name; "": no test of GoogleTest
        return next((word.split("=", 1)[1] for word in self.command if word.startswith("--gtest_filter=")), "")


@dataclasses.dataclass
class Outcome:
    state: str  # "passed", "failed", "skipped"
    seconds: float = 0
    output: str = ""
    was_run_again: bool = False
    was_known: bool = False


def read_tests(build, label):
    command = ["ctest", "--test-dir", str(build), "--show-only=json-v1", "-LE", label]
    listed = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["tests"]
    for number, test in enumerate(listed, 1):
        properties = {entry["name"]: entry["value"] for entry in test["properties"]}
        if "command" not in test or "NOT_AVAILABLE" in test["name"]:
            sys.exit(f"{test['name']}: expected a built test program; run: cmake --build {build} --target tests")
        yield Test(number, test["name"], test["command"], properties)


def start(test, command, timeout):
    """Exit code (None: it took longer than `timeout` seconds), output, seconds. Output goes through a file: a process that a test
    leaves behind would keep a pipe open."""
    environment = dict(os.environ, **dict(entry.split("=", 1) for entry in test.get("ENVIRONMENT", [])))
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=test.get("WORKING_DIRECTORY"), env=environment, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = None
        output.seek(0)
        text = output.read().decode(errors="replace")
    return code, text, time.monotonic() - began


def run_alone(test):
    timeout = test.get("TIMEOUT", 300)
    code, text, seconds = start(test, test.command, timeout)
    if code is None:
        return Outcome("failed", seconds, f"{text}\nended after {timeout:.0f} s")
    skips = test.get("SKIP_REGULAR_EXPRESSION", [])
    if code == test.get("SKIP_RETURN_CODE") or any(re.search(skip, text) for skip in skips):
        return Outcome("skipped", seconds, text)
    # The filter may name a test that the program no longer has.
    passed = code == 0 and (not test.filter or any(found[0] == "OK" for found in ENDED.findall(text)))
    return Outcome("passed" if passed else "failed", seconds, text)


def run_together(tests):
    """Outcomes by GoogleTest's names of those that ended; "": what the process printed if it ended badly and no test failed."""
    filters = ":".join(test.filter for test in tests)
    command = [word for word in tests[0].command if not word.startswith("--gtest_filter=")] + [f"--gtest_filter={filters}"]
    code, text, _ = start(tests[0], command, tests[0].get("TIMEOUT", 300) * 2)
    states = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}
    outcomes, begin = {}, 0
    for found in ENDED.finditer(text):
        outcomes[found[2]] = Outcome(states[found[1]], int(found[3]) / 1000, text[begin:found.end()])
        begin = found.end()
    bad_end = code != 0 and all(outcome.state != "failed" for outcome in outcomes.values())
    return outcomes, text[begin:] or "no output" if bad_end else ""


def again(test, first):
    print(f"Test #{test.number}: {test.name} .***Failed\n{first}", flush=True)
    outcome = run_alone(test)
    outcome.was_run_again = True
    return outcome


def run_part(tests):
    """Runs tests that share a process, or one that has its own: pairs of test and outcome."""
    if len(tests) == 1:
        outcome = run_alone(tests[0])
        return [(tests[0], again(tests[0], outcome.output) if outcome.state == "failed" else outcome)]
    found, bad_end = run_together(tests)
    is_complete = len(found) == len(tests)
    results, is_after_end = [], False
    for test in tests:
        outcome = found.get(test.filter)
        if outcome is None and not is_after_end:  # the process ended in this test
            is_after_end = True
            outcome = again(test, bad_end or "its process ended")
        elif outcome is None:
            outcome = run_part([test])[0][1]
        elif outcome.state == "failed" or (bad_end and is_complete):
            outcome = again(test, bad_end or outcome.output)
        results.append((test, outcome))
    if bad_end and is_complete and all(outcome.state != "failed" for _, outcome in results):
        # For example a leak that the sanitizer finds only after all of them.
        results[-1] = (tests[-1], Outcome("failed", 0, f"{len(tests)} tests pass alone; the process of all ended badly:\n{bad_end}", True))
    return results


def parts_of(tests, build):
    """Parts that compute, of up to PER_PROCESS tests of one program, and tests that mostly wait."""
    libraries = build / "src"

    def computes(test):
        return bool(test.filter) and pathlib.Path(test.command[0]).is_relative_to(libraries)

    computing = []
    for _, of_program in itertools.groupby((test for test in tests if computes(test)), key=lambda test: test.command[0]):
        listed = list(of_program)
        computing += [listed[i:i + PER_PROCESS] for i in range(0, len(listed), PER_PROCESS)]
    return computing, [[test] for test in tests if not computes(test)]


class Passed:
    """Processes whose tests all passed: a line each in the user's cache folder."""

    def __init__(self):
        self.file = cache_folder() / "tests_passed"
        self.known = set(self.file.read_text().split()) if self.file.exists() else set()
        self.read = self.digest_of_read_files()
        self.programs = {}

    @staticmethod
    def digest_of_read_files():
        """What library tests read: tests/, docs/, and the traces outside of the repository by size and time."""
        digest = hashlib.sha256(repr(sorted(os.environ.get(name, "") for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"))).encode())
        add_repository_files(digest, "tests", "docs")
        add_shared_traces(digest)
        return digest.digest()

    def program(self, path):
        if path not in self.programs:
            libraries = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
            states = [os.stat(name) for name in sorted(re.findall(r"=> (/\S+)", libraries))]
            digest = hashlib.sha256(pathlib.Path(path).read_bytes())
            digest.update(repr([(state.st_size, state.st_mtime_ns) for state in states]).encode())
            self.programs[path] = digest.digest()
        return self.programs[path]

    def key(self, part):
        return hashlib.sha256(self.read + self.program(part[0].command[0]) + repr([(test.name, test.command) for test in part]).encode()).hexdigest()

    def knows(self, part):
        return self.key(part) in self.known

    def add(self, part):
        with self.file.open("a") as file:
            print(self.key(part), file=file)


def write_junit(path, results):
    suite = ElementTree.Element("testsuite", name="unit tests", tests=str(len(results)))
    for test, outcome in results:
        case = ElementTree.SubElement(suite, "testcase", classname=test.name, name=test.name, time=f"{outcome.seconds:.3f}")
        if outcome.state == "skipped":
            reason = re.search(r": Skipped\n(.*)", outcome.output)
            ElementTree.SubElement(case, "skipped", message=reason[1] if reason else "")
        elif outcome.state == "failed":
            ElementTree.SubElement(case, "failure").text = re.sub(r"[^\t\n\x20-\ud7ff]", "?", outcome.output)
    ElementTree.ElementTree(suite).write(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--exclude-label", default="python")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--waiting", type=int, default=2)
    parser.add_argument("--junit", type=pathlib.Path)
    parser.add_argument("--remember", action="store_true")
    options = parser.parse_args()
    build = options.build.resolve()
    tests = list(read_tests(build, options.exclude_label))
    computing, waiting = parts_of(tests, build)
    passed = Passed() if options.remember else None
    known = [part for part in computing if passed and passed.knows(part)]
    computing = [part for part in computing if part not in known]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as jobs, concurrent.futures.ThreadPoolExecutor(options.waiting) as waits:
        running = [waits.submit(run_part, part) for part in waiting] + [jobs.submit(run_part, part) for part in computing]
        parts = [future.result() for future in running]
    for part in parts[len(waiting):] if passed else []:
        if all(outcome.state == "passed" and not outcome.was_run_again for _, outcome in part):
            passed.add([test for test, _ in part])
    parts += [[(test, Outcome("passed", 0, was_known=True)) for test in part] for part in known]
    results = sorted(itertools.chain.from_iterable(parts), key=lambda pair: pair[0].number)
    if options.junit:
        write_junit(options.junit, results)
    for test, outcome in results:
        words = {"passed": "   Passed", "skipped": "***Skipped", "failed": "***Failed"}[outcome.state]
        print(f"{outcome.seconds:9.2f} s  {words}{' (known)' if outcome.was_known else ''}  {test.name}")
        if outcome.state == "failed":
            print(f"Test #{test.number}: {test.name} .***Failed\n{outcome.output}")
    failed = sum(outcome.state == "failed" for _, outcome in results)
    count_known = sum(outcome.was_known for _, outcome in results)
    print(f"{len(results)} tests: {len(results) - count_known} in {len(computing) + len(waiting)} processes, {count_known} known to pass, "
          f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
