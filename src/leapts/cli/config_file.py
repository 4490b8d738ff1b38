"""Defaults for options from a TOML file, and old names of flags."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from leapts.cli.terminal import note
from leapts.errors import ConfigError
from leapts.messages import nearest, quoted

_TABLES = "leapts.tables"  # key of the tables of --config in a command's context
# Flags of release 0.1.0 and what stands for them; they go with release 0.3.
OLD_FLAGS = {
    "--output": ["--out"],
    "--season": ["--season-length"],
    "--most-series": ["--max-series"],
    "--safe-cells": ["--escape-formulas"],
    "--statistical": ["--baselines", "stats"],
    "--neural": ["--baselines", "neural"],
    "--no-statistical": ["--baselines", "naive"],
    "--no-neural": ["--baselines", "naive"],
}


def note_renamed(old: str, new: str) -> None:
    """Print that an option has a new name."""
    note(f"note: {old} is now {new}; the old name goes with release 0.3")


def read_config(context: typer.Context, path: Path) -> None:
    """Make the values of a file the defaults of a command, before its other options are parsed.

    One file may serve several commands: options of another command are skipped.
    """
    values = _with_current_names(_parsed(path))
    tables = {name: values.pop(name, {}) for name in ("model", "training")}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: {name} must be a table: write [{name}] on a line of its own")
    own, others = _options_of(context.command), _options_of_siblings(context)
    defaults: dict[str, Any] = {}
    for key, value in values.items():
        option = key.replace("-", "_")
        if option in own:
            defaults[option] = _checked(path, key, value, own[option])
        elif option not in others:
            known = [name.replace("_", "-") for name in own]
            near = nearest(key, known)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}, [model] and [training]"
            raise ConfigError(f"{path}: there is no option {quoted(key)}; {hint}")
    context.default_map = {**(context.default_map or {}), **defaults}
    context.meta[_TABLES] = tables


def config_tables(context: typer.Context) -> Mapping[str, Mapping[str, Any]]:
    """Tables [model] and [training] of --config."""
    tables: Mapping[str, Mapping[str, Any]] = context.meta.get(_TABLES, {})
    return tables


def _with_current_names(values: dict[str, Any]) -> dict[str, Any]:
    current: dict[str, Any] = {}
    for key, value in values.items():
        old = key.replace("_", "-")
        new = OLD_FLAGS.get(f"--{old}" if value is not False else f"--no-{old}", OLD_FLAGS.get(f"--{old}"))
        if new is None:
            current[key] = value
            continue
        name = new[0].removeprefix("--")
        note_renamed(key, name)
        current[name] = [*current.get(name, []), new[1]] if len(new) > 1 else value
    return current


def _checked(path: Path, key: str, value: Any, option: Any) -> Any:
    multiple = bool(getattr(option, "multiple", False))
    if isinstance(value, dict) or isinstance(value, list) != multiple:
        raise ConfigError(f"{path}: {key} must be {'a list' if multiple else 'a single value'}, not {quoted(value)}")
    if isinstance(value, bool) and not getattr(option, "is_flag", False):
        raise ConfigError(f"{path}: {key} must have a value, not {str(value).lower()}")
    return value


def _options_of(command: Any) -> dict[str, Any]:
    """Options of a command by name, without those that make no sense in a file."""
    return {
        str(parameter.name): parameter
        for parameter in command.params
        if parameter.param_type_name == "option" and parameter.name not in ("config", "help", "debug", "version")
    }


def _options_of_siblings(context: typer.Context) -> set[str]:
    commands = getattr(context.parent.command, "commands", {}) if context.parent is not None else {}
    return {name for command in commands.values() for name in _options_of(command)}


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}); give a TOML file to --config") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
