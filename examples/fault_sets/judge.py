#!/usr/bin/env python3
"""Looks for what was written down before in what `lanescope explain` says of the recordings.

    python3 examples/fault_sets/judge.py --traces tests/data/blind_faults
    python3 examples/fault_sets/judge.py --traces results --show repeat_kv      # the expectation, and the text to read

A pattern finds words, not whether a sentence is right: a "told" here must still be read. The verdicts of a reader are in
docs/measurements/blind_faults.md.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def load(folder):
    """What is expected of the pairs of a set, and which of them were never read."""
    sys.path.insert(0, os.path.join(HERE, folder))
    module = importlib.import_module("expectations")
    return module.EXPECTED, getattr(module, "BLIND", frozenset())


def explain(command, path, *flags):
    done = subprocess.run([command, "explain", path, *flags], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command} explain {path}: {done.stderr.strip()}")
    return re.sub(r"\s+", " ", done.stdout)


def found(expected, text):
    """Cause and fix: told, partly (the owner alone), not."""
    owner = re.search(expected.owner or expected.cause, text)
    cause = "told" if owner and re.search(expected.cause, text) else "partly" if owner else "not"
    return cause, "told" if re.search(expected.fix, text) else "not"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", default="blind_faults", help="folder beside this file (default: %(default)s)")
    parser.add_argument("--traces", required=True, help="folder that record.py wrote")
    parser.add_argument("--lanescope", default="lanescope", help="the command")
    parser.add_argument("--show", help="one pair: what is expected, and both texts")
    args = parser.parse_args()
    all_expected, blind = load(args.set)
    for name, expected in all_expected.items():
        paths = {path.split(".")[1]: os.path.join(args.traces, path) for path in sorted(os.listdir(args.traces))
                 if path.startswith(name + ".") and path.endswith(".json.gz")}
        if args.show and args.show != name:
            continue
        if args.show:
            print(f"cause: {expected.mechanism}\nfix: {expected.remedy}\n")
            for path in paths.values():
                subprocess.run([args.lanescope, "explain", path], check=False)
            continue
        line = f"{name:28}{' blind' if name in blind else ''}"
        if "bad" in paths:
            screen, whole = explain(args.lanescope, paths["bad"]), explain(args.lanescope, paths["bad"], "--full")
            line += " cause {:7} fix {:5}".format(*found(expected, screen)) + " all: {:7} {:5}".format(*found(expected, whole))
        if "good" in paths:
            false = re.search(expected.forbidden, explain(args.lanescope, paths["good"], "--full"))
            line += f"  good: {'says ' + repr(false[0]) if false else 'clean'}"
        print(line if paths else f"{name:28} not recorded")
    return 0


if __name__ == "__main__":
    sys.exit(main())
