"""Perfetto's protobuf: what `lanescope convert` writes is read by Python's protobuf with Perfetto's own description of it, and
what lanescope reads back is what it wrote."""

from __future__ import annotations

import collections
import gzip
import json

import pytest

from conftest import DATA, NEEDS_SHARED_TRACES, SHARED_TRACES

protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2",
                             reason="needs the packages perfetto and protobuf (pip install perfetto protobuf)")

unknown_fields = pytest.importorskip("google.protobuf.unknown_fields", reason="needs the package protobuf (pip install protobuf)")

empty_pb2 = pytest.importorskip("google.protobuf.empty_pb2")

OWN_FIELD = 200001  # docs/formats/pftrace.md
TRACES = [DATA / "h200_stacks" / "train_everything.json.gz", DATA / "h200_mlp_train" / "trace.json.gz"]


@pytest.fixture(params=TRACES, ids=lambda path: path.parent.name)
def trace(request):
    return request.param


def nanoseconds(us):
    whole, _, part = f"{us:.3f}".partition(".")
    return int(whole) * 1000 + int(part)


class Decoded:
    """The events of a file by track, with texts instead of the numbers of interned texts."""

    def __init__(self, path):
        self.tracks, self.slices, self.flows = {}, [], []
        trace = protos.Trace()
        trace.ParseFromString(path.read_bytes())
        first, *others = (packet for packet in trace.packet if not packet.HasField("track_descriptor"))
        assert first.sequence_flags == 1 and all(packet.sequence_flags == 2 for packet in others)
        names, categories, keys, texts = {}, {}, {}, {}
        times = [packet.timestamp for packet in trace.packet if packet.HasField("track_event")]
        assert times == sorted(times)
        open_slices, starts, ends = collections.defaultdict(list), {}, {}
        for packet in trace.packet:
            interned = packet.interned_data
            names.update((entry.iid, entry.name) for entry in interned.event_names)
            categories.update((entry.iid, entry.name) for entry in interned.event_categories)
            keys.update((entry.iid, entry.name) for entry in interned.debug_annotation_names)
            texts.update((entry.iid, self.text(entry)) for entry in interned.debug_annotation_string_values)
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if not packet.HasField("track_event"):
                continue
            event = packet.track_event
            if event.type == protos.TrackEvent.TYPE_SLICE_BEGIN:
                annotations = list(event.debug_annotations)
                for place, annotation in self.own_arguments(packet):
                    annotations.insert(place, annotation)
                args = {keys[each.name_iid]: self.value(each, texts) for each in annotations}
                category = categories[event.category_iids[0]] if event.category_iids else ""
                one = {"name": names[event.name_iid], "cat": category, "ts": packet.timestamp, "args": args,
                       "track": event.track_uuid}
                open_slices[event.track_uuid].append(one)
                starts.update((flow, one) for flow in event.flow_ids)
                ends.update((flow, one) for flow in event.terminating_flow_ids)
            elif event.type == protos.TrackEvent.TYPE_SLICE_END:
                one = open_slices[event.track_uuid].pop()
                one["dur"] = packet.timestamp - one["ts"]
                assert one["dur"] >= 0
                self.slices.append(one)
        assert not any(open_slices.values())
        assert starts.keys() == ends.keys()
        self.flows = [(starts[flow], ends[flow]) for flow in starts]
        assert {one["track"] for one in self.slices} <= self.tracks.keys()

    @staticmethod
    def own_arguments(packet):
        """Those that Perfetto does not show: their places, and what an annotation has."""
        def fields(message):
            return [(field.field_number, field.data) for field in unknown_fields.UnknownFieldSet(message)]

        for number, own in fields(packet):
            for part, content in fields(empty_pb2.Empty.FromString(own)) if number == OWN_FIELD else ():
                if part == 8:
                    argument = dict(fields(empty_pb2.Empty.FromString(content)))
                    yield argument[1], protos.DebugAnnotation.FromString(argument[2])

    @staticmethod
    def text(entry):
        """A text, or the list that it is marked as."""
        is_list = any((field.field_number, field.data) == (OWN_FIELD, 1) for field in unknown_fields.UnknownFieldSet(entry))
        return json.loads(entry.str) if is_list else entry.str.decode()

    @staticmethod
    def value(annotation, texts):
        kind = annotation.WhichOneof("value")
        if kind == "string_value_iid":
            return texts[annotation.string_value_iid]
        if kind is None:
            return None  # null
        return json.loads(annotation.legacy_json_value) if kind == "legacy_json_value" else getattr(annotation, kind)

    def track_name(self, uuid):
        track = self.tracks[uuid]
        return track.thread.thread_name or track.name


def key(name, cat, ts, dur, args):
    return name, cat, ts, dur, json.dumps(args, sort_keys=True)


