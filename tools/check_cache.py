"""What the tools of ./check share: the folder that keeps what passed, and digests of the files that tests read."""
import hashlib
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]


def cache_folder():
    """In the user's cache folder, for every clone; made when it is not there. Deleting it forgets what passed."""
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "lanescope-check"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def add_repository_files(digest, *folders):
    """Names and contents of the files that git does not ignore: of these folders, or of the whole repository."""
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard", *folders], cwd=ROOT, capture_output=True, check=True)
    for name in sorted(listed.stdout.split(b"\0")):
        path = ROOT / os.fsdecode(name)
        if path.is_file():
            digest.update(name + hashlib.sha256(path.read_bytes()).digest())


def add_shared_traces(digest):
    """The traces outside of the repository, by size and time."""
    shared = pathlib.Path(os.environ.get("LANESCOPE_SHARED_TRACES") or ROOT.parent / "shared" / "traces")
    for path in sorted(shared.rglob("*")):
        digest.update(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}".encode())
