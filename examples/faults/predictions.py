#!/usr/bin/env python3
"""Compares what `lanescope whatif` predicts from a recording with what the programs took without a profiler.

    python3 examples/faults/predictions.py LANESCOPE --traces FOLDER... --timings FILE...

Prints three tables in Markdown: the recorded step without the profiler's cost, the mended program predicted from the bad one, and the
gains that `lanescope explain` predicts for the planted faults. Timings are those of run.py or of gains.py. --pairs says which rules
tell the fix of each pair. docs/measurements/whatif.md holds the tables.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess

# What was changed from bad to good, where a change of whatif says the same.
FIXES: dict[str, list[str]] = {
    "copy_not_overlapped": ["overlap-copies"],
    "memcpy_before_gemm": ["remove Memcpy DtoD"],
    "no_cuda_graph": ["cuda-graph"],
    "pageable_copy": ["pin 50 GB/s"],
    "report_before_backward": ["remove-sync"],
    "scaler_sync": ["remove-sync"],
    "step_left_synchronized": ["remove-sync cudaDeviceSynchronize"],
    "sync_for_timing": ["remove-sync"],
    "transpose_copies": ["remove direct_copy_kernel"],
    "zero_grad_fills": ["remove Optimizer.zero_grad"],
}
# The timed step is not the one that a median of steady steps shows: first steps, one step of many, several processes; or the
# program takes longer the longer it runs, or another program disturbs it.
OTHER_STEPS = {
    "autotuned_sizes", "checkpoint_every_n", "cold_first_collective", "cold_first_step", "communication_bound", "gc_every_n",
    "growing_shapes", "late_evaluation", "micro_step_sync", "new_image_size", "one_time_notes", "recorded_in_the_middle",
    "serial_communication", "shared_core", "small_collectives", "table_on_first_use", "validation_in_a_step",
}
# Of these, the gain of a step is comparable all the same: every process takes equal steps.
TIMED_STEPS = {"communication_bound", "micro_step_sync", "serial_communication", "small_collectives"}


def whatif(lanescope: str, trace: pathlib.Path, changes: list[str]) -> dict | None:
    """The document of `lanescope whatif --json`. None: refused."""
    flags = [flag for change in changes for flag in ("--change", change)] or ["--critical-path"]
    done = subprocess.run([lanescope, "whatif", str(trace), "--json", *flags], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


class Times:
    """Microseconds of a step without a profiler, of run.py (one time for all recorders) or of gains.py (one beside each recording)."""

    def __init__(self, files: list[pathlib.Path], nearest: bool = False) -> None:
        self.of: dict[tuple[str, str, str], float] = {}
        for path in files:
            for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
                if row.get("recorder") or "us" not in row:
                    continue
                key = row["pair"], row["variant"], row.get("beside", "")
                self.of[key] = row["us"]
                if nearest:  # of good, the last block: once bad was recorded, the profiler's hooks stay and slow what comes next
                    self.of[key] = row["just_before_us"] if row["variant"] == "bad" else row["blocks_us"][-1]

    def get(self, pair: str, variant: str, recorder: str) -> float | None:
        return self.of.get((pair, variant, recorder), self.of.get((pair, variant, "")))


def error(predicted: float, measured: float) -> float:
    return (predicted - measured) / measured


def summary(errors: list[float]) -> str:
    sizes = sorted(abs(each) for each in errors)
    within = sum(each <= 0.25 for each in sizes)
    return f"{len(sizes)} rows: median error {statistics.median(sizes):.1%}, {within} within 25 %, largest {sizes[-1]:.0%}"


def predicted_gain(lanescope: str, trace: pathlib.Path, rules: list[str]) -> tuple[str, float, float] | None:
    """Of the first finding of these rules, if `lanescope explain` predicts its gain: the rule, the gain and its error in us."""
    done = subprocess.run([lanescope, "explain", str(trace), "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    document = json.loads(done.stdout)
    errors = {each["rule"]: each.get("gain_error_ns", 0) / 1000 for each in document.get("do_first", [])}
    for finding in document["findings"]:
        if finding["rule"] in rules:
            found = finding["rule"], finding.get("predicted_gain_ns", 0) / 1000, errors.get(finding["rule"], 0)
            return found if "predicted_gain_ns" in finding else None
    return None


def gains_of_explain(lanescope: str, traces: dict, times: Times, pairs: dict) -> None:
    print("\n| pair | recorder | rule | step, measured | gain, measured | gain, predicted | error | in the range |\n|---|---|---|---|---|---|---|---|")
    errors: list[float] = []
    inside = above = 0
    for (pair, variant, recorder), trace in sorted(traces.items()):
        good, bad = times.get(pair, "good", recorder), times.get(pair, "bad", recorder)
        if variant != "bad" or pair in OTHER_STEPS - TIMED_STEPS or pair not in pairs or not good or not bad or good >= bad:
            continue
        found = predicted_gain(lanescope, trace, pairs[pair]["rules"])
        if not found:
            continue
        rule, gain, spread = found
        errors.append(error(gain, bad - good))
        is_inside = abs(gain - (bad - good)) <= spread
        inside += is_inside
        above += gain > bad
        print(f"| {pair} | {recorder} | {rule} | {bad:,.1f} | {bad - good:,.1f} | {gain:,.1f}{f' +- {spread:,.1f}' if spread else ''} "
              f"| {errors[-1]:+.0%} | {'yes' if is_inside else 'no' if spread else ''} |")
    print(f"\n{summary(errors)}, {inside} in the printed range, {above} above the measured step" if errors else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lanescope")
    parser.add_argument("--traces", nargs="+", type=pathlib.Path, required=True)
    parser.add_argument("--timings", nargs="+", type=pathlib.Path, required=True)
    parser.add_argument("--pairs", type=pathlib.Path, default=pathlib.Path(__file__).parent / "pairs.json",
                        help="which rules count for each pair (default: those of this folder)")
    parser.add_argument("--nearest", action="store_true", help="compare with what gains.py timed last, right before the recording")
    flags = parser.parse_args()
    times = Times(flags.timings, flags.nearest)
    traces = {tuple(path.name.split(".")[:3]): path for folder in flags.traces for path in sorted(folder.glob("*.json.gz"))}

    print("| program | recorder | bound by | recorded | without the profiler, predicted | measured | error | in the range |")
    print("|---|---|---|---|---|---|---|---|")
    errors: dict[str, list[float]] = {"CPU": [], "others": []}
    inside = {"CPU": 0, "others": 0}
    for (pair, variant, recorder), trace in sorted(traces.items()):
        measured = times.get(pair, variant, recorder)
        document = whatif(flags.lanescope, trace, []) if measured and pair not in OTHER_STEPS else None
        if not measured or not document:
            continue
        limit, recorded = document["recorded"]["limit"], document["recorded"]["step_ns"] / 1000
        predicted, spread = document["unprofiled"]["step_ns"] / 1000, document["unprofiled_error_ns"] / 1000
        off = error(predicted, measured)
        kind = "CPU" if limit == "CPU" else "others"
        is_inside = abs(predicted - measured) <= spread
        errors[kind].append(off)
        inside[kind] += is_inside
        print(f"| {pair}, {variant} | {recorder} | {limit} | {recorded:,.1f} | {predicted:,.1f} +- {spread:,.1f} | {measured:,.1f} "
              f"| {off:+.0%} | {'yes' if is_inside else 'no'} |")
    for kind, values in errors.items():
        print(f"\nBound by {kind}: {summary(values)}, {inside[kind]} in the printed range" if values else "")

    print("\n| pair | recorder | change | bad, measured | good, measured | gain, measured | gain, predicted | good, predicted | error |")
    print("|---|---|---|---|---|---|---|---|---|")
    fixed: list[float] = []
    for (pair, variant, recorder), trace in sorted(traces.items()):
        good, bad = times.get(pair, "good", recorder), times.get(pair, "bad", recorder)
        if variant != "bad" or pair not in FIXES or not good or not bad:
            continue
        change = ", ".join(FIXES[pair])
        document = whatif(flags.lanescope, trace, FIXES[pair])
        row = f"| {pair} | {recorder} | {change} | {bad:,.1f} | {good:,.1f} | {bad - good:,.1f} |"
        if not document or not document["is_sure"]:
            print(f"{row} {'refused' if not document else 'unsure'} | | |")
            continue
        predicted = document["predicted"]["step_ns"] / 1000
        fixed.append(error(predicted, good))
        print(f"{row} {document['gain_ns'] / 1000:,.1f} | {predicted:,.1f} | {fixed[-1]:+.0%} |")
    print(f"\n{summary(fixed)}" if fixed else "")
    gains_of_explain(flags.lanescope, traces, times, json.loads(flags.pairs.read_text(encoding="utf-8"))["pairs"])


if __name__ == "__main__":
    main()