def test_python_reads_each_slice_with_its_times_and_arguments(run, trace, tmp_path):
    ran = run("convert", trace, "-o", "x.pftrace")
    assert ran.code == 0 and ran.out.startswith("wrote x.pftrace: "), ran
    decoded = Decoded(tmp_path / "x.pftrace")
    events = [event for event in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"] if event["ph"] == "X"]
    written = collections.Counter(key(one["name"], one["cat"], one["ts"], one["dur"], one["args"]) for one in decoded.slices)
    expected = collections.Counter(key(event["name"], event.get("cat", ""), nanoseconds(event["ts"]), nanoseconds(event["dur"]),
                                       event.get("args", {})) for event in events)
    assert written == expected


def test_python_finds_the_streams_the_arrows_and_the_time_of_the_day(run, trace, tmp_path):
    assert run("convert", trace, "-o", "x.pftrace").code == 0
    decoded = Decoded(tmp_path / "x.pftrace")
    kernels = [one for one in decoded.slices if one["cat"] == "kernel"]
    assert kernels
    for kernel in kernels:
        track = decoded.tracks[kernel["track"]]
        assert track.name.startswith(f"stream {kernel['args']['stream']}") and decoded.tracks[track.parent_uuid].name
    launches = [(start, end) for start, end in decoded.flows if end["cat"] == "kernel"]
    assert launches
    assert all(start["args"]["correlation"] == end["args"]["correlation"] for start, end in launches)
    document = json.loads(gzip.decompress(trace.read_bytes()))
    arrows = [{(event["cat"], event["id"]) for event in document["traceEvents"] if event["ph"] == phase} for phase in "sf"]
    assert len(decoded.flows) == len(arrows[0] & arrows[1])
    packets = protos.Trace()
    packets.ParseFromString((tmp_path / "x.pftrace").read_bytes())
    clocks = {clock.clock_id: clock.timestamp for clock in packets.packet[0].clock_snapshot.clocks}
    assert clocks[1] - clocks[6] == document["baseTimeNanoseconds"]


def test_a_trace_comes_back_with_the_same_tables_and_launches(run, trace, tmp_path):
    assert run("convert", trace, "-o", "x.pftrace").code == 0
    for command in (["table", "--json"], ["tree"], ["memory", "--json"]):
        there, back = (run(command[0], path, *command[1:]) for path in (trace, "x.pftrace"))
        assert there.code == back.code
        assert there.out.replace(str(trace), "FILE") == back.out.replace("x.pftrace", "FILE"), command
    query = "SELECT launch.*, kernel.name FROM launch JOIN kernel ON kernel.id = launch.id ORDER BY kernel.ts"
    columns = "SELECT count(*), sum(dur), min(ts), max(ts + dur) FROM kernel"
    for sql in (columns, "SELECT count(*), count(op_id), count(call_id) FROM launch"):
        assert run("sql", trace, sql).out == run("sql", "x.pftrace", sql).out, query
    assert run("convert", "x.pftrace", "a.json").code == 0 and run("convert", trace, "b.json").code == 0
    a, b = (json.loads((tmp_path / name).read_text()) for name in ("a.json", "b.json"))
    assert collections.Counter(map(json.dumps, a["traceEvents"])) == collections.Counter(map(json.dumps, b["traceEvents"]))
    assert (tmp_path / "x.pftrace").stat().st_size < (tmp_path / "b.json").stat().st_size / 2


def test_a_packed_or_cut_file_is_read_and_an_empty_one_refused(run, trace, tmp_path):
    assert run("convert", trace, "-o", "x.pftrace").code == 0
    content = (tmp_path / "x.pftrace").read_bytes()
    (tmp_path / "y.pftrace.gz").write_bytes(gzip.compress(content, 1))
    assert run("table", "y.pftrace.gz", "--json").out.count("aten::") == run("table", "x.pftrace", "--json").out.count("aten::")
    assert run("info", "-", stdin=content).code == 0
    (tmp_path / "cut.pftrace").write_bytes(content[: len(content) * 2 // 3])
    ran = run("info", "cut.pftrace")
    assert ran.code == 0 and "truncated-file" in ran.out
    (tmp_path / "empty.pftrace").write_bytes(b"")
    assert "an empty file" in run("info", "empty.pftrace").complaint()


@pytest.mark.skipif(not SHARED_TRACES.exists(), reason=NEEDS_SHARED_TRACES)
def test_traces_of_perfetto_say_who_wrote_them_and_what_was_not_read(run):
    ran = run("info", SHARED_TRACES / "public" / "perfetto_nested_tracks.pftrace")
    assert ran.code == 0 and "Perfetto" in ran.out and ran.err == ""
