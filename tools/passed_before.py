#!/usr/bin/env python3
"""Runs a stage of ./check, unless it passed here before with the same files: then its results of that time count again.

usage: passed_before.py --results FOLDER --stage NAME --junit NAME... [--program FILE...] -- COMMAND...

The same files: every file of the repository that git does not ignore, each --program, the Python environment with all that is
installed in it, the Debian packages, the traces outside of the repository (by size and time), and COMMAND. COMMAND writes
FOLDER/NAME.xml for each --junit, and its output goes to FOLDER/STAGE.log. The results are kept in the user's cache folder when it
ends with 0 and the log names no test that was run twice. CI runs everything (check). Deleting ~/.cache/lanescope-check forgets it.
"""
import argparse
import glob
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
KEPT_DAYS = 30


def add_file(digest, path):
    digest.update(os.fsencode(path) + b"\0" + (hashlib.sha256(path.read_bytes()).digest() if path.is_file() else b"none"))


def key_of(command, programs):
    digest = hashlib.sha256(repr((command, sys.version, os.uname().release, sorted(glob.glob("/dev/nvidia*")))).encode())
    digest.update(repr(sorted(item for item in os.environ.items() if item[0].startswith("LANESCOPE_"))).encode())
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    for name in sorted(listed.stdout.split(b"\0")):
        add_file(digest, ROOT / os.fsdecode(name))
    installed = pathlib.Path(sysconfig.get_path("purelib"))
    digest.update(repr(sorted(path.name for path in installed.glob("*-info"))).encode())
    ours = [path for path in sorted(installed.glob("lanescope/**/*")) if path.is_file() and path.suffix != ".pyc"]
    for path in [*ours, pathlib.Path("/var/lib/dpkg/status"), *programs]:
        add_file(digest, path)
    shared = pathlib.Path(os.environ.get("LANESCOPE_SHARED_TRACES") or ROOT.parent / "shared" / "traces")
    for path in sorted(shared.rglob("*")):
        digest.update(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}".encode())
    return digest.hexdigest()


def forget_old(folder):
    for kept in folder.iterdir():
        if kept.stat().st_mtime < time.time() - KEPT_DAYS * 86400:
            shutil.rmtree(kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=pathlib.Path, required=True)
    parser.add_argument("--stage", required=True)
    parser.add_argument("--junit", nargs="+", required=True)
    parser.add_argument("--program", type=pathlib.Path, nargs="+", default=[])
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "lanescope-check" / "stages"
    cache.mkdir(parents=True, exist_ok=True)
    forget_old(cache)
    key = key_of(options.command, options.program)
    kept = cache / key
    names = [f"{name}.xml" for name in options.junit]
    if all((kept / name).is_file() for name in names):
        for name in names:
            shutil.copy(kept / name, options.results / name)
        print(f"known: it passed here at {time.strftime('%Y-%m-%d %H:%M', time.localtime(kept.stat().st_mtime))} with the same files")
        return 0
    code = subprocess.run(options.command, check=False).returncode
    log = options.results / f"{options.stage}.log"
    was_unsteady = any(line.startswith("RERUN ") for line in log.read_text(errors="replace").splitlines())
    if code != 0 or was_unsteady or key_of(options.command, options.program) != key:
        return code if code >= 0 else 128 - code
    unfinished = cache / f"{key}.{os.getpid()}"
    unfinished.mkdir()
    for name in names:
        shutil.copy(options.results / name, unfinished / name)
    if not kept.exists():
        unfinished.rename(kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
