#!/usr/bin/env python3
"""Fails when a rule of explain lacks its declaration, its page or its test, or names a rule that does not exist; and when a function of
rules/ has the name and the parameters of one of explain/ itself: which one a rule calls would depend on its batch; and when a sentence
that needs facts to choose its words is made without them; and when a row of the table of costly operators is damaged (operator_rows.py).

A rule is a file src/lanescope/explain/rules/<id>.cpp without a header of its name; its test is <id>_test.cpp next to it.
CMakeLists.txt there finds them in the same way.
"""
import pathlib
import re
import sys

import operator_rows

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXPLAIN = ROOT / "src" / "lanescope" / "explain"
PAGES = ROOT / "docs" / "rules"


def declaration_problems(source, rule):
    text = source.read_text(encoding="utf-8")
    declared = re.findall(r"^extern constinit const Rule (\w+) = \{(.*?)^\};", text, re.MULTILINE | re.DOTALL)
    if [name for name, _ in declared] != [f"{source.stem}_rule"]:
        return [f"expected one declaration, `extern constinit const Rule {source.stem}_rule`, found {len(declared)}"]
    found = re.search(r'\.id = "([^"]*)"', declared[0][1])
    return [] if found and found.group(1) == rule else [f'expected .id = "{rule}"']


def functions(paths):
    """The functions at the beginning of a line, as (name, types of the parameters), and where they are."""
    found = {}
    for path in paths:
        without = re.sub(r"^namespace rules \{.*?^\}", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for name, given in re.findall(r"^(?!return|else|using|#|\s)[\w:<>,*& ]+?[ *&](\w+)\(([^(){}]*)\)(?: const)?(?:;| \{)",
                                      without, re.MULTILINE):
            types = tuple(re.sub(r"\s*\b\w+$", "", part.strip()) for part in given.split(","))
            found.setdefault((name, types), path.relative_to(ROOT))
    return found


def hidden_functions():
    outer = functions(EXPLAIN.glob("*.h"))
    inner = functions(path for path in sorted((EXPLAIN / "rules").glob("*.*")) if not path.stem.endswith("_test"))
    return [f"{inner[function]}: {function[0]}() has the name and parameters of that in {outer[function]}"
            for function in inner if function in outer]


def words_in_brackets():
    """say() without facts prints "[call|calls]" as it is written; only say(facts, ...) chooses."""
    found = []
    for path in sorted(EXPLAIN.rglob("*.cpp")):
        if path.stem.endswith("_test"):
            continue
        text = path.read_text(encoding="utf-8")
        for call in re.finditer(r'\bsay\(\s*((?:"(?:[^"\\\\]|\\\\.)*"\s*)+)', text):
            if re.search(r"\[(?:[^\]]*\|[^\]]*|per step|in \{\} steps)\]", re.sub(r'"\s*"', "", call[1])):
                line = text.count("\n", 0, call.start()) + 1
                found.append(f"{path.relative_to(ROOT)}:{line}: expected say(facts, ...) for words in brackets")
    return found


def table_problems(rules):
    table = EXPLAIN / "rules" / "operators.rows"
    declarations = "\n".join(path.read_text(encoding="utf-8") for path in sorted((EXPLAIN / "rules").glob("*.h")))
    found = operator_rows.operator_problems(table.read_text(encoding="utf-8"), declarations, rules)
    return [f"{table.relative_to(ROOT)}:{problem}" for problem in found]


def main():
    rules = {path.stem.replace("_", "-"): path for path in sorted((EXPLAIN / "rules").glob("*.cpp"))
             if not path.with_suffix(".h").exists() and not path.stem.endswith("_test")}
    problems = []
    for rule, source in rules.items():
        problems += [f"{source.relative_to(ROOT)}: {what}" for what in declaration_problems(source, rule)]
        if not (PAGES / f"{rule}.md").is_file():
            problems.append(f"{rule}: no page docs/rules/{rule}.md")
        test = source.with_name(f"{source.stem}_test.cpp")
        if not test.is_file() or f'"{rule}"' not in test.read_text(encoding="utf-8"):
            problems.append(f'{rule}: no test in {test.relative_to(ROOT)} names "{rule}"')
        for named in re.findall(r'\bexplains\b[^;]*?\{"([^"]+)"', source.read_text(encoding="utf-8"), re.DOTALL):
            if named not in rules:
                problems.append(f"{source.relative_to(ROOT)}: explains a part of {named}, which is no rule")
    problems += hidden_functions() + words_in_brackets() + table_problems(rules)
    problems += [f"docs/rules/{page.name}: no rule of that name" for page in sorted(PAGES.glob("*.md"))
                 if page.stem not in rules]
    for problem in problems:
        print(problem)
    print(f"check_rules: {len(rules)} rules, {len(problems)} problems")
    return 1 if problems or not rules else 0


if __name__ == "__main__":
    sys.exit(main())
