"""The names of operators, which the observer knows by the address of the name in the operator's schema."""

from __future__ import annotations

import lanescope
from lanescope import profile

CPU = [lanescope.ProfilerActivity.CPU]


def names_of(prof):
    return [event.name for event in prof.events() if event.name.startswith("lanescope_names::")]


def test_an_operator_that_was_taken_away_lends_its_name_to_none(torch):
    """The next operator's name may come to the address of the one before."""
    x, made = torch.ones(2), []
    with profile(activities=CPU) as prof:
        for number in range(50):
            library = torch.library.Library("lanescope_names", "FRAGMENT")
            name = f"operator_{number:03}"
            library.define(f"{name}(Tensor x) -> Tensor")
            library.impl(name, lambda tensor: tensor.clone(), "CompositeExplicitAutograd")
            for _ in range(2):
                getattr(torch.ops.lanescope_names, name)(x)
                made.append(f"lanescope_names::{name}")
            delattr(torch.ops.lanescope_names, name)
            library._destroy()
    assert names_of(prof) == made


def test_more_operators_than_a_thread_keeps_have_their_names(torch):
    x, made = torch.ones(2), []
    library = torch.library.Library("lanescope_names", "FRAGMENT")
    try:
        names = [f"many_{number}" for number in range(700)]
        for name in names:
            library.define(f"{name}(Tensor x) -> Tensor")
            library.impl(name, lambda tensor: tensor, "CompositeExplicitAutograd")
        operators = [getattr(torch.ops.lanescope_names, name) for name in names]
        with profile(activities=CPU) as prof:
            for _ in range(2):
                for name, operator in zip(names, operators):
                    operator(x)
                    made.append(f"lanescope_names::{name}")
    finally:
        library._destroy()
    assert names_of(prof) == made
