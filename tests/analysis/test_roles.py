"""Roles follow their thresholds, and need more than chance."""

import pytest

from vaswani_jax.analysis import measures, roles


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ({"previous": (0.9, 0.1)}, "encoder", ("positional: previous",)),
        ({"previous": (0.89, 0.1)}, "encoder", ("mostly previous",)),
        ({"previous": (0.49, 0.1)}, "encoder", ()),
        # In a text of two words each chance is half.
        ({"previous": (0.55, 0.5)}, "encoder", ()),
        ({"mark": (0.6, 0.1)}, "encoder", ("end mark",)),
        ({"mark": (0.6, 0.1)}, "decoder", ("begin mark",)),
        ({"rarest": (0.55, 0.4)}, "encoder", ()),
        ({"rarest": (0.61, 0.4)}, "encoder", ("rare words",)),
        ({"same word": (0.49, 0.1)}, "decoder", ()),
        ({"same word": (0.51, 0.1)}, "decoder", ("same word",)),
        ({"similar words": (0.05, -0.1)}, "memory", ("similar words",)),
        # Cosines may be negative; chance is one of them.
        ({"similar words": (-0.05, -0.2)}, "memory", ("similar words",)),
        ({"similar words": (-0.15, -0.2)}, "memory", ()),
        ({"constituent": (0.75, 0.7)}, "encoder", ()),
        ({"constituent": (0.81, 0.7)}, "encoder", ("syntax",)),
        ({"alignment": (0.7, 0.55)}, "memory", ()),
        ({"alignment": (0.8, 0.55)}, "memory", ("alignment",)),
        ({"entropy": (0.95, None)}, "encoder", ("broad",)),
        ({"entropy": (0.15, None)}, "encoder", ("sharp",)),
        ({"entropy": (0.5, None), "confidence": (0.9, None)}, "encoder", ()),
        (
            {"mark": (0.6, 0.1), "next": (0.95, 0.1), "entropy": (0.1, None)},
            "encoder",
            ("positional: next", "end mark"),
        ),
        ({"previous": (None, None)}, "encoder", ()),
    ],
)
def test_a_role_needs_its_threshold_and_its_margin(values, kind, expected):
    assert roles.roles(values, kind=kind) == expected


def test_every_rule_is_for_a_measure():
    assert {rule.measure for rule in roles.RULES} <= set(measures.DESCRIPTIONS)
