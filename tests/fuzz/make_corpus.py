#!/usr/bin/env python3
"""Makes the kept corpus of the fuzzers again: tests/fuzz/corpus/<target>/, from tests/data and the sketches below.

usage: make_corpus.py      writes over what it made before; files named found_* are left alone

corpus/ranks is not made here: its rows are what `lanescope ranks --shard 0/1` writes of small jobs of tools/draw_job.py.

Everything is small: an input of 2 KB is tried a thousand times a second, one of 200 KB ten times.
"""
import gzip
import hashlib
import json
import pathlib
import re
import sqlite3
import struct
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent
TESTS = HERE.parent
CORPUS = HERE / "corpus"
SKETCHES = {
    "slices": '{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": ['
              '{"ph":"X","cat":"cpu_op","name":"aten::\\u00e9","pid":5,"tid":5,"ts":100.125,"dur":50.5,'
              '"args":{"External id":1,"Input Dims":[[64, 64], []],"k":"v, {"}},'
              '{"ph":"M","name":"process_name","pid":5,"tid":0,"args":{"name":"python3"}}], "traceName": "a.json"}',
    "arrows": '[{"ph":"X","cat":"cpu_op","name":"op","pid":0,"tid":7,"ts":9,"dur":1},'
              '{"ph":"s","id":1,"cat":"ac2g","name":"ac2g","pid":5,"tid":5,"ts":1},'
              '{"ph":"t","id":1,"cat":"ac2g","name":"ac2g","pid":5,"tid":5,"ts":1.5},'
              '{"ph":"f","id":1,"cat":"ac2g","name":"ac2g","pid":0,"tid":7,"ts":2,"bp":"e"},'
              '{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":2,"dur":3}]',
    "pairs": '[{"ph":"B","cat":"c","name":"b","pid":1,"tid":1,"ts":3,"args":{"x":1.5}},'
             '{"ph":"B","cat":"c","name":"d","pid":1,"tid":1,"ts":4},{"ph":"E","pid":1,"tid":1,"ts":5},'
             '{"ph":"E","name":"b","pid":1,"tid":1,"ts":6,"args":{"y":null}}]',
    "async": '[{"ph":"b","cat":"a","id":"0x1","name":"n","pid":1,"tid":1,"ts":3},'
             '{"ph":"n","cat":"a","id":"0x1","name":"m","pid":1,"tid":1,"ts":4},'
             '{"ph":"e","cat":"a","id":"0x1","name":"n","pid":1,"tid":1,"ts":8},'
             '{"ph":"S","cat":"a","id":2,"name":"o","pid":1,"ts":3},{"ph":"F","cat":"a","id":2,"name":"o","pid":1,"ts":9}]',
    "others": '{"traceEvents":[{"ph":"C","name":"c","pid":1,"ts":5,"args":{"v":1.5,"w":"2"}},'
              '{"ph":"i","s":"g","name":"mark","pid":"p","tid":"t","ts":1,"args":{"a":[1,{"b":null}],"c":18446744073709551615}},'
              '{"ph":"M","name":"thread_sort_index","pid":1,"tid":2,"args":{"sort_index":-5}},'
              '{"ph":"M","name":"other","pid":1,"args":{"x":1}},{"ph":"X","name":"late","ts":"7.5","dur":-1,"event":3}],'
              '"displayTimeUnit":"ms","baseTimeNanoseconds":1700000000000000000}',
    "memory": '[{"ph":"X","cat":"cpu_op","name":"aten::empty","pid":1,"tid":1,"ts":1,"dur":9},'
              '{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":1,"ts":2,"args":{"Total Reserved":4096,'
              '"Total Allocated":512,"Bytes":512,"Addr":99,"Device Id":0,"Device Type":1}},'
              '{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":1,"ts":3,"args":{"Total Reserved":4096,'
              '"Total Allocated":0,"Bytes":-512,"Addr":99,"Device Id":0,"Device Type":1}}]',
    "cpu_profile": '[{"ph":"P","name":"Profile","id":"0x1","pid":7,"tid":2,"ts":100,"args":{"data":{"startTime":100}}},'
                   '{"ph":"P","name":"ProfileChunk","id":"0x1","pid":7,"tid":9,"ts":200,"args":{"data":{"cpuProfile":{"nodes":['
                   '{"id":1,"callFrame":{"functionName":"(root)"}},{"id":2,"parent":1,"callFrame":{"functionName":"f","url":"a/b.js","lineNumber":3}},'
                   '{"id":3,"callFrame":{"functionName":"","codeType":"JS"},"parent":2}],"samples":[2,3,3,2,9]},"timeDeltas":[10,10,-5,20,0],'
                   '"endTime":300}}},{"ph":"M","name":"thread_name","pid":7,"tid":2,"args":{"name":"main"}}]',
    "cpu_profile_file": '{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"},"children":[2,3]},{"id":2,"callFrame":{"functionName":"a"}},'
                        '{"id":3,"callFrame":{"functionName":"b","columnNumber":1},"children":[4]},{"id":4,"callFrame":{}}],'
                        '"startTime":1000,"endTime":1100,"samples":[2,4,3],"timeDeltas":[1,2.5,3]}',
    "broken": '{"a": NaN, "traceEvents": [{"ph":"X","name":"a "quoted" name","ts":1,"dur":2,},{"ph":"X","name":"\\q","ts":1 "dur":2}]]',
}
RECORDS_OF_A_CHUNK = 16
BUDGETS = [
    'per = "recording"\nallow_damage = true\n[at_most]\nwall = "1.5 s"\ncopy_bytes = "2 MiB"\n',
    '[at_least]\ncompute = "90 %"\nsteps = 2.5\n[at_most]\nhost_waits = 0\n',
    "[", "[rules]\nmust_not_fire = [\"host-sync\"]\n", "500ms", "2.5", "why is the first step slow?",
]

