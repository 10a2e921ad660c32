"""V8's CPU profiles, as node and Chromium wrote them: what is read is compared with the samples, added up by Python alone."""

from __future__ import annotations

import collections
import gzip
import json

from conftest import SOURCE

DATA = SOURCE / "tests" / "data" / "cpu_profiles"


def rows(run, trace, query):
    ran = run("sql", trace, query, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def profile_of_events(events):
    """The chunks of a trace's only profile, as the one object of a .cpuprofile file."""
    start = next(event["args"]["data"]["startTime"] for event in events if event["name"] == "Profile")
    profile = {"startTime": start, "nodes": [], "samples": [], "timeDeltas": []}
    for event in sorted((event for event in events if event["name"] == "ProfileChunk"), key=lambda event: event["ts"]):
        data = event["args"]["data"]
        profile["nodes"] += data["cpuProfile"].get("nodes", [])
        profile["samples"] += data["cpuProfile"]["samples"]
        profile["timeDeltas"] += data["timeDeltas"]
    return profile


def times_of(profile):
    """Nanoseconds by function: total and self."""
    nodes = {node["id"]: node for node in profile["nodes"]}
    parents = {child: node["id"] for node in profile["nodes"] for child in node.get("children", [])}
    parents.update({node["id"]: node["parent"] for node in profile["nodes"] if "parent" in node})
    total, own = collections.Counter(), collections.Counter()
    at = profile["startTime"] + profile["timeDeltas"][0]
    ends = profile["timeDeltas"][1:] + [None]
    for sample, length in zip(profile["samples"], ends):
        if length is None:
            length = profile.get("endTime", at) - at
        at += length
        stack, node = [], sample
        while node is not None:
            stack.append(nodes[node]["callFrame"]["functionName"] or "(anonymous)")
            node = parents.get(node)
        assert stack.pop() == "(root)"
        own[stack[0]] += 1000 * length
        for function in stack:  # of a recursion each call, as slices are counted
            total[function] += 1000 * length
    return {name: (total[name], own[name]) for name in total if total[name] > 0}


def check(run, trace, profile):
    assert min(profile["timeDeltas"]) >= 0  # else samples would have to be sorted first
    found = collections.defaultdict(lambda: [0, 0])
    for row in rows(run, trace, "SELECT s.name, s.dur, s.dur - coalesce((SELECT sum(c.dur) FROM slice c WHERE c.parent_id = s.id), 0) AS own "
                                "FROM slice s WHERE s.category = 'cpu_profile'"):
        function = row["name"].split(" (")[0]
        found[function][0] += row["dur"]
        found[function][1] += row["own"]
    assert {name: tuple(times) for name, times in found.items()} == times_of(profile)


def test_a_profile_of_node_has_the_times_of_its_samples(run):
    path = DATA / "node.cpuprofile"
    check(run, path, json.loads(path.read_text()))
    assert "CPU profile" in run("info", path).out
    assert "sumRoots (program.js:2)" in run("tree", path).out


def test_a_profile_of_a_browser_has_the_times_of_its_samples(run):
    path = DATA / "chromium.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    check(run, path, profile_of_events(events))
    names = {row["name"] for row in rows(run, path, "SELECT name FROM thread")}
    assert "CPU profile (thread CrRendererMain)" in names


def test_the_flame_of_a_profile_has_its_self_times(run):
    for name, profile in (("node.cpuprofile", json.loads((DATA / "node.cpuprofile").read_text())),
                          ("chromium.json.gz", profile_of_events(json.loads(gzip.decompress((DATA / "chromium.json.gz").read_bytes()))["traceEvents"]))):
        ran = run("flame", DATA / name)
        assert ran.code == 0 and "of JavaScript stacks (time between samples)" in ran.err
        own = collections.Counter()
        for line in ran.out.splitlines():
            stack, weight = line.rsplit(" ", 1)
            own[stack.split(";")[-1].split(" (")[0]] += 1000 * int(weight)
        assert own == {function: times[1] for function, times in times_of(profile).items() if times[1] > 0}


def test_the_flame_of_a_file_has_no_thread_to_choose(run):
    assert "the profile does not name its thread" in run("flame", DATA / "node.cpuprofile", "--thread", "5").complaint()


def test_a_script_lies_within_the_call_that_ran_it(run):
    """`v8.run` of the same thread was measured by the browser itself; a sample is at most 1 ms late."""
    path = DATA / "chromium.json.gz"
    ran = rows(run, path, "SELECT ts, dur FROM slice WHERE name = 'v8.run'")[0]
    script = rows(run, path, "SELECT ts, dur FROM slice WHERE name = '(anonymous) (program.js)'")[0]
    assert ran["ts"] - 1_000_000 < script["ts"] and script["ts"] + script["dur"] < ran["ts"] + ran["dur"] + 1_000_000


def test_a_written_profile_is_read_again(run, tmp_path):
    for name in ("node.cpuprofile", "chromium.json.gz"):
        assert run("convert", DATA / name, "-o", tmp_path / "one.json", "--force").code == 0
        assert run("convert", tmp_path / "one.json", "-o", tmp_path / "two.json", "--force").code == 0
        assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
