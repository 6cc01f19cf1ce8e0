"""Check what a program's command line may hold, by its syntax."""

import pytest

from vaswani_jax.cli.syntax import PROCESS_FLAGS, Syntax


def test_the_usage_has_the_arguments_in_order_and_settings_last() -> None:
    syntax = Syntax(arguments=("task", "config"), takes_config=True)
    assert syntax.usage("vaswani bench") == (
        "usage: vaswani bench TASK CONFIG [--FLAG=VALUE ...] [--config.KEY=VALUE ...]"
    )
    syntax = Syntax(arguments=("workdir",), repeats=True)
    assert syntax.usage("x") == "usage: x WORKDIR ... [--FLAG=VALUE ...]"
    assert Syntax().usage("x") == "usage: x [--FLAG=VALUE ...]"


@pytest.mark.parametrize("takes_config", [False, True])
@pytest.mark.parametrize("multi_process", [False, True])
def test_flags_of_other_programs_are_not_taken(
    takes_config: bool, multi_process: bool
) -> None:
    syntax = Syntax(takes_config=takes_config, multi_process=multi_process)
    assert syntax.takes("quiet")
    assert syntax.takes("print_config") == takes_config
    assert {syntax.takes(flag) for flag in PROCESS_FLAGS} == {multi_process}
