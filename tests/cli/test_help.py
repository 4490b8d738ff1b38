"""`leapts`, its help and its version."""

import pytest

from leapts import __version__
from tests.cli.conftest import Leapts

COMMANDS = [
    [],
    ["demo"],
    ["fit"],
    ["predict"],
    ["backtest"],
    ["evaluate"],
    ["detect"],
    ["tune"],
    ["export"],
    ["report"],
    ["analyse"],
    ["serve"],
    ["datasets"],
    ["datasets", "list"],
    ["datasets", "fetch"],
    ["datasets", "make"],
    ["version"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_shows_an_example(leapts: Leapts, command: list[str], flag: str) -> None:
    result = leapts(*command, flag)
    assert result.code == 0
    assert f"leapts {' '.join(command)}".strip() in result.out.split("Options:")[1]


@pytest.mark.parametrize("group", [[], ["datasets"]], ids=" ".join)
def test_group_without_command_shows_its_help(leapts: Leapts, group: list[str]) -> None:
    assert leapts(*group) == leapts(*group, "--help")


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_version_is_that_of_the_package(leapts: Leapts, arguments: list[str]) -> None:
    assert leapts(*arguments).out == f"leapts {__version__}\n"
