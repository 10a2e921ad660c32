#!/usr/bin/env python3
"""Writes a Kineto-like trace of a launch-bound loop: steps of matmul + add with two kernels each, from a seed.

usage: make_bench_trace.py OUT.json [--steps 20000] [--copies 1] [--of TRACE.json.gz]

20000 steps: 180,000 slices, 80,000 flow ends, about 60 MB. With --copies N the steps follow each other N times, with times and
ids of their own: large files in a fraction of the time (160 copies of 20000 steps: 10 GB). With --of, the copies are those of
a trace that torch.profiler wrote, from its first event to its first row of metadata; what comes before and after stays once.
"""
import argparse
import gzip
import json
import random
import re

PROCESS, STREAM = 4000, 7
STEP_NS = 30000
HEAD = {"schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "numSms": 132}],
        "displayTimeUnit": "ms", "baseTimeNanoseconds": 1790857026000000000}


def event(category, name, pid, tid, start_ns, dur_ns, arguments):
    fields = ",".join(f'"{key}": {json.dumps(value)}' for key, value in arguments)
    return ("  {\n" f'    "ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {tid},\n'
            f'    "ts": {start_ns // 1000}.{start_ns % 1000:03d}, "dur": {dur_ns // 1000}.{dur_ns % 1000:03d},\n'
            '    "args": {\n      ' + fields + "\n    }\n  }")


def flow(phase, identifier, pid, tid, ns):
    end = ', "bp": "e"' if phase == "f" else ""
    return ("  {\n" f'    "ph": "{phase}", "id": {identifier}, "pid": {pid}, "tid": {tid}, "ts": {ns // 1000}.{ns % 1000:03d},\n'
            f'    "cat": "ac2g", "name": "ac2g"{end}\n' "  }")


def step_events(random_source, at, index, correlation):
    def spread(median):
        return max(200, int(random_source.gauss(median, median * 0.1)))
    external = index * 5
    def front(category, name, start, dur, number):
        extra = [("External id", external + number), ("Record function id", 0)]
        if category == "cpu_op":
            extra += [("Sequence number", 0), ("Fwd thread id", 0)]
        return event(category, name, PROCESS, PROCESS, start, dur, extra + [("Ev Idx", external + number)])
    matmul, add = spread(14000), spread(7000)
    yield front("user_annotation", "matmul_add", at, matmul + add + 3000, 1)
    yield front("cpu_op", "aten::matmul", at + 900, matmul, 2)
    yield front("cpu_op", "aten::mm", at + 1500, matmul - 1200, 3)
    yield front("cpu_op", "aten::add", at + matmul + 1700, add, 4)
    launches = ((at + 6000, 4000, "cuda_driver", "cuLaunchKernelEx", "nvjet_sm90_tst_64x8_64x16_1x4_h_bz_NNT", 1900, 3),
                (at + matmul + 3500, 3000, "cuda_runtime", "cudaLaunchKernel",
                 "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, "
                 "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)", 950, 4))
    for number, (start, dur, category, api, kernel, kernel_dur, op) in enumerate(launches):
        joined = correlation + number
        yield event(category, api, PROCESS, PROCESS, start, spread(dur),
                    [("External id", external + op), ("cbid", 652 if number == 0 else 211), ("correlation", joined)])
        yield flow("s", joined, PROCESS, PROCESS, start)
        kernel_start = start + dur + 2500
        yield event("kernel", kernel, 0, STREAM, kernel_start, spread(kernel_dur),
                    [("External id", external + op), ("queued", 0), ("device", 0), ("context", 1), ("stream", STREAM),
                     ("correlation", joined), ("registers per thread", 168 if number == 0 else 28),
                     ("shared memory", 213 * 1024 if number == 0 else 0), ("blocks per SM", 0.060606), ("warps per SM", 0.727273),
                     ("grid", [8, 1, 1]), ("block", [384, 1, 1]), ("est. achieved occupancy %", 0)])
        yield flow("f", joined, 0, STREAM, kernel_start)
    yield event("gpu_user_annotation", "matmul_add", 0, STREAM, at + 12000, matmul + add - 8000, [("External id", external + 1)])


def shifted_copies(block, copies, time_ns, ids):
    """The text of the steps, `copies` times: each copy begins `time_ns` later, and its ids are `ids` larger."""
    numbers = re.compile(r'("ts": |"External id": |"Ev Idx": |"correlation": |"id": )(\d+)(?:\.(\d{3}))?')
    template, values, steps, at = [], [], [], 0
    for found in numbers.finditer(block):
        template.append(block[at:found.end(1)].replace("%", "%%"))
        if found[3] is None:
            template.append("%d")
            values.append(int(found[2]))
            steps.append(ids)
        else:
            template.append("%d.%03d")
            values += [int(found[2]), int(found[3])]
            steps += [time_ns // 1000, 0]
        at = found.end()
    text = "".join(template) + block[at:].replace("%", "%%")
    for _ in range(copies):
        yield text % tuple(values)
        values = [value + step for value, step in zip(values, steps)]


def made_block(steps):
    """Head, steps and tail of a made trace, and how far apart copies of the steps are: nanoseconds and ids."""
    random_source = random.Random(20260101)
    at = 4365001498111380
    texts = []
    for index in range(steps):
        texts += step_events(random_source, at, index, 100 + 2 * index)
        at += STEP_NS
    head = json.dumps(HEAD, indent=2)[:-2] + ',\n  "traceEvents": [\n'
    return head, ",\n".join(texts), '\n  ],\n  "traceName": "bench"\n}\n', steps * STEP_NS, 100 + 5 * steps


def block_of(path):
    """The same of a trace that torch.profiler wrote."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        text = file.read()
    first = text.index("[\n", text.index('"traceEvents"')) + 2
    last = text.rindex("\n  },\n", first, text.index('"ph": "M"', first)) + len("\n  }")
    block = text[first:last]
    starts = [int(found) for found in re.findall(r'"ts": (\d+)\.', block)]
    ids = max(int(found) for found in re.findall(r'"(?:External id|Ev Idx|correlation|id)": (\d+)', block))
    return text[:first], block, text[last:], (max(starts) - min(starts) + 1000) * 1000, ids + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--of", metavar="TRACE")
    arguments = parser.parse_args()
    head, block, tail, apart_ns, ids = block_of(arguments.of) if arguments.of else made_block(arguments.steps)
    with open(arguments.out, "w", encoding="utf-8") as out:
        out.write(head)
        if arguments.copies == 1:
            out.write(block)
        else:
            for number, text in enumerate(shifted_copies(block, arguments.copies, apart_ns, ids)):
                out.write((",\n" if number else "") + text)
        out.write(tail)
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
