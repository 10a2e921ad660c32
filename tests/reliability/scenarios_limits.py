"""Little room: disks, folders, files, memory. And changes to a recording's file while it is written."""

from __future__ import annotations

import os
import resource
import subprocess

from harness import (LANESCOPE, MB, Broken, Guest, Skip, check_counts, disk, environment, folder, memory_cgroup, need_torch, only,
                     promise, read, run, whole_or_absent)

# A program that knows nothing of lanescope.
PLAIN = "import torch\noperators({count})\nlast_line()\n"
END = "prof.stop()\ndropped(prof)\n"


def both_end_with_0(code, out, **options):
    """Runs the program plain, then recorded. Skips when it cannot even run plain."""
    plain = run(code, out, **options)
    if plain.code != 0:
        raise Skip(f"the program itself does not run so: {plain.err.strip().splitlines()[-1:]}")
    recorded = run(code, out, record=[], **options)
    promise(recorded.code == 0, f"plain it ends with 0, recorded with {recorded.code}: {recorded.err[-400:]}")
    return recorded


def expect_operators(there, counted):
    """In each result that is there, every operator is found or counted."""
    for ending, found in there.items():
        promise(found.of("aten::neg_") + found.dropped == counted,
                f"{ending}: {counted} counted, {found.of('aten::neg_')} found, {found.dropped} dropped")


def describe(there, counted):
    if not there:
        return f"counted {counted:,}; no result"
    return f"counted {counted:,}; " + ", ".join(
        f"{ending} found {found.of('aten::neg_'):,} dropped {found.dropped:,}" for ending, found in sorted(there.items()))


def disk_reserve(_options):
    """a disk of 60 MB: the recording leaves half of it, the program can write its own 20 MB, drops are counted"""
    code = ("prof = profile()\nprof.start()\nfor thread in on_threads(300_000): thread.join()\n"
            "checkpoint(os.environ['RELIABILITY_OUT'] + '/own', 20 << 20)\n" + END)
    with disk("size=60m") as out:
        ended = run(code, out)
        promise(ended.code == 0 and "checkpoint written" in ended.out, f"ended with {ended.code}: {ended.err[-300:]}")
        found = read(only(out))
        check_counts(found, ended.counted)
        promise(found.dropped == ended.number("dropped"), "the file counts other drops than the recorder")
        promise(found.dropped > 0, "nothing was dropped: the disk was not small enough to show anything")
        size = only(out).stat().st_size
    return 1, f"counted {sum(ended.counted):,}, found {found.of(r't.*'):,}, dropped {found.dropped:,}; file {size / MB:.0f} MB"


def disk_full(_options):
    """no reserve and a disk of 20 MB, full: the program ends with 0, drops are counted"""
    code = "prof = profile(disk_reserve=0)\nprof.start()\nfor thread in on_threads(200_000): thread.join()\n" + END
    with disk("size=20m") as out:
        ended = run(code, out)
        promise(ended.code == 0, f"ended with {ended.code}: {ended.err[-300:]}")
        found = read(only(out))
        check_counts(found, ended.counted)
        promise(found.dropped > 0, "nothing was dropped: the disk was not small enough to show anything")
    return 1, f"counted {sum(ended.counted):,}, found {found.of(r't.*'):,}, dropped {found.dropped:,}"


def disk_full_results(_options):
    """no room for the trace at the exit: the program ends with 0, the recording stays, nothing half has a final name"""
    need_torch()
    with disk("size=24m") as out:
        ended = both_end_with_0(PLAIN.format(count=200_000), out)
        counted = ended.counted[0]
        there = whole_or_absent(out)
        promise(there, "neither a trace nor a recording is there")
        expect_operators(there, counted)
    return 1, describe(there, counted)


