"""Defaults for options from a TOML file, and old names of flags."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from leapts.cli.terminal import note
from leapts.config import ModelConfig, TrainingConfig
from leapts.errors import ConfigError
from leapts.messages import nearest, quoted

TABLES = "leapts.tables"  # key of the tables [model] and [training] in a command's context
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
RENAMED = "note: {} is now {}; the old name goes with release 0.3"


def _current_keys(values: dict[str, Any]) -> dict[str, Any]:
    """Replace keys under their old names by the new ones, with a note for each."""
    current: dict[str, Any] = {}
    for key, value in values.items():
        old = key.replace("_", "-")
        new = OLD_FLAGS.get(f"--{old}" if value is not False else f"--no-{old}", OLD_FLAGS.get(f"--{old}"))
        name = key if new is None else new[0].removeprefix("--")
        if new is not None:
            note(RENAMED.format(key, name))
        current[name] = [*current.get(name, []), new[1]] if new and len(new) > 1 else value
    return current


def read_config(context: typer.Context, path: Path) -> None:
    """Make the values of a file the defaults of a command, before its other options are parsed.

    One file may serve several commands: options of another command are skipped.
    """
    try:
        values = _current_keys(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}); give a TOML file to --config") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    tables = {name: values.pop(name, {}) for name in ("model", "training")}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: {name} must be a table: write [{name}] on a line of its own")
    _require_options(path, tables)
    own = _options_of(context.command)
    siblings = getattr(context.parent.command, "commands", {}) if context.parent is not None else {}
    others = {name for command in siblings.values() for name in _options_of(command)}
    defaults: dict[str, Any] = {}
    for key, value in values.items():
        option = key.replace("-", "_")
        if option in own:
            _require_kind(f"{path}: {key}", value, own[option])
            defaults[option] = value
        elif option not in others:
            known = [name.replace("_", "-") for name in own]
            near = nearest(key, known)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}, [model] and [training]"
            raise ConfigError(f"{path}: there is no option {quoted(key)}; {hint}")
    context.default_map = {**(context.default_map or {}), **defaults}
    context.meta[TABLES] = tables


def _require_options(path: Path, tables: Mapping[str, dict[str, Any]]) -> None:
    """Refuse unknown options of both tables, and impossible values of training; those of a model need the data."""
    for key in tables["model"].keys() - {*ModelConfig.model_fields, *ModelConfig.renamed}:
        near = nearest(key, ModelConfig.model_fields)
        raise ConfigError(f"{path}: [model] has no option {quoted(key)}{f'; did you mean {near}?' if near else ''}")
    try:
        TrainingConfig(**tables["training"])
    except ConfigError as error:
        raise ConfigError(f"{path}: [training] {error}") from None


def _options_of(command: Any) -> dict[str, Any]:
    """Options of a command by name, without those that make no sense in a file."""
    options = {one.name: one for one in command.params if one.param_type_name == "option"}
    return {name: one for name, one in options.items() if name not in ("config", "help", "debug", "version")}


def _require_kind(place: str, value: Any, option: Any) -> None:
    """Refuse a list for a single value, a single value for a list, and true or false for an option with a value."""
    multiple = bool(getattr(option, "multiple", False))
    if isinstance(value, dict) or isinstance(value, list) != multiple:
        raise ConfigError(f"{place} must be {'a list' if multiple else 'a single value'}, not {quoted(value)}")
    if isinstance(value, bool) and not getattr(option, "is_flag", False):
        raise ConfigError(f"{place} must have a value, not {str(value).lower()}")
