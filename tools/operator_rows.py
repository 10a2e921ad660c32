"""Reads the table of costly operators, src/lanescope/explain/rules/operators.rows, and says what is wrong with it. For check_rules.py.

operator_rows.cmake builds the table into lanescope. docs/rules/costly-operator.md says what each key means.
"""
import re
from dataclasses import dataclass, field

TEXTS = ("meaning", "action", "more", "source")
FLAGS = ("is_kernel_only", "is_of_gpu", "is_of_one_matrix", "has_backward", "takes_all_inputs", "is_of_kept_matrix")
CONDITIONS = {"fits": r"bool (\w+)\(const analysis::TensorArguments& \w+\);", "unless": r"bool (\w+)\(const Facts& \w+, SliceId \w+\);",
              "spares_too": r"std::vector<SliceId> (\w+)\(const Facts& \w+, SliceId \w+\);"}
KEYS = ("text", "kernel", "unless_in", "least_calls", *TEXTS, "covers", "keeps", *FLAGS, *CONDITIONS)
LONGEST_ACTION = 80  # one line of the first screen


@dataclass
class Block:
    kind: str  # "operator" or "text"
    name: str
    line: int
    values: dict = field(default_factory=dict)
    lines: dict = field(default_factory=dict)  # of the keys


def read_blocks(text):
    """The blocks of the file, and problems of its form as (line, reason)."""
    blocks, problems, key = [], [], None
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if found := re.fullmatch(r"(operator|text) (\S+)", line):
            blocks.append(Block(found[1], found[2], number))
            key = None
        elif (found := re.fullmatch(r" {6,}(\S.*)", line)) and key:
            blocks[-1].values[key] += " " + found[1]
        elif (found := re.fullmatch(r"  ([a-z_]+): (.+)", line)) and blocks:
            key = found[1]
            if key not in KEYS or (blocks[-1].kind == "text" and key not in TEXTS):
                problems.append((number, f"{key} is no key of this block"))
            elif key in blocks[-1].values:
                problems.append((number, f"{key} is given twice"))
            blocks[-1].values[key] = found[2]
            blocks[-1].lines[key] = number
        else:
            problems.append((number, "expected `operator NAME`, `text NAME`, `  key: value` or a line that continues a value"))
    return blocks, problems


def problems_of_words(block):
    for key in TEXTS:
        words, line = block.values.get(key, ""), block.lines.get(key, block.line)
        if re.search(r"\s{2}|[{}]", words):
            yield line, f"{key} has two blanks in a row, or a brace"
        if key == "source" and words and not words.startswith("https://"):
            yield line, "source is no address that begins with https://"
        if key == "action" and len(words) > LONGEST_ACTION:
            yield line, f"action has {len(words)} characters, at most {LONGEST_ACTION} fit on a line"
        if key in ("meaning", "action") and words.endswith("."):
            yield line, f"{key} ends with a full stop"


def problems_of_row(block, texts, conditions, rules):
    values, at = block.values, lambda key: block.lines.get(key, block.line)
    text = texts.get(values.get("text", ""), {})
    if "text" in values and not text:
        yield at("text"), f"no text {values['text']} before this row"
    for key in TEXTS:
        if key not in values and key not in text:
            yield block.line, f"{block.name} has no {key}"
    if not re.fullmatch(r"[1-9]\d*", values.get("least_calls", "1")):
        yield at("least_calls"), "least_calls is no number of calls, 1 or more"
    for key in FLAGS:
        if values.get(key, "yes") != "yes":
            yield at(key), f"{key} is `yes` or left out"
    for key in CONDITIONS:
        if key in values and values[key] not in conditions[key]:
            yield at(key), f"{key}: no function {values[key]}() of this kind is declared in a header of rules/"
    if "covers" in values and values["covers"] not in rules:
        yield at("covers"), f"covers {values['covers']}, which is no rule"


def takes_every_call(block):
    return not any(key in block.values for key in ("kernel", "unless_in", "least_calls", *CONDITIONS))


def operator_problems(text, declarations, rules):
    """What is wrong, as "LINE: reason", sorted by line. `declarations`: the text of the headers of rules/. `rules`: ids."""
    blocks, problems = read_blocks(text)
    conditions = {key: set(re.findall(pattern, declarations)) for key, pattern in CONDITIONS.items()}
    texts, used, before = {}, set(), None
    for block in blocks:
        problems += problems_of_words(block)
        if block.kind == "text":
            if block.name in texts:
                problems.append((block.line, f"text {block.name} is given twice"))
            texts[block.name] = block.values
            continue
        used.add(block.values.get("text"))
        problems += problems_of_row(block, texts, conditions, rules)
        if before and before.name > block.name:
            problems.append((block.line, f"{block.name} comes after {before.name}: rows are sorted by operator"))
        elif before and before.name == block.name and takes_every_call(before):
            problems.append((block.line, f"never used: the row of {block.name} before it fits every call"))
        before = block
    problems += [(block.line, f"no row uses text {block.name}") for block in blocks if block.kind == "text" and block.name not in used]
    if not any(block.kind == "operator" for block in blocks):
        problems.append((1, "no rows"))
    return [f"{line}: {reason}" for line, reason in sorted(problems)]
