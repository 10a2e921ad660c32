#!/usr/bin/env python3
"""Reads every C++ source with clang-tidy 16, and compiles every source and header alone, both from one configured build.

usage: run_tidy.py [--build build/clang] [--jobs 2] [FILE...]

  batches   clang-tidy with the checks of .clang-tidy, on the batches of the build: a batch reads each header once
  alone     clang's warnings and its thread-safety analysis of each source, and of each header that no source includes first:
            so each includes what it needs (a batch hides that)
            What includes one of the headers of SHARED starts from that header, compiled once for all: it sees no more than without
  FILE      clang-tidy on these sources alone: slower, and for one source after an edit

Reads compile_commands.json; nothing needs to be compiled. What passed is remembered in the user's cache folder, for every clone,
and read again when it, a header that it includes (directly or not), the command, the tool or .clang-tidy changed. Exit code 1:
something was found.
"""
import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from check_cache import cache_folder

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOOL = "clang-tidy-16"
SHARED = ("lanescope/explain/facts.h", "lanescope/model/trace.h")  # of which most sources include one, the larger first
FEWEST_SHARED = 8  # sources that are worth compiling a header once more
HEADER_SETS = "_verify_interface_header_sets/"  # CMake's sources of one #include each


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    command: tuple  # of the program to run
    flags: tuple  # the compiler's
    reads: tuple  # sources; what they include is found by Includes


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / os.fsdecode(name) for name in listed.split(b"\0") if name]


def without_output(command, source):
    """The flags of a command: without the source, what it writes and where."""
    words = shlex.split(command)
    kept, skip = [], False
    for word in words:
        if not skip and word not in ("-o", "-c", source):
            kept.append(word)
        skip = word == "-o"
    return kept