def read_only_folder(_options):
    """a folder that cannot be written: `record` says so and starts nothing; when it becomes so later, the program ends with 0"""
    need_torch()
    with disk("size=1m,ro") as out:
        refused = run("print('begun')", out, record=[])
        promise(refused.code == 2 and "begun" not in refused.out, f"ended with {refused.code}: {refused.err[-300:]}")
        promise("Read-only file system" in refused.err, f"no line says why: {refused.err[-300:]}")
    with disk("size=1m") as out:  # recording begins with the import of torch
        later = "import subprocess\nsubprocess.run(['mount', '-o', 'remount,ro', os.environ['RELIABILITY_OUT']], check=True)\n"
        ended = run(later + PLAIN.format(count=1000), out, record=[])
        promise(ended.code == 0, f"ended with {ended.code}: {ended.err[-300:]}")
        promise(ended.counted[0] == 1000 and "not recorded" in ended.err, f"stderr: {ended.err[-300:]}")
        promise(not list(out.iterdir()), "a file is there")
    return 1, "the program made its 1,000 operators; no result"


def deleted_folder(_options):
    """the folder is deleted while the program records: it ends with 0, the next recording is whole"""
    need_torch()
    code = ("import shutil, torch\noperators(20_000)\nshutil.rmtree(os.environ['RELIABILITY_OUT'], ignore_errors=True)\n"
            "operators(20_000)\n")
    with folder() as parent:
        ended = both_end_with_0(code, parent / "gone")
        promise("deleted" in ended.err, f"nothing says that the file was deleted: {ended.err[-300:]}")
        again = run(PLAIN.format(count=1000), parent / "gone", record=[])
        expect_operators(whole_or_absent(parent / "gone"), again.counted[0])
    return 1, "the next one found 1,000 of 1,000"


def limited(limit, value):
    def apply():
        resource.setrlimit(limit, (value, value))
    return apply


def open_files(_options):
    """ulimit -n 40, and no descriptor left at the exit: ends with 0, the recording is there"""
    need_torch()
    code = ("import torch\noperators(20_000)\nheld = []\ntry:\n    while True: held.append(open('/dev/null'))\n"
            "except OSError: pass\noperators(20_000)\nos.write(1, b'held %d\\n' % len(held))\n")
    with folder() as out:
        ended = both_end_with_0(code, out, preexec=limited(resource.RLIMIT_NOFILE, 40))
        there = whole_or_absent(out)
        promise(there, "neither a trace nor a recording is there")
        expect_operators(there, ended.counted[0])
    return 1, describe(there, ended.counted[0])


def address_space(_options):
    """ulimit -v little above what the program needs (+16, +64, +256, +1024 MB): ends with 0, results whole or absent"""
    need_torch()
    code = PLAIN.format(count=50_000) + "print('peak', open('/proc/self/status').read().split('VmPeak:')[1].split()[0])\n"
    results, counted = [], 0
    with folder() as out:
        peak = int(run(code, out).number("peak")) * 1024
    for more in (16, 64, 256, 1024):
        with folder() as out:
            try:
                ended = both_end_with_0(code, out, preexec=limited(resource.RLIMIT_AS, peak + (more << 20)))
            except Broken as error:
                raise Broken(f"+{more} MB: {error}") from None
            there = whole_or_absent(out)
            expect_operators(there, ended.counted[0])
            counted = ended.counted[0]
            found = next((f.of("aten::neg_") for f in there.values()), None)
            results.append(f"+{more}: {'no result' if found is None else f'found {found:,}'}")
    return len(results), f"counted {counted:,}; " + ", ".join(results)


def file_size(_options):
    """ulimit -f 2 MB: the program ends with 0, drops are counted"""
    code = "prof = profile()\nprof.start()\nfor thread in on_threads(50_000): thread.join()\n" + END
    with folder() as out:
        ended = run(code, out, preexec=limited(resource.RLIMIT_FSIZE, 2 << 20))
        promise(ended.code == 0, f"ended with {ended.code}: {ended.err[-300:]}")
        found = read(only(out))
        check_counts(found, ended.counted)
        promise(found.dropped > 0, "nothing was dropped: the limit was not small enough to show anything")
    return 1, f"counted {sum(ended.counted):,}, found {found.of(r't.*'):,}, dropped {found.dropped:,}"


