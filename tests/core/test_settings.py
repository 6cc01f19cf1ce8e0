"""A setting is declared, described and checked."""

import dataclasses
import math

import numpy as np
import pytest

from vaswani_jax.core import settings


def setting(kind, **properties):
    return settings.Setting(key="part.name", type=kind, meaning="", **properties)


@pytest.mark.parametrize(
    ("properties", "text", "valid", "invalid"),
    [
        ({}, "", [-1e9, 0.0], []),
        ({"at_least": 2}, "at least 2", [2.0, 9.0], [1.9]),
        ({"above": 0}, "positive", [0.1], [0.0, -1.0]),
        ({"at_least": 0, "below": 1}, "in [0, 1)", [0.0, 0.9], [1.0, -0.1]),
        ({"above": 0, "at_most": 1}, "in (0, 1]", [0.1, 1.0], [0.0, 1.1]),
        ({"at_least": 1, "at_most": 3}, "in [1, 3]", [1.0, 3.0], [0.9, 3.1]),
    ],
)
def test_a_range_is_described_as_it_is_checked(properties, text, valid, invalid):
    number = setting(float, **properties)
    assert number.range == text
    assert [number.parse(value) for value in valid] == valid
    for value in invalid:
        with pytest.raises(ValueError) as caught:
            number.parse(value)
        assert str(caught.value) == f"config.part.name must be {text}, got {value}"


def test_choices_are_refused_with_all_that_is_allowed():
    word = setting(str, choices=("post", "pre"))
    assert word.range == "one of post, pre"
    assert word.parse("pre") == "pre"
    with pytest.raises(ValueError, match="must be one of post, pre; got 'last'"):
        word.parse("last")


def test_a_choice_with_a_colon_stands_for_all_that_begin_like_it():
    source = setting(str, choices=("text", "tfds:NAME"))
    for value in ("text", "tfds:a/b", "tfds:"):
        assert source.parse(value) == value
    for value in ("text:a", "tfds", "tf"):
        with pytest.raises(ValueError, match=f"of text, tfds:NAME; got '{value}'"):
            source.parse(value)


@pytest.mark.parametrize(
    ("declaration", "text", "value", "message"),
    [
        (
            setting(int, at_least=1, for_source=("a", "b")),
            "at least 1 for a, b",
            0,
            "config.part.name must be at least 1, got 0",
        ),
        (
            setting(str, not_empty=True),
            "not empty",
            "",
            "config.part.name must not be empty: give it a value, such as "
            "--config.part.name=...",
        ),
        (
            setting(str, not_empty=True, example="pt_BR"),
            "not empty",
            "",
            "config.part.name must not be empty: give it a value, such as "
            "--config.part.name=pt_BR",
        ),
    ],
)
def test_a_range_of_some_sources_is_checked_when_the_source_is_known(
    declaration, text, value, message
):
    assert declaration.range == text
    assert declaration.range_depends_on_source
    assert declaration.parse(value) == value
    with pytest.raises(ValueError) as caught:
        declaration.check_range(value)
    assert str(caught.value) == message


def test_a_description_has_the_symbol_and_what_is_needed():
    number = setting(int, symbol="N", needs=("part.flag",))
    assert number.description.endswith(" In the paper: N. Needs part.flag.")
    share = setting(float, needs=("part.a", "part.b"))
    assert share.description.endswith(" Needs one of part.a, part.b.")
    assert setting(int).description == setting(int).meaning


def test_a_range_in_words_is_for_people_alone():
    word = setting(str, values="auto or a number")
    assert word.range == "auto or a number"
    assert word.parse("neither") == "neither"


WRONG_TYPES = {
    "a whole number": (int, ["1", 1.0, True, None]),
    "a number": (float, [True, "0.1"]),
    "a text": (str, [32, ("a", "b")]),
    "true or false": (bool, [1, "yes"]),
}


@pytest.mark.parametrize("words", WRONG_TYPES)
def test_a_wrong_type_is_refused_in_the_words_of_the_command_line(words):
    kind, values = WRONG_TYPES[words]
    for value in values:
        with pytest.raises(ValueError) as caught:
            setting(kind).parse(value)
        assert str(caught.value) == f"config.part.name must be {words}, got {value!r}"


def test_a_whole_number_is_accepted_for_a_real_one():
    number = setting(float).parse(1)
    assert type(number) is float and number == 1.0


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, np.int64(3)),
        (float, np.int32(3)),
        (float, np.float64(0.5)),
        (float, np.float32(0.5)),
    ],
)
def test_numbers_of_numpy_are_numbers(kind, value):
    parsed = setting(kind).parse(value)
    assert type(parsed) is kind and parsed == value
    with pytest.raises(ValueError, match="must be a whole number, got np"):
        setting(int).parse(np.float64(3.0))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", [float, int])
def test_numbers_are_finite(kind, value):
    with pytest.raises(ValueError, match="must be finite, got"):
        setting(kind).parse(value)


def test_settings_are_collected_from_fields_by_dotted_key():
    @dataclasses.dataclass(frozen=True)
    class Part:
        width: int = settings.setting("Width.", at_least=1)

    @dataclasses.dataclass(frozen=True)
    class Outer:
        part: Part
        seed: int = settings.setting("Seed.", legacy=3, changeable=True)

    collected = settings.declared(Outer)
    assert list(collected) == ["part.width", "seed"]
    width, seed = collected.values()
    assert (width.section, width.name, width.type) == ("part", "width", int)
    assert (seed.section, seed.name, seed.legacy) == ("", "seed", 3)
    assert width.at_least == 1 and not width.changeable and seed.changeable
    with pytest.raises(TypeError):
        Outer(part=Part(width=1))  # No setting has a default.


def test_a_property_that_no_setting_has_is_refused():
    @dataclasses.dataclass
    class Part:
        width: int = settings.setting("Width.", atleast=1)

    with pytest.raises(TypeError, match="atleast"):
        settings.declared(Part)
