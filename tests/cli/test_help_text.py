"""Help texts say what flags and settings there are, and what values they take."""

import pytest
from absl import flags
from ml_collections import config_flags

from configs import demo
from tests import settings
from vaswani_jax.cli import help_text
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import config


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> flags.FlagValues:
    """The flags of a program: three of its own, and one of a library."""
    values = flags.FlagValues()
    common = {"flag_values": values, "module_name": "vaswani_jax.some_program"}
    flags.DEFINE_integer("steps", 3, "How many steps.", lower_bound=1, **common)
    flags.DEFINE_enum("kind", "a", ["a", "b"], "Which kind.", **common)
    flags.DEFINE_bool("fast", False, "Whether to hurry.", **common)
    flags.DEFINE_string("name", None, "Its name.", **common)
    flags.DEFINE_string("coordinator", None, "Of several processes.", **common)
    flags.DEFINE_string("alien", "", "Unseen.", flag_values=values, module_name="jax")
    monkeypatch.setattr(flags, "FLAGS", values)
    return values


def test_the_flags_of_the_program_are_listed_in_order(
    values: flags.FlagValues,
) -> None:
    text = help_text.program("prog", Syntax(), description="Do it.\n")
    assert text == (
        "usage: prog [--FLAG=VALUE ...]\n"
        "\n"
        "Do it.\n"
        "\n"
        "flags:\n"
        "  --[no]fast\n      Whether to hurry.\n"
        "  --kind\n      <a|b>: Which kind. [a]\n"
        "  --name\n      Its name.\n"
        "  --steps\n      How many steps. (a positive integer) [3]"
    )


def test_settings_are_listed_with_the_values_of_the_configuration(
    values: flags.FlagValues,
) -> None:
    syntax = Syntax(arguments=("config",), takes_config=True)
    without = help_text.program("prog", syntax, description="")
    assert without.endswith("`prog PRESET --help` lists the settings of a preset, too.")
    for arguments, command in (
        (("workdir",), "prog --config=PRESET --help"),
        (("task", "config"), "prog TASK PRESET --help"),
    ):
        other = Syntax(arguments=arguments, takes_config=True)
        assert f"`{command}` lists" in help_text.program("prog", other, description="")
    preset = demo.get_config()
    preset.model.num_layers = 17
    config_flags.DEFINE_config_dict("config", preset, "", flag_values=values)
    text = help_text.program("prog", syntax, description="")
    lines = text.splitlines()
    for key in config.SETTINGS:
        assert sum(line.startswith(f"  {key}=") for line in lines) == 1
    assert "  model.num_layers=17" in lines
    assert "  model.attention_bias=false" in lines
    assert "  --config" in lines and not any("--config.model" in line for line in lines)
    assert max(map(len, lines)) <= help_text.WIDTH
    importing = Syntax(takes_config=True, default_config="own_text")
    text = help_text.program("prog", importing, description="")
    assert "model.num_layers=" not in text and "  search.beam_size=" in text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("steps", "a positive integer"),
        ("kind", "one of a, b"),
        ("fast", "true or false"),
        ("name", ""),
    ],
)
def test_a_rule_says_which_values_a_flag_takes(
    values: flags.FlagValues, name: str, expected: str
) -> None:
    assert help_text.rule(values[name]) == expected


def test_settings_as_flags_name_no_text_that_corpora_replace() -> None:
    names = {"data.train_source": "train.en", "data.train_target": "train.de"}
    mixed = settings.small_settings(**settings.TAGGED, **names)
    lines = help_text.settings_as_flags(mixed).splitlines()
    assert {f"--config.{name}=" for name in names} <= set(lines)


def test_settings_as_flags_are_a_line_each_with_booleans_in_lower_case() -> None:
    changes = {"seed": 7, "model.d_k": 5, "model.attention_bias": True}
    small = settings.small_settings(**changes, **{"optimizer.epsilon": 1e-9})
    lines = help_text.settings_as_flags(small).splitlines()
    assert [line.partition("=")[0] for line in lines].count("--config.seed") == 1
    assert len(lines) == len(config.SETTINGS)
    assert {
        "--config.seed=7",
        "--config.model.d_k=5",
        "--config.model.attention_bias=true",
        "--config.model.logits_bias=false",
        "--config.optimizer.epsilon=1e-09",
        "--config.data.source=copy",
    } <= set(lines)