def cgroup(version):
    """The limit leaves 48 MB above what the program itself keeps, for all of ours: the recorder, the conversion, and the pages
    of the files that they write. The recording and the trace must be three times that. A program that keeps as many bytes in
    memory shows that the limit is one: it is killed."""
    need_torch()
    own = "print('own', open('/proc/self/status').read().split('RssAnon:')[1].split()[0])\n"
    code, room = PLAIN.format(count=600_000) + own, 48 * MB
    with memory_cgroup(version) as group, folder() as out:
        limit = int(run(code, out).number("own")) * 1024 + room
        group.limit(limit)
        plain = run(code, out, preexec=group.join)
        if plain.code != 0:
            raise Skip(f"the program itself does not run within {limit} bytes: {plain.code}")
        ended = run(code, out, record=["--json"], preexec=group.join)
        promise(ended.code == 0, f"plain it ends with 0, recorded with {ended.code}: {ended.err[-400:]}")
        promise(group.killed() == 0, f"{group.killed()} processes were killed for their memory")
        there = whole_or_absent(out)
        promise(".json" in there, f"expected a trace, found {list(there)}: {ended.err[-300:]}")
        expect_operators(there, ended.counted[0])
        size = ended.counted[0] * 48 + only(out, "*.json").stat().st_size
        promise(size >= 3 * room, f"recording and trace have {size} bytes, too little to show anything in {room}")
        peak = group.peak_bytes()
        hoards = run(f"kept = b'x' * {size}\n" + code, out, preexec=group.join)
        promise(hoards.code == -9 and group.killed() > 0, f"a program that keeps {size} bytes more ended with {hoards.code}")
    return 1, (f"{describe(there, ended.counted[0])}; limit {limit / MB:.0f} MB, {room / MB:.0f} above the program's own; recording "
               f"and trace {size / MB:.0f} MB; the cgroup held {peak / MB:.0f} MB at most, none killed; the same kept in memory: killed")


def cgroup_v1(_options):
    """a memory cgroup (v1) 48 MB above the program's own, --json of three times that: no process is killed, the trace is whole"""
    return cgroup(1)


def cgroup_v2(_options):
    """a memory cgroup (v2) 48 MB above the program's own, --json of three times that: no process is killed, the trace is whole"""
    return cgroup(2)


def write_nested(path, slices):
    """Operators in operators on one thread, of 50 names."""
    event = '{"ph":"X","cat":"cpu_op","name":"op%d","pid":1,"tid":1,"ts":%d,"dur":%d}'
    path.write_text('{"traceEvents":[' + ",\n".join(event % (i % 50, i * 3, 5 if i % 2 == 0 else 1) for i in range(slices)) + "]}")


def read_in_cgroup(version):
    """Each command in groups from 8 MiB on: it answers, or says in one line of which limit there is too little."""
    answered, refused = 0, 0
    with folder() as out:
        for name, slices in (("small", 500), ("large", 100_000)):
            trace = out / f"{name}.json"
            write_nested(trace, slices)
            for mib in (8, 16, 24, 32, 40, 48, 64, 128):
                for words in (["info"], ["table"], ["explain"], ["view", "--force", "--html", out / "page.html"]):
                    with memory_cgroup(version) as group:
                        group.limit(mib << 20)
                        ran = subprocess.run([LANESCOPE, words[0], trace, *words[1:]], env=environment(LANESCOPE_INDEX="off"), timeout=600,
                                             check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=group.join)
                    said = f"{words[0]} of {slices} slices in {mib} MiB ended with {ran.returncode}: {ran.stderr[-300:]}"
                    promise(ran.returncode in (0, 1), said)
                    promise(ran.returncode == 0 or (f"control group (a container or a job) allows {mib} MiB of memory" in ran.stderr
                                                    and ran.stderr.count("\n") == 1), said)
                    promise(ran.returncode == 0 or name == "large" and mib < 128, said)
                    answered, refused = answered + (ran.returncode == 0), refused + (ran.returncode == 1)
    promise(refused > 0, "no limit was small enough to show anything")
    return 1, f"groups of 8 to 128 MiB, traces of 500 and 100,000 slices: {answered} answers, {refused} refusals in one line, none killed"


def cgroup_v1_reading(_options):
    """info, table, explain and view in small memory cgroups (v1): they answer or end in one line, no process is killed"""
    return read_in_cgroup(1)


def cgroup_v2_reading(_options):
    """info, table, explain and view in small memory cgroups (v2): they answer or end in one line, no process is killed"""
    return read_in_cgroup(2)


