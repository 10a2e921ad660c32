#!/usr/bin/env python3
"""Kept promises as tests: small programs with counters are killed, starved and disturbed while lanescope records them.

Each scenario says PASS, FAIL or SKIPPED with the reason; PEER: the same done to another profiler, to compare. Exit code
1: one failed. Runs the lanescope next to this Python, else that of build/release, else the one that LANESCOPE_COMMAND
names. Packages that single scenarios need: faketime (./check installs it); lttng-tools liblttng-ust-dev babeltrace2 for
the peer LTTng-UST, whose package starts a daemon of its own, so ./check leaves it out.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time
import traceback
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
# pylint: disable=wrong-import-position
import scenarios_death as death
import scenarios_limits as limits
import scenarios_lttng as lttng
from harness import OWN_MOUNTS, Broken, Skip

SCENARIOS = [death.kill_9, death.kill_9_record, death.kill_9_torch_profiler, death.stop_and_continue, death.fork, death.replaced,
             death.threads_500, death.clock_steps, death.restarts, limits.disk_reserve, limits.disk_full,
             limits.disk_full_results, limits.read_only_folder, limits.deleted_folder, limits.open_files, limits.address_space,
             limits.file_size, limits.cgroup_v1, limits.cgroup_v2, limits.cgroup_v1_reading, limits.cgroup_v2_reading,
             limits.cut_file, limits.deleted_file, limits.closed_descriptors, limits.ring, limits.exit_small, limits.exit_long, limits.exit_long_json,
             lttng.kill_9_lttng, lttng.kill_9_lttng_daemons, lttng.cut_file_lttng, lttng.threads_500_lttng]
PEERS = {"kill_9_torch_profiler", "kill_9_lttng", "kill_9_lttng_daemons", "cut_file_lttng", "threads_500_lttng"}


@dataclasses.dataclass
class Row:
    scenario: str
    promised: str
    rounds: int
    result: str  # PASS, FAIL, SKIPPED, PEER
    numbers: str  # or the reason
    seconds: float


def run_one(scenario, options):
    begun = time.monotonic()
    rounds, numbers = 0, ""
    try:
        rounds, numbers = scenario(options)
        result = "PEER" if scenario.__name__ in PEERS else "PASS"
    except Skip as error:
        result, numbers = "SKIPPED", str(error)
    except Broken as error:
        result, numbers = "FAIL", str(error)
    except Exception:  # a defect of the scenario is no PASS either
        result, numbers = "FAIL", traceback.format_exc(limit=-3)
    return Row(scenario.__name__, scenario.__doc__, rounds, result, " ".join(numbers.split()), round(time.monotonic() - begun, 1))


def markdown(rows):
    lines = ["| scenario | what is promised | rounds | result | numbers |", "|---|---|---|---|---|"]
    lines += [f"| `{row.scenario}` | {row.promised} | {row.rounds or ''} | {row.result} | {row.numbers.replace('|', '/')} |"
              for row in rows]
    return "\n".join(lines) + "\n"


def write_junit(path, rows):
    suite = ElementTree.Element("testsuite", name="reliability")
    for row in rows:
        case = ElementTree.SubElement(suite, "testcase", classname="reliability", name=row.scenario, time=str(row.seconds))
        if row.result == "FAIL":
            ElementTree.SubElement(case, "failure", message=row.promised).text = row.numbers
        elif row.result == "SKIPPED":
            ElementTree.SubElement(case, "skipped", message=row.numbers)
    ElementTree.ElementTree(suite).write(path, encoding="unicode")


def with_own_mounts():
    """Starts this script again where its mounts are its own and go with it."""
    inside = ["unshare", "-m", "--propagation", "private"]
    if OWN_MOUNTS in os.environ or subprocess.run([*inside, "true"], capture_output=True, check=False).returncode != 0:
        return
    os.environ[OWN_MOUNTS] = "1"
    os.execvp(inside[0], [*inside, sys.executable, *sys.argv])


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="of kill_9; a tenth of it with torch (default 20)")
    parser.add_argument("--starts", type=int, default=300, help="of restarts (default 300)")
    parser.add_argument("--ring-seconds", type=int, default=20, help="(default 20)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills (default 1)")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[each.__name__ for each in SCENARIOS], help="these scenarios")
    parser.add_argument("--skip", nargs="+", metavar="NAME", default=[], choices=[each.__name__ for each in SCENARIOS])
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the table there, too")
    parser.add_argument("--junit", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    if options.rounds < 1 or options.starts < 1 or options.ring_seconds < 10:
        parser.error("expected --rounds and --starts of 1 or more, --ring-seconds of 10 or more")
    return options


def main():
    options = parse()
    with_own_mounts()
    rows = []
    for scenario in SCENARIOS:
        name = scenario.__name__
        if (options.only and name not in options.only) or name in options.skip:
            continue
        rows.append(run_one(scenario, options))
        if not options.json:
            row = rows[-1]
            print(f"{row.result:8s}{row.scenario:22s} {row.promised}\n{'':30s} {row.numbers} [{row.seconds} s]", flush=True)
    failed = sum(row.result == "FAIL" for row in rows)
    if options.json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))
    else:
        print(f"{len(rows)} scenarios: {sum(row.result == 'PASS' for row in rows)} PASS, {failed} FAIL, {sum(row.result == 'PEER' for row in rows)} PEER, "
              f"{sum(row.result == 'SKIPPED' for row in rows)} SKIPPED")
    if options.markdown:
        options.markdown.write_text(markdown(rows))
    if options.junit:
        write_junit(options.junit, rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
