#!/usr/bin/env python3
"""From the command `lanescope view` to its first answers, and how long a picture takes over HTTP.

usage: view_start.py [--binary LANESCOPE] [--rounds N] [--without-verdict] TRACE...
"""
import argparse
import http.client
import json
import os
import pathlib
import random
import signal
import statistics
import struct
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PICTURES = 100
SEARCHES = 20
CLICKS = 5


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


class Server:
    def __init__(self, binary, trace, page):
        self.begin = time.monotonic()
        self.process = subprocess.Popen([binary, "view", trace, "--no-open"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env={**os.environ, "LANESCOPE_PAGE": page})
        address, self.token = self.process.stdout.readline().strip().split("/#t=")
        self.connection = http.client.HTTPConnection("127.0.0.1", int(address.rsplit(":", 1)[1]))

    def ask(self, method, path, body=None):
        self.connection.request(method, path, json.dumps(body) if body is not None else None, {"X-Token": self.token})
        answer = self.connection.getresponse()
        data = answer.read()
        assert answer.status == 200, data
        return data

    def elapsed_ms(self):
        return (time.monotonic() - self.begin) * 1000

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def click_ms(server, slice_count):
    """The details of events all over the trace, each asked once, while the rules have not run."""
    times = []
    for i in range(CLICKS):
        begin = time.monotonic()
        server.ask("POST", "/api/event", {"slice": slice_count * (2 * i + 1) // (2 * CLICKS)})
        times.append((time.monotonic() - begin) * 1000)
    return times


def sum_questions(span_ns):
    """What the panels ask, while the rules have not run: (what, method, path, body)."""
    return [("the sums of 1 % of the recording", "POST", "/api/area", {"t0": span_ns // 2, "t1": span_ns // 2 + span_ns // 100}),
            ("the list of gaps", "GET", "/api/gaps?trace=0", None),
            ("the table of kernels", "POST", "/api/table", {"table": "kernels"}),
            ("the table of operators", "POST", "/api/table", {"table": "operators"}),
            ("the sums of all of it", "POST", "/api/area", {"t0": 0, "t1": span_ns})]


def measure(binary, trace, rounds, page, with_verdict):
    starts, first_frames, clicks, explains, sums = [], [], [], [], {}
    for _ in range(rounds):
        server = Server(binary, trace, page)
        meta = json.loads(server.ask("GET", "/api/meta"))["traces"][0]
        starts.append(server.elapsed_ms())
        lanes = [lane["lane"] for lane in meta["lanes"]][:40]
        server.ask("POST", "/api/frame", {"t0": 0, "t1": meta["span_ns"], "step": max(1, meta["span_ns"] // 2048), "lanes": lanes})
        first_frames.append(server.elapsed_ms())
        clicks.append(click_ms(server, meta["slice_count"]))
        for what, method, path, body in sum_questions(meta["span_ns"]):
            begin = time.monotonic()
            server.ask(method, path, body)
            sums.setdefault(what, []).append((time.monotonic() - begin) * 1000)
        if with_verdict:
            server.ask("GET", "/api/explain?trace=0")
            explains.append(server.elapsed_ms())
        if _ < rounds - 1:
            server.end()
    print(f"{trace}: {meta['slice_count']:,} slices, {len(meta['lanes'])} lanes; median of {rounds}")
    print(f"  from the command to the lanes {statistics.median(starts):.0f} ms, to the first picture "
          f"{statistics.median(first_frames):.0f} ms" + (f", to the verdict {statistics.median(explains):.0f} ms" if explains else ""))
    print(f"  details of an event before the verdict: the first {statistics.median(each[0] for each in clicks):.0f} ms, "
          f"others {statistics.median(time for each in clicks for time in each[1:]):.0f} ms")
    for what, times in sums.items():
        print(f"  {what} before the verdict: {statistics.median(times):.0f} ms")
    choice = random.Random(1)
    for part in (1, 0.1, 0.01, 0.001, 0.0001):
        length = max(2048, int(meta["span_ns"] * part))
        times, sizes = [], []
        for _ in range(PICTURES):
            t0 = 0 if length >= meta["span_ns"] else choice.randrange(meta["span_ns"] - length)
            begin = time.monotonic()
            data = server.ask("POST", "/api/frame", {"t0": t0, "t1": t0 + length, "step": max(1, length // 2048), "lanes": lanes})
            times.append((time.monotonic() - begin) * 1000)
            sizes.append(len(data))
            assert struct.unpack_from("<4s", data)[0] == b"LSVF"
        print(f"  {part * 100:7.2f} % of the recording: median {statistics.median(times):.1f} ms, p95 {percentile(times, 0.95):.1f} ms, "
              f"{statistics.median(sizes) / 1000:.0f} kB")
    for text in ("mm", "kind:compute >5us"):
        times = []
        for _ in range(SEARCHES):
            begin = time.monotonic()
            total = json.loads(server.ask("POST", "/api/search", {"text": text, "limit": 1000}))["total"]
            times.append((time.monotonic() - begin) * 1000)
        print(f"  search for '{text}': {total:,} hits, median {statistics.median(times):.1f} ms, longest {max(times):.1f} ms")
    server.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "build/release/src/lanescope/cli/lanescope"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-verdict", action="store_true", help="do not wait for the rules, which take long for millions of slices")
    parser.add_argument("traces", nargs="+", metavar="TRACE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as page:
        for trace in options.traces:
            measure(options.binary, trace, options.rounds, page, not options.without_verdict)


if __name__ == "__main__":
    main()
