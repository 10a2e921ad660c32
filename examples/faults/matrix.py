#!/usr/bin/env python3
"""Does `lanescope explain` find the planted faults? Reads what run.py wrote.

    python3 examples/faults/matrix.py results/faults
    python3 examples/faults/matrix.py results/faults --json results/faults/matrix.json

Confusion matrix, per pair and recorder: the place of the planted rule among the findings on the bad program, and whether it
also fires on the good one. Savings: the most that the rule promises (at stake per step), next to what the fix saved (time of
a step without a profiler, bad minus good).

Place: the findings in the order in which explain prints them, without the headline (kind "bound", unless it is the planted
rule), without what is said to be normal and without remarks on the recording. Pairs whose planted rule is such a remark
("remark" in pairs.json) have a table of their own: is it among all findings on the bad program, and not on the good one? A
pair of several ranks is judged by the trace of rank 0. Exit code 1 when a trace is missing or cannot be read, when twins
compute different results, or, with --check, when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Optional, Set, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
VARIANTS = ("bad", "good")
NOT_CONCERNED = "no such fault"  # of this recorder
NO_ANSWER: Dict[str, Any] = {"place": None, "rule": None, "at_stake_us": None, "in_good": [], "state": "judged"}
NOT_ADVICE = ("normal", "trust")  # kinds of findings that ask for no change of the program


def find_command() -> str:
    next_to_python = os.path.join(os.path.dirname(sys.executable), "lanescope")
    named = os.environ.get("LANESCOPE_COMMAND")
    found = named or (next_to_python if os.path.exists(next_to_python) else shutil.which("lanescope"))
    if not found:
        raise SystemExit("no lanescope command on PATH (pip install, or name it in LANESCOPE_COMMAND)")
    return found


def explain(command: str, trace: str) -> Dict[str, Any]:
    """The answer of `explain --json`, or {"failed": why}."""
    if not os.path.exists(trace):
        return {"failed": "no trace"}
    done = subprocess.run([command, "explain", trace, "--json"], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        return {"failed": f"explain ended with {done.returncode}: {done.stderr.strip()[:200]}"}
    answer: Dict[str, Any] = json.loads(done.stdout)
    return answer


def known_rules(command: str) -> Set[str]:
    done = subprocess.run([command, "explain", "--list"], capture_output=True, text=True, timeout=60, check=True)
    return {line.split()[0] for line in done.stdout.splitlines() if line.split()}


def advice(answer: Dict[str, Any], planted: List[str]) -> List[Dict[str, Any]]:
    """The findings that count for places, in the order in which they are printed."""
    return [f for f in answer.get("findings", [])
            if f["kind"] not in NOT_ADVICE and (f["kind"] != "bound" or f["rule"] in planted)]


def judge(answers: Dict[str, Dict[str, Any]], planted: List[str], known: Set[str], remark: bool = False) -> Dict[str, Any]:
    """One cell of the matrix. `answers`: of the bad and of the good program."""
    row = dict(NO_ANSWER)
    for variant in VARIANTS:
        if "failed" in answers[variant]:
            return {**row, "state": f"{variant}: {answers[variant]['failed']}"}
    found = advice(answers["bad"], planted)
    if remark:  # counts anywhere
        found = answers["bad"]["findings"]
    row["findings"] = [f["rule"] for f in found]
    row["in_good"] = sorted({f["rule"] for f in answers["good"]["findings"] if f["rule"] in planted})
    row["other_in_good"] = [f["rule"] for f in advice(answers["good"], planted) if f["rule"] not in planted]
    if not known & set(planted):
        return {**row, "state": "no such rule"}
    for place, finding in enumerate(found, 1):
        if finding["rule"] in planted:
            return {**row, "place": place, "rule": finding["rule"], "kind": finding["kind"],
                    "at_stake_us": finding["at_stake_ns"] / 1000, "at_stake_ratio": finding["at_stake_ratio"]}
    return row


def results_differ(bad: List[List[float]], good: List[List[float]], tolerance: Optional[float]) -> str:
    """Fingerprints (harness.py) of the first steps: four numbers a tensor, the second its root mean square."""
    if tolerance is None:
        return ""
    for step, (one, other) in enumerate(zip(bad, good), 1):
        if len(one) != len(other):
            return f"step {step}: {len(one) // 4} tensors against {len(other) // 4}"
        for at, (a, b) in enumerate(zip(one, other)):
            size = max(abs(one[at // 4 * 4 + 1]), abs(other[at // 4 * 4 + 1]), 1e-9)
            if not abs(a - b) <= tolerance * size:  # NaN differs
                return f"step {step}: {a:.6g} against {b:.6g}, in a tensor of root mean square {size:.6g}"
    return ""


def saving(timings: Dict[Tuple[str, str], Dict[str, Any]], pair: str) -> Optional[Dict[str, float]]:
    rows = [timings.get((pair, variant), {}) for variant in VARIANTS]
    if any("us" not in row for row in rows):
        return None
    bad, good = rows
    return {"bad_us": bad["us"], "good_us": good["us"], "saved_us": bad["us"] - good["us"], "factor": bad["us"] / good["us"],
            **{f"{variant}_growth_bytes": row.get("memory_growth_bytes_per_step", 0) for variant, row in zip(VARIANTS, rows)}}


def title(pair: str, options: Dict[str, Any]) -> str:
    return pair + (f" ({options['ranks']} ranks)" if options.get("ranks", 1) > 1 else "")


def us(value: Optional[float]) -> str:
    return "-" if value is None else f"{value:,.1f}"


def cell(row: Dict[str, Any]) -> str:
    if row["state"] != "judged":
        return row["state"][:20]
    return f"{row['place'] or 'MISSED'}{' GOOD TOO' if row['in_good'] else ''}"


def print_matrix(pairs: Dict[str, Any], recorders: List[str], matrix: Dict[str, Dict[str, Any]]) -> None:
    print("Place of the planted rule on the bad program; GOOD TOO: it fires on the good one as well")
    print(f"{'pair':<32}{'planted':<34}" + "".join(f"{r:<22}" for r in recorders) + "findings before it, or all")
    for pair, options in pairs.items():
        cells = matrix[pair]
        rows = [cells[r] for r in recorders]
        before = "; ".join(dict.fromkeys(", ".join(row.get("findings", [])[: (row["place"] or 6) - (1 if row["place"] else 0)])
                                         for row in rows))
        print(f"{title(pair, options):<32}{' '.join(options['rules'])[:33]:<34}" + "".join(f"{cell(row):<22}" for row in rows)
              + before)


def print_remarks(pairs: Dict[str, Any], recorders: List[str], matrix: Dict[str, Dict[str, Any]]) -> None:
    print("\nRemarks: is the rule among all findings on the bad program, and not on the good one?")
    print(f"{'pair':<24}{'planted':<34}" + "".join(f"{r:<22}" for r in recorders))
    for pair, options in pairs.items():
        cells = [matrix[pair][r] for r in recorders]
        shown = [cell({**row, "place": row["place"] and "found"}) for row in cells]
        print(f"{pair:<24}{' '.join(options['rules'])[:33]:<34}" + "".join(f"{each:<22}" for each in shown).rstrip())


def print_savings(pairs: Dict[str, Any], recorders: List[str], matrix: Dict[str, Dict[str, Any]],
                  savings: Dict[str, Optional[Dict[str, float]]]) -> None:
    print("\nMicroseconds a step without a profiler, what the fix saved, and what the rule promised at most (times the saving)")
    print(f"{'pair':<32}{'bad':>12}{'good':>12}{'saved':>12}{'factor':>8}" + "".join(f"{r:>24}" for r in recorders))
    for pair, options in pairs.items():
        measured = savings[pair]
        if measured is None:
            print(f"{title(pair, options):<32}not timed")
            continue
        promised = []
        for recorder in recorders:
            row = matrix[pair][recorder]
            ratio = ratio_of(row, measured, options)
            promise = us(row["at_stake_us"] or None) + ("" if ratio is None else f" ({ratio:.2f}x)")
            promised.append(f"{promise:>24}")
        print(f"{title(pair, options):<32}{us(measured['bad_us']):>12}{us(measured['good_us']):>12}"
              f"{us(measured['saved_us']):>12}{measured['factor']:>7.2f}x" + "".join(promised))


def ratio_of(row: Dict[str, Any], measured: Optional[Dict[str, float]], options: Dict[str, Any]) -> Optional[float]:
    """What the rule promised over what the fix gave. None: it promises no time, or there was none to give. What happened once
    in the timed steps, or in every so many of them, is at stake once; these steps share it."""
    if not row["at_stake_us"] or measured is None or measured["saved_us"] <= 0:
        return None
    sharing = options.get("every") or options.get("steps") or 1
    events = sharing if row.get("kind") == "once" and options.get("timing") != "first" else 1
    ratio: float = row["at_stake_us"] / (measured["saved_us"] * events)
    return ratio


def summary(pairs: Dict[str, Any], remarks: Dict[str, Any], recorders: List[str],
            matrix: Dict[str, Dict[str, Any]], savings: Dict[str, Optional[Dict[str, float]]]) -> Dict[str, Any]:
    totals: Dict[str, Any] = {"pairs": len(pairs), "remarks": len(remarks), "recorders": {}}
    for recorder in recorders:
        rows = {pair: matrix[pair][recorder] for pair in pairs if matrix[pair][recorder]["state"] != NOT_CONCERNED}
        said = {pair: matrix[pair][recorder] for pair in remarks if matrix[pair][recorder]["state"] == "judged"}
        judged = {pair: row for pair, row in rows.items() if row["state"] == "judged"}
        ratios = {pair: ratio for pair, row in judged.items()
                  if (ratio := ratio_of(row, savings[pair], pairs[pair])) is not None}
        totals["recorders"][recorder] = {
            "judged": len(judged), "first": sum(row["place"] == 1 for row in judged.values()),
            "first_or_second": sum(row["place"] in (1, 2) for row in judged.values()),
            "missed": [pair for pair, row in judged.items() if row["place"] is None],
            "lower": [pair for pair, row in judged.items() if (row["place"] or 0) > 2],
            "in_good": [pair for pair, row in judged.items() if row["in_good"]],
            "not_judged": {pair: row["state"] for pair, row in rows.items() if row["state"] != "judged"},
            "remarks": len(said), "remarks_missed": [pair for pair, row in said.items() if row["place"] is None],
            "remarks_in_good": [pair for pair, row in said.items() if row["in_good"]],
            "promise_1x_to_2x": [pair for pair, ratio in ratios.items() if 1 <= ratio <= 2],
            "promise_below_1x": [pair for pair, ratio in ratios.items() if ratio < 1],
        }
    return totals


def print_summary(totals: Dict[str, Any]) -> None:
    print()
    for recorder, row in totals["recorders"].items():
        print(f"{recorder}: of {row['judged']} pairs the planted rule is first in {row['first']}, first or second in "
              f"{row['first_or_second']}; missed in {len(row['missed'])}; it fires on the good twin in "
              f"{len(row['in_good'])}; promised 1 to 2 times the saving in {len(row['promise_1x_to_2x'])}, less than it in "
              f"{len(row['promise_below_1x'])}")
        for title, names in (("missed", row["missed"]), ("third or later", row["lower"]), ("in the good twin", row["in_good"]),
                             ("remarks missed", row["remarks_missed"]), ("remarks in the good twin", row["remarks_in_good"]),
                             ("not judged", [f"{pair} ({state})" for pair, state in row["not_judged"].items()])):
            if names:
                print(f"  {title}: {', '.join(names)}")


def targets_missed(totals: Dict[str, Any]) -> List[str]:
    missed = []
    for recorder, row in totals["recorders"].items():
        if row["judged"] == 0 or row["first_or_second"] < 0.9 * row["judged"]:
            missed.append(f"{recorder}: first or second in 90 %")
        if row["in_good"] or row["remarks_in_good"]:
            missed.append(f"{recorder}: silent about every good twin")
        if row["remarks_missed"]:
            missed.append(f"{recorder}: every remark is made")
        if len(row["promise_1x_to_2x"]) < 8:
            missed.append(f"{recorder}: promised 1 to 2 times the saving for 8 pairs")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="what run.py wrote with --out")
    parser.add_argument("--pairs", default="", help="names with commas between (default: all that have a trace)")
    parser.add_argument("--pairs-file", default=os.path.join(HERE, "pairs.json"), help="the table (default: pairs.json)")
    parser.add_argument("--recorders", default="lanescope,torch", help="default: %(default)s")
    parser.add_argument("--json", help="file for the whole result")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a target is missed")
    arguments = parser.parse_args()
    command, recorders = find_command(), arguments.recorders.split(",")
    with open(arguments.pairs_file, encoding="utf-8") as file:
        table = json.load(file)["pairs"]

    def trace(pair: str, variant: str, recorder: str) -> str:
        return os.path.join(arguments.folder, "traces", f"{pair}.{variant}.{recorder}.json.gz")

    chosen = [p for p in arguments.pairs.split(",") if p] or [
        p for p in table if any(os.path.exists(trace(p, v, r)) for v in VARIANTS for r in recorders)]
    if not chosen or any(p not in table for p in chosen):
        parser.error(f"no traces of known pairs in {arguments.folder}" if not chosen else f"known pairs: {', '.join(table)}")
    pairs, known = {p: table[p] for p in chosen}, known_rules(command)
    remarks = {p: options for p, options in pairs.items() if options.get("remark")}
    faults = {p: options for p, options in pairs.items() if p not in remarks}
    concerned = [(p, r) for p in pairs for r in recorders if r in pairs[p].get("recorders", recorders)]
    keys = [(p, v, r) for p, r in concerned for v in VARIANTS]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        answers = dict(zip(keys, pool.map(lambda key: explain(command, trace(*key)), keys)))
    timings: Dict[Tuple[str, str], Dict[str, Any]] = {}
    device = "unknown"
    if os.path.exists(os.path.join(arguments.folder, "timings.json")):
        with open(os.path.join(arguments.folder, "timings.json"), encoding="utf-8") as file:
            document = json.load(file)
        device = document.get("device", device)
        timings = {(row["pair"], row["variant"]): row for row in document["rows"] if not row["recorder"]}
    for (p, v, _), answer in answers.items():
        planted = v == "bad" and "no-gpu-work" in pairs[p]["rules"]
        if device == "cuda" and "failed" not in answer and not answer["devices"] and not planted:
            answer["failed"] = "no GPU work in the trace"
    matrix: Dict[str, Dict[str, Any]] = {p: {r: dict(NO_ANSWER, state=NOT_CONCERNED) for r in recorders} for p in pairs}
    for p, r in concerned:
        matrix[p][r] = judge({v: answers[p, v, r] for v in VARIANTS}, pairs[p]["rules"], known, p in remarks)
    savings = {p: saving(timings, p) for p in pairs}
    differ = {p: results_differ(*(timings.get((p, v), {}).get("results", []) for v in VARIANTS),
                                pairs[p].get("tolerance", 0.02)) for p in pairs}

    if faults:
        print_matrix(faults, recorders, matrix)
    if remarks:
        print_remarks(remarks, recorders, matrix)
    if timings and faults:
        print_savings(faults, recorders, matrix, savings)
    totals = summary(faults, remarks, recorders, matrix, savings)
    print_summary(totals)
    problems = [f"{p}: the twins compute different results: {why}" for p, why in differ.items() if why]
    problems += [f"{p}, {r}: {row['state']}" for p in pairs for r, row in matrix[p].items()
                 if row["state"] not in ("judged", "no such rule", NOT_CONCERNED)]
    problems += [f"target missed: {target}" for target in targets_missed(totals)] if arguments.check else []
    for problem in problems:
        print(f"PROBLEM: {problem}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"summary": totals, "matrix": matrix, "savings": savings, "problems": problems}, file, indent=1)
    print(f"{'FAILED' if problems else 'passed'}: {len(pairs)} pairs, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
