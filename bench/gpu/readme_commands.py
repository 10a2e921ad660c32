#!/usr/bin/env python3
"""Follows README's section "Record the GPU" to the letter: each command of its block, in a folder that has the two programs it
names, and a look at what each recording holds.

    python3 bench/gpu/readme_commands.py --cuda-program PATH

Exit code: the number of commands that failed or left a trace without GPU work.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
from typing import List

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAIN = """
import torch

x = torch.randn(256, 256, device="cuda")
for _ in range(20):
    torch.add(torch.matmul(x, x), x)
torch.cuda.synchronize()
"""


def commands() -> List[str]:
    section = re.search(r"^## Record the GPU\n(.*?)^## ", (ROOT / "README.md").read_text(encoding="utf-8"), re.S | re.M)
    if section is None:
        raise SystemExit("README has no section 'Record the GPU'")
    lines = [line for block in re.findall(r"^```\n(.*?)^```", section.group(1), re.S | re.M) for line in block.splitlines()]
    return [re.split(r"\s{3,}|\s+#", line)[0] for line in lines if line.startswith("lanescope ")]


def gpu_work(folder: pathlib.Path) -> int:
    """Kernels in the newest trace of a folder."""
    traces = sorted(folder.glob("*.json*"), key=lambda path: path.stat().st_mtime)
    if not traces:
        return 0
    table = subprocess.run(["lanescope", "info", "--json", str(traces[-1])], stdout=subprocess.PIPE, text=True, check=True)
    return sum(int(row["slice_count"]) for row in json.loads(table.stdout)["categories"] if row["category"] == "kernel")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuda-program", required=True, help="examples/02_cuda_program, compiled")
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "train.py").write_text(TRAIN, encoding="utf-8")
        shutil.copy(arguments.cuda_program, folder / "my_cuda_program")
        for command in commands():
            shutil.rmtree(folder / "traces", ignore_errors=True)
            done = subprocess.run(command, shell=True, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  check=False)
            kernels = gpu_work(folder / "traces") if " record " in command else -1
            fine = done.returncode == 0 and kernels != 0
            failed += not fine
            print(f"{'ok    ' if fine else 'FAILED'}  {command}  ({f'{kernels} kernels, ' * (kernels >= 0)}rc {done.returncode})")
            if not fine:
                print("\n".join("    | " + line for line in done.stdout.splitlines()[-15:]))
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
