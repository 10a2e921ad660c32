#!/usr/bin/env python3
"""Draws the files of this folder and FACTS.json: traces that recorders, old and new, and broken disks write. Run it to write them again.

Every file shows one small drawn program. What must be read of a file is counted here, with json and decimal, by no code of lanescope.
"""
import gzip
import json
import pathlib
from collections import Counter
from decimal import Decimal

HERE = pathlib.Path(__file__).resolve().parent
PID, TID, GPU, STREAM, START = 4100, 4100, 0, 7, 1_700_000_000_000_000


def slice_of(cat, name, pid, tid, ts, dur, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def arrow(ph, number, pid, tid, ts, cat="ac2g"):
    return {"ph": ph, "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": cat, "name": cat, **({"bp": "e"} if ph == "f" else {})}


def program():
    """Three matmuls: operator, call, arrow, kernel; a range around them; names of the rows; the recording's own span and mark."""
    events = [slice_of("user_annotation", "ProfilerStep#1", PID, TID, START, 900.5)]
    for i in range(3):
        at, number = START + 10 + 100 * i, 50 + i
        events += [slice_of("cpu_op", "aten::mm", PID, TID, at, 40.25, **{"External id": i + 1, "Input Dims": [[64, 64], [64, 64]]}),
                   slice_of("cuda_runtime", "cudaLaunchKernel", PID, TID, at + 5, 8.125, cbid=211, correlation=number),
                   arrow("s", number, PID, TID, at + 5), arrow("f", number, GPU, STREAM, at + 20),
                   slice_of("kernel", "gemm_64x64", GPU, STREAM, at + 20, 33.5, device=0, context=1, stream=7, correlation=number,
                            **{"est. achieved occupancy %": 25, "registers per thread": 96})]
    events += [{"ph": "M", "name": "process_name", "pid": PID, "tid": 0, "ts": START, "args": {"name": "python"}},
               {"ph": "M", "name": "thread_name", "pid": PID, "tid": TID, "ts": START, "args": {"name": "thread 4100 (python)"}},
               slice_of("Trace", "PyTorch Profiler (0)", "Spans", "PyTorch Profiler", START, 1000, **{"Op count": 0}),
               {"ph": "i", "s": "g", "name": "Record Window End", "pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": START + 1000}]
    return events


def document(events, **entries):
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Drawn GPU"}], "traceEvents": events, **entries}


def write_json(value):
    """One event a line, as Kineto writes them."""
    events = value if isinstance(value, list) else value["traceEvents"]
    lines = ",\n".join("  " + json.dumps(event) for event in events)
    if isinstance(value, list):
        return f"[\n{lines}\n]\n"
    before = {key: entry for key, entry in value.items() if key != "traceEvents"}
    return json.dumps(before)[:-1] + f', "traceEvents": [\n{lines}\n]}}\n'


def facts_of(value):
    """What must be read of an undamaged file."""
    events = value if isinstance(value, list) else value["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    starts = [Decimal(str(event["ts"])) for event in slices]
    ends = [Decimal(str(event["ts"])) + Decimal(str(event["dur"])) for event in slices]
    sums = Counter()
    for event in slices:
        sums[event.get("cat", "(none)")] += Decimal(str(event["dur"]))
    facts = {"kind": "json", "events": len(events), "ph": dict(Counter(event["ph"] for event in events)),
             "x_lanes": len({(str(event["pid"]), str(event["tid"])) for event in slices}),
             "x_dur_sum_us_by_cat": {cat: str(total) for cat, total in sums.items()}}
    return {**facts, "x_first_ts": str(min(starts)), "x_last_end": str(max(ends))} if slices else facts


def old_kineto(with_schema):
    """torch before 1.9: categories with capitals, "stream 7" and thread numbers as texts, arrows of "async"; no metadata at all."""
    thread = str(2**32 - 900)
    events = []
    for i in range(2):
        at, number = START + 100 * i, 70 + i
        events += [slice_of("Operator", "aten::mm", PID, thread, at, 40, **{"Input dims": [[64, 64]], "Device": 0, "External id": i}),
                   slice_of("Runtime", "cudaLaunchKernel", PID, thread, at + 5, 8, **{"cbid": 211, "correlation": number, "external id": i}),
                   arrow("s", number, PID, int(thread), at + 5, "async"), arrow("f", number, 0, "stream 7", at + 20, "async"),
                   slice_of("Kernel", "gemm_64x64", 0, "stream 7", at + 20, 33, device=0, stream=7, correlation=number),
                   slice_of("Memset", "Memset (Device)", 0, "stream 7", at + 60, 1, device=0, stream=7, bytes=512),
                   {"ph": "i", "s": "t", "name": "[memory]", "pid": PID, "tid": int(thread), "ts": at + 7,
                    "args": {"Device Type": 0, "Device Id": -1, "Bytes": 512}}]
    return {"schemaVersion": 1, "traceEvents": events} if with_schema else events


def autograd_profiler():
    """torch.autograd.profiler: no categories, rows that are called functions, arrows of "cpu_to_cuda"."""
    events = []
    for i in range(3):
        at = 4200.5 + 100 * i
        events += [{"name": "aten::mm", "ph": "X", "ts": at, "dur": 60, "tid": 1, "pid": "CPU functions", "args": {}},
                   {"name": "gemm", "ph": "s", "ts": at + 20, "tid": 1, "pid": "CPU functions", "id": i, "cat": "cpu_to_cuda", "args": {}},
                   {"name": "gemm", "ph": "f", "ts": at + 30, "tid": 0, "pid": "CUDA functions", "id": i, "cat": "cpu_to_cuda", "args": {}},
                   {"name": "gemm_64x64", "ph": "X", "ts": at + 30, "dur": 25, "tid": 0, "pid": "CUDA functions", "args": {}}]
    return events


def ascend():
    """torch_npu: an array without anything around it, times as texts, numbers and texts as ids of arrows, shapes as a text."""
    at = Decimal(START)
    dims = {"Input Dims": "64,64;\r\n64,64", "Input type": "float;\r\nfloat"}
    return [slice_of("cpu_op", "aten::mm", PID, TID, f"{at}.980", 40.25, **dims),
            slice_of("enqueue", "Enqueue", PID, TID, f"{at + 5}.700", 10.87, correlation_id=82),
            {"ph": "s", "bp": "e", "name": "enqueue_to_dequeue", "id": 82, "pid": PID, "tid": TID, "ts": f"{at + 5}.700", "cat": "queue"},
            slice_of("dequeue", "Dequeue@mm", PID, TID + 1, f"{at + 29}.640", 8.02, correlation_id=82),
            {"ph": "f", "bp": "e", "name": "enqueue_to_dequeue", "id": 82, "pid": PID, "tid": TID + 1, "ts": f"{at + 29}.640", "cat": "queue"},
            {"ph": "s", "name": "HostToDevice", "id": "821", "pid": PID, "tid": TID + 1, "ts": f"{at + 30}.000", "cat": "HostToDevice"},
            {"ph": "f", "name": "HostToDevice", "id": "821", "pid": 31, "tid": 3, "ts": f"{at + 44}.500", "bp": "e", "cat": "HostToDevice"},
            slice_of("", "MatMulV2", 31, 3, f"{at + 44}.500", 22.5, **{"Task Type": "AI_CORE"}),
            {"ph": "C", "name": "AI Core Freq", "ts": f"{at + 40}.960", "pid": 32, "tid": 0, "args": {"MHz": 1800.0}}]


def rocm():
    """HIP's names, bytes once as a number and once as a text, one correlation id on all kernels of a replay, no names of rows."""
    events = [slice_of("cuda_runtime", "hipMemcpyWithStream", PID, TID, START, 20.5, bytes="4096", correlation=5),
              slice_of("gpu_memcpy", "CopyHostToDevice", 2, 0, START + 8, 10.5, bytes=4096, correlation=5, kind="HostToDevice"),
              slice_of("cuda_runtime", "hipGraphLaunch", PID, TID, START + 30, 9, correlation=6)]
    return document(events + [slice_of("kernel", f"Cijk_{k}", 2, 0, START + 50 + 10 * k, 10.001, correlation=6, stream=0) for k in range(4)])


def other_numbers():
    """Threads below 0, a device as a text, a stream as a number and as a text, slices of no length, whole times with parts of a us."""
    return document([slice_of("cpu_op", "triton_op", PID, -1480, START, 30.5, grid="[8, 1, 1]", stream="7", device="0"),
                     slice_of("mtia_runtime", "recordEvent", PID, -1480, START + 3, 6.44, correlation=9, device=1, stream_id="108"),
                     slice_of("kernel", "tiny", 1, 108, START + 12, 0, correlation=9, stream=108, grid=[8, 1, 1]),
                     slice_of("kernel", "tiny", 1, 108, START + 12, 0.5, correlation=10, stream="108", grid=[8, 1, 1])])


def main():
    files, facts = {}, {}

    def add(name, data, about, **more):
        files[name] = data if isinstance(data, bytes) else data.encode()
        facts[name] = {**about, **more, "bytes": len(files[name])}

    plain = document(program())
    text = write_json(plain)
    about, count = facts_of(plain), len(program())
    add("plain.json", text, about, text_bytes=len(text))
    # Packing: a name that lies, and bytes after the end.
    add("plain_named_gz.json.gz", text, about)
    add("gz_trailing_zeros.json.gz", gzip.compress(text.encode(), 9, mtime=0) + bytes(512), about)
    packed = gzip.compress(text.encode(), 9, mtime=0)
    add("truncated.json.gz", packed[: len(packed) * 2 // 3], {"kind": "json", "complete_events_before_error": 4})
    # Text that no JSON parser takes.
    damaged = {"kind": "json", "complete_events_before_error": count, "events_read": count}
    add("trailing_comma.json", text.replace("\n]}", ",\n]}"), damaged)
    add("utf8_bom_crlf.json", b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(), damaged)
    for name, value in (("nan_occupancy", "nan"), ("minus_nan_occupancy", "-nan"), ("inf_bandwidth", "inf"), ("json5_numbers", "Infinity")):
        add(f"{name}.json", text.replace('occupancy %": 25', f'occupancy %": {value}', 1), damaged)
    add("unescaped_quote_in_name.json", text.replace('"gemm_64x64"', '"gemm<"64x64">"', 1), damaged)
    add("windows_backslashes.json", text.replace('"aten::mm"', r'"torch\cuda\__init__.py(219): _lazy_init"', 1), damaged)
    cut = text.index("Record Window End")
    add("truncated_mid_event.json", text[:cut], {"kind": "json", "complete_events_before_error": count - 1, "events_read": count - 1})
    # Nothing, or nearly nothing.
    add("empty_file.json", "", {"kind": "json"})
    add("empty_object.json", "{}", {"kind": "json", "not_a_trace": "no traceEvents"})
    add("empty_events.json", write_json(document([])), facts_of(document([])))
    # Other recorders.
    for name, value in (("kineto_top_array", old_kineto(False)), ("kineto_schema_1", old_kineto(True)), ("legacy_autograd", autograd_profiler()),
                        ("ascend", ascend()), ("rocm", rocm()), ("other_numbers", other_numbers())):
        add(f"{name}.json", write_json(value), facts_of(value))
    for name, data in files.items():
        (HERE / name).write_bytes(data)
    (HERE / "FACTS.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
