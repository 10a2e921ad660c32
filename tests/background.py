"""What recorded programs leave running: on a full machine the results are not ready after 10 seconds, the program ends, and a
line says which process writes them."""

import pathlib
import re
import time


def wait_for_results(said: str, seconds: float = 120) -> None:
    """Until the processes that ``said`` names have ended, or the time is up."""
    until = time.monotonic() + seconds
    for process in re.findall(r"is being written by process (\d+)", said):
        while time.monotonic() < until and is_running(process):
            time.sleep(0.05)


def is_running(process: str) -> bool:
    try:
        return " Z " not in pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