class Includes:
    """The files of this repository and of its build that a file includes, directly or not. Conditions count as true."""

    def __init__(self):
        self.named, self.found, self.digests = {}, {}, {}

    def digest(self, path):
        if path not in self.digests:
            self.digests[path] = hashlib.sha256(path.read_bytes()).digest()
        return self.digests[path]

    def names_in(self, path):
        if path not in self.named:
            text = path.read_text(encoding="utf-8", errors="replace")
            self.named[path] = re.findall(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', text, re.MULTILINE)
        return self.named[path]

    def resolve(self, name, includer, folders):
        key = (name, includer.parent, folders)
        if key not in self.found:
            places = (folder / name for folder in (includer.parent, *folders))
            self.found[key] = next((place.resolve() for place in places if place.is_file()), None)
        return self.found[key]

    def all_of(self, sources, command):
        """The sources and what they include, in the order of their names. `command`: the compiler's, with its -I."""
        folders = tuple(pathlib.Path(word[2:]) for word in command
                        if word.startswith("-I") and pathlib.Path(word[2:]).is_relative_to(ROOT))
        open_, seen = list(sources), set(sources)
        while open_:
            path = open_.pop()
            for name in self.names_in(path):
                file = self.resolve(name, path, folders)
                if file is not None and file not in seen:
                    seen.add(file)
                    open_.append(file)
        return sorted(seen)


def included(path):
    """What a batch, or a source that checks a header, includes."""
    return [pathlib.Path(name) for name in re.findall(r'^#include [<"](.+)[>"]', path.read_text(), re.MULTILINE)]


def headers_included_first(sources):
    """These compile alone when their source does."""
    first = set()
    for source in sources:
        header = source.with_suffix(".h")
        found = re.search(r'^#include .*$', source.read_text(), re.MULTILINE)
        if found and header.exists() and found[0].endswith(f'"{header.relative_to(ROOT / "src")}"'):
            first.add(header)
    return first


def read_build(build):
    """Flags of each source of git, the batches with their sources, and the sources of CMake that include one header."""
    flags, batches, headers = {}, {}, {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source, own = pathlib.Path(entry["file"]), without_output(entry["command"], entry["file"])
        if HEADER_SETS in entry["file"]:
            headers[source] = own
        elif source.parent.name == "Unity":
            batches[source] = tuple(included(source))
            flags.update(dict.fromkeys(batches[source], own))
        else:
            flags[source] = own
    return flags, batches, headers


def tidy_alone(source, flags):
    return Job(str(source.relative_to(ROOT)), (TOOL, "--quiet", str(source), "--", *flags[1:]), tuple(flags), (source,))


def jobs_of_build(build, flags, batches, headers):
    sources = {path for path in tracked("*.cpp") if path in flags}
    in_batches = set()
    for batch, listed in batches.items():
        if not sources.isdisjoint(listed):
            in_batches.update(listed)
            name = f"{batch.parents[3].name} {batch.stem}: {', '.join(path.stem for path in listed)}"
            yield Job(name, (TOOL, "-p", str(build), "--quiet", str(batch)), tuple(flags[listed[0]]), listed)
    for source in sorted(sources - in_batches):
        yield tidy_alone(source, flags[source])
    for source in sorted(sources & in_batches):
        command = (*flags[source], "-fsyntax-only", str(source))
        yield Job(f"{source.relative_to(ROOT)} alone", command, tuple(flags[source]), (source,))
    first = {str(path.relative_to(ROOT / "src")) for path in headers_included_first(p for p in sources if (ROOT / "src") in p.parents)}
    for source, own in sorted(headers.items()):
        header, = included(source)
        if str(header) not in first:
            yield Job(f"{header} alone", (*own, "-fsyntax-only", str(source)), tuple(own), (source,))


def compile_shared(jobs, includes, folder, pool):
    """The jobs, those that compile alone with the header of SHARED that they include, if it could be compiled."""
    users = {}
    for job in jobs:
        files = () if job.command[0] == TOOL else includes.all_of(job.reads, job.flags)
        shared = next((header for header in SHARED if ROOT / "src" / header in files), None)
        if shared and job.reads[0] != ROOT / "src" / shared:
            users.setdefault((shared, job.flags), []).append(job)
    wanted = [key for key, of_key in users.items() if len(of_key) >= FEWEST_SHARED]
    compiled = [f"{folder}/{number}.pch" for number in range(len(wanted))]

    def compile_header(key, out):
        header, flags = key
        command = (*flags, "-x", "c++-header", str(ROOT / "src" / header), "-o", out)
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    starts = {}
    for key, out, good in zip(wanted, compiled, pool.map(compile_header, wanted, compiled)):
        if good:  # else the jobs say what is wrong with it
            starts.update(dict.fromkeys(users[key], out))
    return [dataclasses.replace(job, command=(job.command[0], "-include-pch", starts[job], *job.command[1:])) if job in starts else job
            for job in jobs]


def run(job):
    done = subprocess.run(job.command, capture_output=True, text=True, check=False)
    if job.command[0] == TOOL and done.returncode in (0, 1):
        return done.returncode, done.stdout  # its count of what it does not show comes on stderr
    return done.returncode, done.stdout + done.stderr


def hash_of(*parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def passed_file():
    file = cache_folder() / "tidy_passed"
    if file.exists() and file.stat().st_size > 4 << 20:  # some 60 states of all sources
        file.unlink()
    return file


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "clang")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    build = options.build.resolve()
    if not (build / "compile_commands.json").exists():
        sys.exit(f"{build}: expected a configured build, found no compile_commands.json; run: cmake --preset clang")
    flags, batches, headers = read_build(build)
    if options.files:
        wanted = [path.resolve() for path in options.files]
        jobs = [tidy_alone(path, flags[path]) for path in wanted if path in flags]
    else:
        jobs = list(jobs_of_build(build, flags, batches, headers))
    if not jobs:
        sys.exit(f"{build}: none of these sources is part of this build")

    version = subprocess.run([TOOL, "--version"], capture_output=True, check=True).stdout
    common = hash_of(version, (ROOT / ".clang-tidy").read_bytes())
    includes = Includes()
    known = passed_file()
    passed = set(known.read_text().split()) if known.exists() else set()

    def key_of(job):  # the same in every clone
        def anywhere(text):
            return text.replace(str(build), "BUILD").replace(str(ROOT), "ROOT").encode()

        files = includes.all_of(job.reads, job.flags)
        return hash_of(common.encode(), anywhere(shlex.join(job.command)), anywhere(shlex.join(job.flags)),
                       *(part for path in files for part in (anywhere(str(path)), includes.digest(path))))

    keys = {job: key_of(job) for job in jobs}
    left = [job for job in jobs if keys[job] not in passed]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool, known.open("a") as remembered, \
            tempfile.TemporaryDirectory() as folder:
        for job, (code, text) in zip(left, pool.map(run, compile_shared(left, includes, folder, pool))):
            if code == 0:
                print(keys[job], file=remembered, flush=True)
                continue
            failed += 1
            print(f"FOUND in {job.name}\n{text}", flush=True)
    kinds = [sum(job.command[0] == TOOL for job in left), sum(job.command[0] != TOOL for job in left)]
    print(f"run_tidy: {kinds[0]} runs of clang-tidy, {kinds[1]} sources and headers compiled alone, {len(jobs) - len(left)} known, "
          f"{failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