def touched(word, action):
    code = f"""
import glob, time
from lanescope import record_function
prof = profile()
prof.start()
threads = on_threads(40_000)
(spool,) = glob.glob(os.environ["RELIABILITY_OUT"] + "/*.lspool")
{action}
for thread in threads: thread.join()
prof.stop()
with profile() as again:
    for _ in range(1000):
        with record_function("again"): pass
print("again", sum(row.count for row in again.key_averages() if row.key == "again"))
"""
    with folder() as out:
        ended = run(code, out)
        promise(ended.code == 0, f"ended with {ended.code}: {ended.err[-300:]}")
        promise(min(ended.counted[:3]) == 40_000, f"the program did not go on: {ended.counted}")
        promise(f"was {word} while it was written" in ended.err, f"no line says so: {ended.err[-300:]}")
        promise(ended.number("again") == 1000, "the next recording is not whole")
    return 1, "the program made all its 120,000 ranges; the next recording found 1,000 of 1,000"


def cut_file(_options):
    """truncate of the recording: the program goes on and ends with 0, a line says so, the next recording is whole"""
    return touched("cut", "os.truncate(spool, 0)")


def deleted_file(_options):
    """rm of the recording: the program goes on and ends with 0, a line says so, the next recording is whole"""
    return touched("deleted", "os.unlink(spool)")


CLOSED = """
prof = profile()
prof.start()
ranges(0, 20_000)
os.closerange(3, 4096)
own = [open(f"{folder}/{n}", "wb") for n in range(16)]
for file in own:
    file.write(b"x" * (16 << 20))
    file.flush()
ranges(0, 80_000)
for file in own: file.close()
prof.stop()
dropped(prof)
print("own_files", sum(open(f"{folder}/{n}", "rb").read() == b"x" * (16 << 20) for n in range(16)))
"""


def closed_descriptors(_options):
    """the program closes all descriptors and opens 16 files: these stay as it wrote them, the recording goes on"""
    with folder() as out, folder() as own:
        ended = run(f"folder = {str(own)!r}\n" + CLOSED, out)
        promise(ended.code == 0, f"ended with {ended.code}: {ended.err[-300:]}")
        promise(ended.number("own_files") == 16, f"only {ended.number('own_files')} of 16 files are as the program wrote them")
        found = read(only(out))
        check_counts(found, ended.counted)
    return 1, f"16 files as written; counted {sum(ended.counted):,}, found {found.of(r't.*'):,}, dropped {found.dropped:,}"


KEPT_SECONDS = 2.0  # of the flight recorder
RING = f"""
import collections, time
from lanescope import record_function
prof = profile(last={KEPT_SECONDS})
prof.start()
ready()

def resident():
    with open("/proc/self/status") as status:
        return sum(int(line.split()[1]) << 10 for line in status if line.startswith(("RssAnon", "RssFile", "RssShmem")))

def paced_ranges():  # names repeat: each new name stays in the file and in memory
    done = counters[0]
    for _ in range(200):
        done += 1
        with record_function("t0" if done % 500 else f"t0_{{done % 1_000_000}}"): pass
        counters[0] = done
    time.sleep(0.002)

begun = seen = time.monotonic()
steady = most = None  # bytes of the file, bytes of memory
newest = collections.deque(maxlen=64)  # when which range was made
while seen < begun + SECONDS:
    paced_ranges()
    if time.monotonic() < seen + 0.1: continue
    seen = time.monotonic()
    newest.append((seen, counters[0]))
    now = os.stat(prof.spool_path).st_size, resident()
    if seen < begun + 2 * {KEPT_SECONDS}: continue
    steady = steady or now
    most = now if most is None else tuple(map(max, most, now))
end = time.monotonic()
print("steady", *steady)
print("most", *most, now[1])
print("older", next(made for at, made in newest if at >= end - {KEPT_SECONDS}), flush=True)
os.kill(os.getpid(), 9)
"""


