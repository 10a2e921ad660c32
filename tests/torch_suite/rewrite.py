"""Turns a test of torch.profiler into a test of lanescope, by its names only.

Problem: the test's own lines must stay as they are, or passing would prove nothing. Idea: find the names of
torch.profiler with `ast`, and replace only these pieces of text. The number of lines stays the same, so that tests
which look at line numbers still work.

    from torch.profiler import profile, kineto_available    from lanescope import profile; from torch.profiler import
                                                            kineto_available
    torch.profiler.schedule(wait=1)                         lanescope.schedule(wait=1)
    torch.autograd.profiler.record_function("x")            lanescope.record_function("x")
    torch.autograd.profiler.profile(use_cuda=True)          lanescope_autograd.profile(use_cuda=True)

Programs in strings are treated in the same way.
"""

from __future__ import annotations

import ast
from typing import Dict, List, Optional, Set, Tuple, Union

AUTOGRAD = "lanescope_autograd"  # lanescope.profile with the arguments of torch.autograd.profiler.profile
AUTOGRAD_NAMES = {"profile": AUTOGRAD, "record_function": "lanescope"}

Table = Dict[str, Dict[str, str]]  # a module of torch: a name in it: the module that has it instead


def substitutes(public_names: Set[str]) -> Table:
    """What is replaced; `public_names` are the names of torch.profiler that lanescope has."""
    return {
        "torch.profiler": {name: "lanescope" for name in public_names},
        "torch.autograd.profiler": AUTOGRAD_NAMES,
    }


def _dotted(node: ast.AST) -> Optional[str]:
    parts: List[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id] + parts[::-1])


class _Finder(ast.NodeVisitor):
    """Collects (begin, end, new text) of a source; positions are offsets into its UTF-8 bytes."""

    def __init__(self, source: bytes, table: Table) -> None:
        self.table = table
        self.source = source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.edits: List[Tuple[int, int, str]] = []
        self.used: Set[str] = set()

    def span(self, node: Union[ast.expr, ast.stmt]) -> Tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        names = self.table.get(node.module or "", {})
        if not any(alias.name in names for alias in node.names):
            return
        by_module: Dict[str, List[str]] = {}
        for alias in node.names:
            text = alias.name if alias.asname is None else f"{alias.name} as {alias.asname}"
            by_module.setdefault(names.get(alias.name, str(node.module)), []).append(text)
        begin, end = self.span(node)
        lost_lines = self.source[begin:end].count(b"\n")
        text = "; ".join(f"from {module} import {', '.join(found)}" for module, found in by_module.items())
        self.edits.append((begin, end, text + "\n" * lost_lines))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        dotted = _dotted(node)
        module, _, name = (dotted or "").rpartition(".")
        instead = self.table.get(module, {}).get(name)
        if instead is None:
            self.generic_visit(node)
            return
        self.used.add(instead)
        self.edits.append((*self.span(node), f"{instead}.{name}"))

    def visit_Constant(self, node: ast.Constant) -> None:
        if not isinstance(node.value, str) or "torch.profiler" not in node.value or "import torch" not in node.value:
            return
        begin, end = self.span(node)
        before = self.source[begin:end].decode()
        if node.value in before:  # no escapes: what is in the file is what the program gets
            self.edits.append((begin, end, before.replace(node.value, _rewrite(node.value, self.table))))


def _rewrite(source: str, table: Table) -> str:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source  # a text that is no program
    data = source.encode()
    finder = _Finder(data, table)
    finder.visit(tree)
    if finder.used:
        for node in tree.body:
            if isinstance(node, ast.Import) and any(alias.name == "torch" for alias in node.names):
                end = finder.span(node)[1]
                finder.edits.append((end, end, "; import " + ", ".join(sorted(finder.used))))
                break
    for begin, end, text in sorted(finder.edits, reverse=True):
        data = data[:begin] + text.encode() + data[end:]
    return data.decode()


def rewrite(source: str, public_names: Set[str]) -> str:
    """The same test with lanescope's names where lanescope has them."""
    return _rewrite(source, substitutes(public_names))
