#!/usr/bin/env python3
"""What the general part of `lanescope explain` says where no rule knows the fault.

    python3 examples/fault_sets/unknown_faults/judge.py --faults tests/data/faults      # planted faults, their own rules switched off
    python3 examples/fault_sets/unknown_faults/judge.py --traces traces                 # what record.py recorded

Owner and kind are compared with what was written down before: told (both, of one owner on the first screen), partly (the
owner alone), not.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from typing import Iterable, List, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
SECTION = re.compile(r"^(What takes the time|Who holds the (?:step|time)|No known fault)$")
OWNER = re.compile(r"^ +[\d.]+ (?:us|ms|s) +[<>]?\d+ %  ")


def owners_on_screen(text: str) -> List[str]:
    """One line an owner, as they stand on the first screen."""
    owners: List[str] = []
    inside = False
    for line in text.splitlines():
        if SECTION.match(line):
            inside = True
        elif inside and OWNER.match(line):
            owners.append(OWNER.sub("", line))
        elif inside and owners and line.startswith(" " * 19):
            owners[-1] += " " + line.strip()
    return owners


def verdict_of(owners: Iterable[str], owner: str, kind: str) -> str:
    named = [line for line in owners if re.search(owner, line)]
    if any(re.search(kind, line) for line in named):
        return "told"
    return "partly" if named else "not"


def cases(args: argparse.Namespace) -> Iterable[Tuple[str, str, List[str], str, str]]:
    """Name, file, rules to switch off, owner, kind."""
    if args.faults:
        with open(os.path.join(HERE, "..", "faults", "owners.json"), encoding="utf-8") as file:
            expected = json.load(file)["pairs"]
        with open(os.path.join(HERE, "..", "faults", "pairs.json"), encoding="utf-8") as file:
            pairs = json.load(file)["pairs"]
        for file_name in sorted(os.listdir(args.faults)):
            name, _, rest = file_name.partition(".bad.")
            if rest and name in expected:
                yield name, os.path.join(args.faults, file_name), pairs[name].get("rules", []), *expected[name]
    if args.traces:
        sys.path.insert(0, HERE)
        from programs import EXPECTED

        for file_name in sorted(os.listdir(args.traces)):
            name, _, rest = file_name.partition(".")
            if name in EXPECTED and rest.endswith(".json.gz"):
                yield f"{name} ({rest.partition('.')[0]})", os.path.join(args.traces, file_name), [], *EXPECTED[name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", help="folder of planted faults")
    parser.add_argument("--traces", help="folder that record.py wrote")
    parser.add_argument("--lanescope", default="lanescope", help="the command")
    args = parser.parse_args()
    counts = {"told": 0, "partly": 0, "not": 0}
    for name, path, off, owner, kind in cases(args):
        command = [args.lanescope, "explain", path] + (["--off", ",".join(off)] if off else [])
        done = subprocess.run(command, capture_output=True, text=True)
        owners = owners_on_screen(done.stdout)
        verdict = verdict_of(owners, owner, kind)
        counts[verdict] += 1
        print(f"{name:28} {verdict:7} {owners[0][:150] if owners else '-'}")
    print("\n" + ", ".join(f"{verdict} {count}" for verdict, count in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