QUERIES = [
    "SELECT name, count(*), sum(dur) FROM slice GROUP BY name ORDER BY 3 DESC",
    "SELECT * FROM kernels_by_name; SELECT * FROM ops_by_name; SELECT * FROM device_gap; SELECT * FROM step_time",
    "SELECT op.name, sum(kernel.dur) FROM kernel JOIN op ON kernel.op_id = op.id WHERE kernel.ts BETWEEN 1 AND 2000000 GROUP BY 1",
    "SELECT key, extract_arg(arg_set_id, key) FROM args WHERE arg_set_id IN (SELECT arg_set_id FROM launch JOIN kernel USING(id))",
    "SELECT *, lag(ts + dur) OVER (PARTITION BY track_id ORDER BY ts) FROM slice WHERE track_id = 1 AND ts > 5 ORDER BY id DESC",
    "SELECT * FROM thread JOIN process USING(upid) LEFT JOIN stream USING(upid); SELECT * FROM flow, counter, memory_event LIMIT 3",
    "SELECT count(*) FROM collective, stack_frame, metadata, annotation, runtime_call, memcpy, instant WHERE +name IS NULL",
    "WITH RECURSIVE up(id, parent_id) AS (SELECT id, parent_id FROM slice WHERE depth = 2 UNION ALL SELECT s.id, s.parent_id "
    "FROM slice s JOIN up ON s.id = up.parent_id) SELECT count(*) FROM up",
    "ATTACH 'x' AS y; DELETE FROM slice; PRAGMA writable_schema = 1; CREATE TABLE t(x); SELECT load_extension('x')",
]
QUESTIONS = [
    'frame {"t0":0,"t1":100000,"step":64,"lanes":[0,1,2,3,4,5],"gen":1}', 'names {"names":[0,1,2,3]}', 'event {"slice":3}',
    'at {"lane":1,"row":0,"t0":0,"t1":400000}', 'area {"t0":1000,"t1":300000,"lanes":[1,3]}', 'area {}',
    'search {"text":"gemm kind:compute >1us <1ms","limit":10,"lanes":[0,1,2,3]}', 'gap {"index":1}',
    'table {"table":"kernels","sort":"median_ns","descending":false,"filter":"g","offset":1,"limit":2}',
    'table {"table":"operators","sort":"name"}', 'table {"table":"names","t0":0,"t1":100000}', 'flame {"lane":1,"t0":0,"t1":1000000}',
    'perfetto {"t0":0,"t1":200000}', 'save {"t0":0,"t1":100}', 'notes {"notes":[{"t_ns":5,"text":"here","lane":2,"slice":1}]}',
]


