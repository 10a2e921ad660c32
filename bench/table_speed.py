#!/usr/bin/env python3
"""The key averages of a trace, compared with torch.profiler's key_averages of its recording, in the same run.

usage: table_speed.py TRACE.json [--repeat 11] [--steps 4000]

lanescope: the trace is read once, then key_averages() + table() is repeated; median, min and max. torch.profiler works only
on a live profile, so it records --steps steps of matmul + add (three operators each) and builds its averages once per
recording; both are given as microseconds per event. Goal for lanescope: at most 100 ms for the 180,000 slices of the 66 MB trace.
"""
import argparse
import statistics
import time

import lanescope


def lanescope_seconds(trace, repeat):
    seconds = []
    for _ in range(repeat):
        begin = time.perf_counter()
        lanescope.KeyAverages(trace).table(sort_by="self_cpu_time_total", row_limit=15)
        seconds.append(time.perf_counter() - begin)
    return seconds


def torch_seconds(steps, repeat):
    import torch
    from torch.profiler import ProfilerActivity, profile
    left, right, bias = torch.ones(64, 64), torch.ones(64, 64), torch.ones(64)
    seconds, events = [], 0
    for _ in range(repeat):
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            for _ in range(steps):
                torch.add(torch.matmul(left, right), bias)
        begin = time.perf_counter()
        profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=15)
        seconds.append(time.perf_counter() - begin)
        events = len(profiler.events())
    return seconds, events


def line(name, events, seconds):
    middle = statistics.median(seconds)
    print(f"{name:34} {events:8d} events {middle * 1e3:9.1f} ms ({min(seconds) * 1e3:.1f}-{max(seconds) * 1e3:.1f})"
          f" {middle * 1e6 / events:8.3f} us/event")
    return middle / events


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--repeat", type=int, default=11)
    parser.add_argument("--steps", type=int, default=4000)
    arguments = parser.parse_args()
    trace = lanescope.read_trace(arguments.trace)
    ours = line("lanescope key_averages + table", len(trace), lanescope_seconds(trace, arguments.repeat))
    seconds, events = torch_seconds(arguments.steps, 3)
    theirs = line("torch.profiler key_averages + table", events, seconds)
    print(f"lanescope needs 1/{theirs / ours:.0f} of torch.profiler's time per event")


if __name__ == "__main__":
    main()
