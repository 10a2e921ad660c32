"""lanescope.event_name: the fields in Python; C++ tests check the texts."""

from __future__ import annotations

import lanescope


def test_an_operator_that_waits() -> None:
    name = lanescope.event_name("aten::_local_scalar_dense")
    assert name.known and name.kind == "operator" and name.rule == "host-sync"
    assert name.cpu_waits is not None and name.cpu_waits.startswith("yes") and name.what is not None
    assert name.group == "aten::_local_scalar_dense" and name.details == {}
    assert repr(name) == f"<lanescope.EventName {name.text}>"


def test_parameters_of_a_name() -> None:
    frame = lanescope.event_name("train.py(34): forward")
    assert frame.kind == "python frame" and frame.details == {"file": "train.py", "line": "34", "function": "forward"}
    step = lanescope.event_name("ProfilerStep#17")
    assert step.details == {"step": "17"} and step.group == "ProfilerStep#*"


def test_unknown_and_strange_names() -> None:
    name = lanescope.event_name("Request")
    assert not name.known and name.kind == "unknown" and name.text == "Request"
    assert name.what is None and name.cpu_waits is None and name.rule is None
    assert lanescope.event_name("").text == ""
    assert lanescope.event_name("\u00e9" * 1000).text.endswith("...")
    assert not lanescope.event_name("ampere_sgemm_128x64_nn").known
