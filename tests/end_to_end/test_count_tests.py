"""tools/count_tests.py, which ends ./check: what it calls unsteady."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

LOG = """\
 1/4 Test  #1: model.Passes ......   Passed    0.01 sec
 2/4 Test  #2: model.Unsteady ......***Failed    0.01 sec
      Test  #2: model.Unsteady ......   Passed    0.01 sec
 3/4 Test  #3: model.NeedsData ......***Skipped   0.01 sec
 4/4 Test  #4: model.Broken ......***Failed    0.01 sec
"""
JUNIT = """\
<testsuite>
  <testcase name="model.Passes" classname="model.Passes" status="run"/>
  <testcase name="model.Unsteady" classname="model.Unsteady" status="run"/>
  <testcase name="model.NeedsData" classname="model.NeedsData" status="notrun"><skipped message=""/></testcase>
  <testcase name="model.Broken" classname="model.Broken" status="fail"><failure message=""/></testcase>
</testsuite>
"""


def test_unsteady_is_what_failed_and_then_passed(tmp_path):
    (tmp_path / "test-release.log").write_text(LOG)
    (tmp_path / "ctest-release.xml").write_text(JUNIT)
    done = subprocess.run([sys.executable, ROOT / "tools/count_tests.py", tmp_path], capture_output=True, text=True)
    named = [line for line in done.stdout.splitlines() if line.startswith("UNSTEADY")]
    assert named == ["UNSTEADY test-release: model.Unsteady: failed, and passed when it was run again"]
    assert "2 tests passed (ctest-release 2), 1 failed, 1 unsteady, 1 skipped" in done.stdout
    assert done.returncode == 1
