#!/usr/bin/env python3
"""Lets ./check leave out a stage that passed here before with the same files.

usage: passed_before.py known --results FOLDER --stage NAME --junit NAME... [--program FILE...]   before the stage
       passed_before.py keep ...(the same)                                                      after it has passed

known: exit code 0 if it passed before; then its results of that time, FOLDER/NAME.xml for each NAME of --junit, are put back.
Else 1. keep: remembers these results in the user's cache folder, unless FOLDER/STAGE.log names a test that was run twice, or
a file has changed since `known`.

The same files: every file of the repository that git does not ignore, each --program, the Python environment with all that is
installed in it, the Debian packages, and the traces outside of the repository (by size and time). Deleting
~/.cache/lanescope-check forgets it.
"""
import argparse
import glob
import hashlib
import os
import pathlib
import shutil
import sys
import sysconfig
import time

from check_cache import add_repository_files, add_shared_traces, cache_folder

KEPT_DAYS = 30


def add_file(digest, path):
    digest.update(os.fsencode(path) + b"\0" + (hashlib.sha256(path.read_bytes()).digest() if path.is_file() else b"none"))


def key_of(stage, programs):
    digest = hashlib.sha256(repr((stage, sys.version, os.uname().release, sorted(glob.glob("/dev/nvidia*")))).encode())
    digest.update(repr(sorted(item for item in os.environ.items() if item[0].startswith("LANESCOPE_"))).encode())
    add_repository_files(digest)
    installed = pathlib.Path(sysconfig.get_path("purelib"))
    digest.update(repr(sorted(path.name for path in installed.glob("*-info"))).encode())
    ours = [path for path in sorted(installed.glob("lanescope/**/*")) if path.is_file() and path.suffix != ".pyc"]
    for path in [*ours, pathlib.Path("/var/lib/dpkg/status"), *programs]:
        add_file(digest, path)
    add_shared_traces(digest)
    return digest.hexdigest()


def forget_old(folder):
    for kept in folder.iterdir():
        if kept.stat().st_mtime < time.time() - KEPT_DAYS * 86400:
            shutil.rmtree(kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["known", "keep"])
    parser.add_argument("--results", type=pathlib.Path, required=True)
    parser.add_argument("--stage", required=True)
    parser.add_argument("--junit", nargs="+", required=True)
    parser.add_argument("--program", type=pathlib.Path, nargs="+", default=[])
    options = parser.parse_args()
    cache = cache_folder() / "stages"
    cache.mkdir(exist_ok=True)
    forget_old(cache)
    key = key_of(options.stage, options.program)
    kept, key_file = cache / key, options.results / f"{options.stage}.key"
    names = [f"{name}.xml" for name in options.junit]
    if options.what == "known":
        key_file.write_text(key)
        if not all((kept / name).is_file() for name in names):
            return 1
        for name in names:
            shutil.copy(kept / name, options.results / name)
        print(f"known: it passed here at {time.strftime('%Y-%m-%d %H:%M', time.localtime(kept.stat().st_mtime))} with the same files")
        return 0
    log = (options.results / f"{options.stage}.log").read_text(errors="replace")
    if kept.exists() or key_file.read_text() != key or any(line.startswith("RERUN ") for line in log.splitlines()):
        return 0
    unfinished = cache / f"{key}.{os.getpid()}"
    unfinished.mkdir()
    for name in names:
        shutil.copy(options.results / name, unfinished / name)
    unfinished.rename(kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