def read(path):
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def keep(target, name, content):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def short(value):
    """The value with its long texts and lists cut."""
    if isinstance(value, str):
        return value[:120]
    if isinstance(value, list):
        return [short(item) for item in value[:4]]
    return {key: short(item) for key, item in value.items()} if isinstance(value, dict) else value


def trimmed(path, count):
    """A few events of each kind that belong together: steps, kernels, their calls, the operators around those, their arrows."""
    trace = json.loads(read(path))
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X" and "ts" in event]
    kernels = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")][:6]
    wanted = {event.get("args", {}).get("correlation") for event in kernels} - {None}
    calls = [event for event in events if event.get("args", {}).get("correlation") in wanted]
    chosen = calls + [event for event in events if event.get("name", "").startswith("ProfilerStep#")][:3]
    for call in calls:
        chosen += [event for event in events if event["pid"] == call["pid"] and event["tid"] == call["tid"]
                   and event["ts"] <= call["ts"] and event["ts"] + event.get("dur", 0) >= call["ts"]][:3]
    seen = set()
    for event in trace["traceEvents"]:
        kind = (event.get("ph"), event.get("cat"), event.get("name") if event.get("ph") in "Mi" else None)
        if kind not in seen:
            seen.add(kind)
            chosen.append(event)
    unique = list({json.dumps(event): event for event in chosen}.values())[:count]
    head = {key: short(value) for key, value in list(trace.items())[:8] if key != "traceEvents"}
    return json.dumps({**head, "traceEvents": [short(event) for event in unique]}, separators=(",", ":"))


def nsys_exports():
    """SQLite files with pages of 512 bytes, so that an input stays small."""
    kernel = "CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT, correlationId INT, demangledName INT)"
    runtime = "CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT, correlationId INT, nameId INT)"
    strings = "StringIds(id INT, value TEXT)"
    ranges = "NVTX_EVENTS(start INT, end INT, eventType INT, text TEXT, globalTid INT)"
    inside = {
        "kernels": [(strings, [(1, "gemm"), (2, "cudaLaunchKernel_v7000")]), (kernel, [(10, 20, 0, 7, 3, 1), (25, None, 0, 7, 4, 9)]),
                    (runtime, [(5, 9, 5 << 24 | 6, 3, 2)])],
        "ranges": [(ranges, [(1, 9, 59, "step", 5 << 24 | 6), (2, None, 60, "open", 6), (3, None, 34, b"\xff".decode("latin1"), 6)])],
        "copies": [("CUPTI_ACTIVITY_KIND_MEMCPY(start INT, end INT, deviceId INT, streamId INT, bytes INT, copyKind INT, srcKind INT)",
                    [(1, 5, 0, 7, 64, 1, 0)]), ("ENUM_CUDA_MEM_KIND(id INT, label TEXT)", [(0, "Pageable")])],
    }
    for name, tables in inside.items():
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x.sqlite"
            database = sqlite3.connect(path)
            database.execute("PRAGMA page_size = 512")
            for table, rows in tables:
                database.execute(f"CREATE TABLE {table}")
                for row in rows:
                    database.execute(f"INSERT INTO {table.split('(')[0]} VALUES ({', '.join('?' * len(row))})", row)
            database.commit()
            database.close()
            yield name, path.read_bytes()


def as_pftrace(text):
    """The trace as lanescope's own release build writes it for Perfetto."""
    lanescope = TESTS.parent / "build" / "release" / "src" / "lanescope" / "cli" / "lanescope"
    with tempfile.TemporaryDirectory() as folder:
        source, made = pathlib.Path(folder) / "x.json", pathlib.Path(folder) / "x.pftrace"
        source.write_text(text if isinstance(text, str) else text.decode())
        subprocess.run([lanescope, "convert", source, "-o", made], check=True, capture_output=True)
        return made.read_bytes()


