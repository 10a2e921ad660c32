"""The table of costly operators is checked: a damaged row is named with its line and the reason."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import operator_rows  # noqa: E402

DECLARATIONS = """
bool is_small(const analysis::TensorArguments& inputs);
bool is_rare(const Facts& facts, SliceId op);
std::vector<SliceId> lookup_before(const Facts& facts, SliceId op);
"""

# Lines 1 to 18.
TABLE = """\
text shared
  meaning: does it row by row
  action: Do it once
  source: https://docs.pytorch.org/docs/stable/torch.html

operator aten::a
  text: shared
  least_calls: 8
  more: one call takes all
      rows at once
  fits: is_small
  unless: is_rare

operator aten::b
  text: shared
  more: one call takes all rows
  spares_too: lookup_before
  covers: host-sync
"""


def problems(text):
    return operator_rows.operator_problems(text, DECLARATIONS, {"host-sync"})


def test_a_whole_table_has_no_problems_and_lines_are_joined():
    assert problems(TABLE) == []
    blocks, _ = operator_rows.read_blocks(TABLE)
    assert blocks[1].values["more"] == "one call takes all rows at once"


@pytest.mark.parametrize(("old", "new", "expected"), [
    ("  fits: is_small", "  fits: is_tiny", "11: fits: no function is_tiny() of this kind is declared in a header of rules/"),
    ("  fits: is_small", "  fits: is_rare", "11: fits: no function is_rare() of this kind is declared in a header of rules/"),
    ("  fits: is_small", "  fit: is_small", "11: fit is no key of this block"),
    ("  fits: is_small", " fits: is_small",
     "11: expected `operator NAME`, `text NAME`, `  key: value` or a line that continues a value"),
    ("  unless: is_rare", "  fits: is_small", "12: fits is given twice"),
    ("  least_calls: 8", "  least_calls: many", "8: least_calls is no number of calls, 1 or more"),
    ("  covers: host-sync", "  covers: no-rule", "18: covers no-rule, which is no rule"),
    ("  covers: host-sync", "  is_of_gpu: no", "18: is_of_gpu is `yes` or left out"),
    ("operator aten::b\n  text: shared", "operator aten::b\n  text: other", "15: no text other before this row"),
    ("operator aten::b\n  text: shared", "operator aten::b", "14: aten::b has no meaning"),
    ("operator aten::b", "operator aten::_b", "14: aten::_b comes after aten::a: rows are sorted by operator"),
    ("text shared", "text shared\n  meaning: is old\n\ntext shared", "4: text shared is given twice"),
    ("Do it once", "Do it once.", "3: action ends with a full stop"),
    ("Do it once", "Do " + "it " * 30 + "once", "3: action has 97 characters, at most 80 fit on a line"),
    ("https://docs", "docs", "4: source is no address that begins with https://"),
    ("row by row", "row {} by row", "2: meaning has two blanks in a row, or a brace"),
    ("operator aten::b", "text unused\n  meaning: is old\n\noperator aten::b", "14: no row uses text unused"),
])
def test_a_damaged_row_is_named_with_its_line_and_the_reason(old, new, expected):
    assert TABLE.count(old) == 1
    assert expected in problems(TABLE.replace(old, new))


def test_a_row_that_is_never_used_is_named():
    rows = TABLE.replace("  spares_too: lookup_before\n", "") + "\noperator aten::b\n  text: shared\n  more: never read\n"
    assert problems(rows) == ["19: never used: the row of aten::b before it fits every call"]


def test_the_tables_own_rows_pass():
    run = subprocess.run([sys.executable, ROOT / "tools" / "check_rules.py"], capture_output=True, text=True, check=False)
    assert "operators.rows" not in run.stdout


def test_the_build_names_the_line_of_a_damaged_form(tmp_path):
    damaged = tmp_path / "operators.rows"
    damaged.write_text(TABLE.replace("  fits: is_small", "fits is_small"))
    script = ROOT / "src/lanescope/explain/rules/operator_rows.cmake"
    run = subprocess.run(["cmake", f"-DIN={damaged}", f"-DOUT={tmp_path / 'rows.inc'}", "-P", script],
                         capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert f"{damaged}:11:" in run.stderr.replace("\n", "")
    assert not (tmp_path / "rows.inc").exists()
