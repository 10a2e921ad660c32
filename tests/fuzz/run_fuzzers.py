#!/usr/bin/env python3
"""Runs the fuzzers of build/fuzz, each on its kept corpus and then on mutations of it.

usage: run_fuzzers.py [--seconds N | --cpu-seconds N | --runs N] [--seed S] [--jobs J] [--junit FILE] [--grow] [TARGET...]

./check makes a fixed number of runs with a fixed seed, so that it finds the same on every machine. To look for something new:
nice -n 19 run_fuzzers.py --cpu-seconds 1800 --seed 0 --grow
--cpu-seconds runs each target again and again until it has had that much time of a CPU, however busy the machine is.
--grow keeps inputs that reached something new in build/fuzz/corpus/TARGET for the next run. An input that breaks a promise is
kept in build/fuzz/findings; README.md says what to do with it. Exit code 1: something was found, or a target is missing.
"""
import argparse
import concurrent.futures
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
# Bytes of an input: beyond, each try costs more than it finds.
LONGEST = {"read_trace": 4096, "explain": 8192, "packed_trace": 4096, "spool": 16384, "names": 1024, "op_details": 2048,
           "json_mend": 4096, "budget": 2048, "view_request": 1024, "sql": 1024, "ranks": 8192, "nsys": 8192, "index": 16384,
           "pftrace": 4096}
STATISTICS = re.compile(r"^stat::(\w+):\s+(\d+)", re.MULTILINE)


class Run:
    """One target, run to its end."""

    def __init__(self, target, options):
        self.target = target
        binary = options.build / "tests" / "fuzz" / f"{target}_fuzz"
        findings = options.build / "findings"
        findings.mkdir(parents=True, exist_ok=True)
        # libFuzzer adds what it finds to the first folder: never to the kept one.
        grown = options.build / "corpus" / target if options.grow else pathlib.Path(tempfile.mkdtemp())
        grown.mkdir(parents=True, exist_ok=True)
        corpus = [grown, CORPUS / target]
        self.command = [binary, f"-seed={options.seed}", f"-max_len={LONGEST.get(target, 4096)}",
                        "-entropic=0",  # its bookkeeping took three quarters of the time
                        "-rss_limit_mb=2048", "-timeout=60", "-print_final_stats=1",
                        f"-artifact_prefix={findings}/{target}-", *corpus]
        self.log, self.code = "", 0
        self.seconds = self.cpu_seconds = 0.0
        self.executions = self.peak_mb = 0
        wanted = options.cpu_seconds or 0
        while self.code == 0:
            left = wanted - self.cpu_seconds
            length = f"-runs={options.runs}" if options.runs else f"-max_total_time={math.ceil(left) if wanted else options.seconds}"
            executed = self.run_once(length, options.build)
            # A process never uses more CPU time than it takes; the next one makes up for what it did not get.
            if executed == 0 or self.cpu_seconds >= 0.99 * wanted:
                break
        if not options.grow:
            shutil.rmtree(grown)
        self.is_good = self.code == 0 and self.executions > 0

    def run_once(self, length, folder):
        """Returns how many inputs were tried."""
        # Any report of a sanitizer ends the run. Short stacks of allocations, and few freed blocks held back, save time.
        environment = {**os.environ, "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
                       "ASAN_OPTIONS": "malloc_context_size=1:quarantine_size_mb=32"}
        begin = time.monotonic()
        try:
            with tempfile.TemporaryFile() as log:
                process = subprocess.Popen([self.command[0], length, *self.command[1:]], stdout=subprocess.DEVNULL, stderr=log,
                                           env=environment, cwd=folder)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = self.code = os.waitstatus_to_exitcode(status)
                self.cpu_seconds += usage.ru_utime + usage.ru_stime
                log.seek(0)
                self.log = log.read().decode(errors="replace")
        except OSError as error:
            self.log, self.code = f"{error}; build it: cmake --build --preset fuzz --target fuzzers", 127
        self.seconds += time.monotonic() - begin
        numbers = {name: int(value) for name, value in STATISTICS.findall(self.log)}
        self.executions += numbers.get("number_of_executed_units", 0)
        self.peak_mb = max(self.peak_mb, numbers.get("peak_rss_mb", 0))
        return numbers.get("number_of_executed_units", 0)

    def line(self):
        rate = self.executions / max(self.cpu_seconds, 0.1)
        return (f"{self.target:14s} {'ok' if self.is_good else 'FOUND'}  {self.executions} executions in {self.seconds:.0f} s "
                f"({self.cpu_seconds:.0f} s of CPU), {rate:.0f} per second of CPU, {self.peak_mb} MB at most")


def write_junit(path, runs):
    suite = ElementTree.Element("testsuite", name="fuzz")
    for run in runs:
        case = ElementTree.SubElement(suite, "testcase", classname="fuzz", name=run.target, time=f"{run.seconds:.1f}")
        if not run.is_good:
            ElementTree.SubElement(case, "failure", message="a promise is broken").text = run.log[-4000:]
    ElementTree.ElementTree(suite).write(path, encoding="unicode")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default 60)")
    parser.add_argument("--cpu-seconds", type=int, help="the same, of CPU time")
    parser.add_argument("--runs", type=int, help="inputs for each target, the kept ones included, however long they take")
    parser.add_argument("--seed", type=int, default=1, help="0: another one each time (default 1)")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time (default 1)")
    parser.add_argument("--junit", type=pathlib.Path)
    parser.add_argument("--grow", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "fuzz")
    options = parser.parse_args()
    options.build = options.build.resolve()
    targets = options.targets or sorted(path.name for path in CORPUS.iterdir() if path.is_dir())
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = []
        for run in pool.map(lambda target: Run(target, options), targets):
            runs.append(run)
            print(run.line(), flush=True)
            if not run.is_good:
                print(run.log[-6000:], flush=True)
    if options.junit:
        write_junit(options.junit, runs)
    return 0 if all(run.is_good for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