def folded(spool):
    """spool_text.h: flags, then the used start of each chunk with its size before it."""
    blocks = [spool[:512].rstrip(b"\0")]
    for at in range(4096, len(spool), 131072):
        chunk = spool[at:at + 131072]
        kind, used = struct.unpack_from("<I", chunk, 16)[0], struct.unpack_from("<I", chunk, 32)[0]
        if kind == 0:
            continue
        unit = {2: 1, 3: 128}.get(kind, 48)
        kept = min(used, 800 if unit == 1 else RECORDS_OF_A_CHUNK)
        blocks.append(chunk[:32] + struct.pack("<I", kept) + chunk[36:128] + chunk[128:128 + kept * unit])
    return b"\0" + b"".join(struct.pack("<H", len(block)) + block for block in blocks)


def main():
    for old in CORPUS.glob("*/*"):
        if not old.name.startswith("found_"):
            old.unlink()
    for name, text in SKETCHES.items():
        for target in ("read_trace", "explain", "json_mend", "index"):
            keep(target, name + ".json", text)
        packed = gzip.compress(text[:60].encode(), mtime=0) + gzip.compress(text[60:].encode(), mtime=0)
        keep("packed_trace", name + ".json.gz", packed)
    traces = sorted((TESTS / "data").glob("*/trace.json*"))
    for path in traces:
        for target in ("read_trace", "index"):
            keep(target, path.parent.name + ".json", trimmed(path, 10))
        keep("explain", path.parent.name + ".json", trimmed(path, 30))
    for path in sorted((TESTS / "data" / "faults").glob("*.bad.*.json.gz"))[::6]:
        keep("explain", path.name.replace(".json.gz", ".json"), trimmed(path, 30))
    for path in sorted((TESTS / "data").glob("*spool*/*.lspool.gz")):
        keep("spool", path.name.replace(".lspool.gz", ""), folded(read(path)))
    lines = (TESTS / "golden" / "kernel_names.txt").read_text().splitlines()
    kernels = [block[0] for block in (re.split("\n", block) for block in "\n".join(lines).split("\n\n")[1:]) if block[0]]
    names = {event["name"][:200] for path in traces for event in json.loads(read(path))["traceEvents"] if event.get("name")}
    for name in kernels[::4] + sorted(names)[::12]:
        keep("names", hashlib.sha256(name.encode()).hexdigest()[:12], name[:300])
    toml = (TESTS.parent / "docs" / "formats" / "budget.md").read_text().split("```toml\n")[1].split("```")[0]
    for i, text in enumerate([toml] + BUDGETS):
        keep("budget", f"budget{i}", text)
    for i, text in enumerate(QUESTIONS):
        keep("view_request", f"question{i}", text)
    for i, text in enumerate(QUERIES):
        keep("sql", f"query{i}", text)
    for name, content in nsys_exports():
        keep("nsys", name, content)
    for name, text in SKETCHES.items():
        keep("pftrace", name, as_pftrace(text))
    keep("pftrace", "lists", as_pftrace('[{"ph":"X","name":"n","pid":1,"tid":2,"ts":1,"dur":2,"args":'
                                        '{"a":[[4,4],[]],"b":"[[4,4],[]]","c":{"d":[]}}}]'))
    # One of each: an operator with a tensor, a list, scalars and keywords; a node of a stack; both.
    operator = b"\x02\x05float\x02\x80\x01\x80\x01\x02\x80\x01\x02" b"\x03\x01\x01\x04\x01\x02" b"\x05\x04\x07\x08\x09\x01a\x01\x06"
    keywords = b"\x0b\x03dim\x05\x02\x01k\x0a\x02\x01a\x01b"
    for name, content in {"operator": operator, "keywords": operator + keywords, "node": b"\x0d\x05\x04",
                          "stack": b"\x0c\x07" + operator}.items():
        keep("op_details", name, content)
    files = [path for path in CORPUS.glob("*/*") if path.is_file()]
    print(f"{len(files)} files, {sum(path.stat().st_size for path in files)} bytes")


if __name__ == "__main__":
    main()