def ring(options):
    """a flight recorder, killed: the file holds the last 2 s; after 4 s neither the file nor the program's memory grows"""
    with folder() as out:
        ended = Guest(RING.replace("SECONDS", str(options.ring_seconds)), out).wait(options.ring_seconds + 120)
        promise(ended.code == -9, f"ended with {ended.code}: {ended.err[-300:]}")
        made, older = ended.counted[0], int(ended.number("older"))
        file, most_file = ended.number("steady", 1), ended.number("most", 1)
        memory, most_memory, last_memory = ended.number("steady", 2), ended.number("most", 2), ended.number("most", 3)
        # It holds what 2 s make, and how much that is differs a little from second to second.
        promise(most_file <= 1.5 * file, f"the file grew from {file:.0f} to {most_file:.0f} bytes")
        promise(made * 48 > 2 * most_file, f"{made} ranges of 48 bytes: too few to show that a file of {most_file:.0f} bytes is a ring")
        promise(most_memory <= memory + 8 * MB, f"the program's memory grew from {memory:.0f} to {most_memory:.0f} bytes")
        found = read(only(out))
        there = found.of(r"t0.*")
        promise(found.dropped == 0, f"{found.dropped} dropped")
        promise(there >= made - older, f"{made - older} ranges were made in the last {KEPT_SECONDS} s, {there} are in the file")
        promise(found.window_ns <= 1.1e9 * KEPT_SECONDS, f"the recording holds {found.window_ns} ns")
        numbers = {number % 1_000_000 for number in range(made - there + 1, made + 1) if number % 500 == 0}
        kept = {int(name[3:]) for name in found.calls if name.startswith("t0_")}
        promise(kept == numbers, f"not the last {there} ranges: {len(kept ^ numbers)} of the {len(numbers)} numbered ones differ")
    return 1, (f"{options.ring_seconds} s: counted {made:,} ({made * 48 / MB:,.0f} MB), of these {made - older:,} in the last "
               f"{KEPT_SECONDS:.0f} s; kept {there:,} ({found.window_ns / 1e9:.2f} s); file {file / MB:.1f} MB after 4 s, "
               f"{most_file / MB:.1f} MB at most; memory {memory / MB:.1f} MB after 4 s, {most_memory / MB:.1f} MB at most, "
               f"{last_memory / MB:.1f} MB at the end")


def exit_time(count, flags, ending, wait, may_stay=False, host_most=100 * MB, converter_most=250 * MB):
    need_torch()
    code = PLAIN.format(count=count)
    with folder() as out:
        plain, ended = run(code, out), run(code, out, record=flags)
        promise(plain.code == 0 and ended.code == 0, f"ended with {plain.code}, recorded with {ended.code}: {ended.err[-300:]}")
        there = whole_or_absent(out)
        expected = {ending, ".lspool"} if may_stay else {ending}
        promise(ending in there and set(there) <= expected, f"expected {ending}, found {list(there)}: {ended.err[-300:]}")
        table = any(out.glob("*.txt"))
        size = only(out, "*" + ending).stat().st_size
        expect_operators(there, ended.counted[0])
        promise(ended.converter_peak_bytes <= converter_most, f"the conversion took {ended.converter_peak_bytes} bytes")
        more = (ended.number("last_line", 2) - plain.number("last_line", 2)) * 1024
        promise(more <= host_most, f"recording took {more} bytes of the program's memory")
        seconds, before = (each.ended_at - each.number("last_line", 1) for each in (ended, plain))
        promise(wait is None or seconds <= before + wait, f"the end took {seconds:.1f} s")
    converter = f"; converter {ended.converter_peak_bytes / MB:.0f} MB" if ended.converter_peak_bytes else "; no conversion"
    return 1, (describe(there, ended.counted[0]) + f", {size / MB:.0f} MB; last line to end {seconds:.2f} s, plain {before:.2f} s; "
               f"host {more / MB:+.0f} MB{converter}{'; table' if table else '; no table'}")


def exit_small(_options):
    """the exit of a recording under 16 MiB: trace and table are whole, the program waits 10 s at most"""
    return exit_time(100_000, [], ".json", 20)


def exit_long(_options):
    """the exit of a long recording: it stays .lspool, and the program ends at once"""
    return exit_time(2_000_000, [], ".lspool", 20)


def exit_long_json(_options):
    """the exit of a long recording with --json: the trace is whole, host and converter stay small"""
    # The table needs the whole recording in memory; when it finds no room, the recording stays. 29 MB of recording become
    # 127 MB of trace: who kept the one or the other in memory would be over these limits.
    return exit_time(600_000, ["--json"], ".json", None, may_stay=True, host_most=25 * MB, converter_most=60 * MB)
