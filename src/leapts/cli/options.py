"""Options that several commands share; names, types, limits and help come from `leapts.config`."""

import inspect
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer

from leapts.cli.config_file import config_tables, read_config
from leapts.config import FitConfig, ReadOptions, RootOptions, TrainingConfig
from leapts.errors import ConfigError
from leapts.messages import quoted

if TYPE_CHECKING:
    from leapts import LeapTS

Engine = Literal["local", "ray"]
NewModel = Callable[[], "LeapTS"]

_CHOSEN = "chosen from the data"
_READ = ("freq", "id_col", "time_col", "target_col", "layout", "fill", "duplicates")
# Flags of a fit, and the option that describes each.
_FIT: tuple[tuple[str, type[RootOptions], str], ...] = (
    ("horizon", FitConfig, "h"),
    ("input_size", FitConfig, "input_size"),
    ("max_steps", TrainingConfig, "max_steps"),
    ("learning_rate", TrainingConfig, "learning_rate"),
    ("seed", TrainingConfig, "random_seed"),
    ("val_size", FitConfig, "val_size"),
)
# Flags by the names that options have in Python, for error messages.
_FLAGS = {
    **{name: f"--{name.replace('_', '-')}" for name in (*_READ, "level", "step_size", "max_series")},
    **{option: f"--{flag.replace('_', '-')}" for flag, _, option in _FIT},
    "checkpoint_dir": "--checkpoint",
    "n_windows": "--windows",
    "season": "--season-length",
}
_TEXT = r"'[^']*'|\"[^\"]*\""
_OPTION = re.compile(
    # An option with a value, or with several to choose from; else quoted text, which may come from data and stays.
    rf"(?<![\w.'\"-])(?P<name>{'|'.join(_FLAGS)})=(?P<value>(?:{_TEXT})(?:, '\w+')*|\[[^\]]*\]|[\w.+-]*\w)?"
    rf"|(?<!\w)(?:{_TEXT})(?!\w)"
)


def flag_type(group: type[RootOptions], option: str, note: str = "") -> Any:
    """Type of a flag with the description and the lower limit of an option; text where several types are possible."""
    field = group.model_fields[option]
    kinds = [one for one in get_args(field.annotation) if one is not type(None)]
    kind: Any = field.annotation
    if len(kinds) == 1 and get_origin(kinds[0]) is Annotated:  # such as Annotated[int, Field(ge=1)] | None
        kind, *inner = get_args(kinds[0])
        limits = [limit for one in inner for limit in one.metadata]
    else:
        limits = field.metadata
        is_literal = bool(kinds) and all(isinstance(one, str) for one in kinds)
        kind = kind if isinstance(kind, type) or is_literal else str
    text = field.description or option.replace("_", " ")
    limit = next((one.ge for one in limits if hasattr(one, "ge")), None)
    return Annotated[kind | None, typer.Option(min=limit, help=f"{text[0].upper()}{text[1:]}.{note}")]


def _flag(name: str, group: type[RootOptions], option: str) -> inspect.Parameter:
    """Parameter of a command for one option of a group; one without a default is chosen from the data."""
    field = group.model_fields[option]
    if name == "horizon":
        return _parameter(name, flag_type(group, option), inspect.Parameter.empty)
    if group is ReadOptions or name == "seed":
        return _parameter(name, flag_type(group, option), field.default)
    chosen = field.default if name == "learning_rate" else _CHOSEN
    return _parameter(name, flag_type(group, option, f" [{chosen}]"), None)


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder written by leapts fit.")]
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="CSV or Parquet file, - for standard input, or a data set: see leapts datasets list."
    ),
]
MaxSteps = flag_type(TrainingConfig, "max_steps", f" [{_CHOSEN}]")
Threads = Annotated[
    int, typer.Option(min=1, max=256, help="Number of threads; more than one helps only with many series.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
EscapeFormulas = Annotated[
    bool, typer.Option("--escape-formulas", help="In CSV, put an apostrophe before text that looks like a formula.")
]
Address = Annotated[
    str | None, typer.Option(help="Address of the Ray cluster, such as auto or ray://host:10001. [start a local one]")
]
Levels = Annotated[
    list[str] | None,
    typer.Option("--level", help="Prediction interval in percent, such as 80; several as 80,95 or by repeating it."),
]


def _config(tables: str = "") -> Any:
    """Option --config, which sets the defaults of all others and is thus read first."""

    def read(context: typer.Context, path: Path | None) -> Path | None:
        if path is not None and not context.resilient_parsing:
            read_config(context, path)
        return path

    text = f"TOML file with defaults for these options{tables}."
    return Annotated[Path | None, typer.Option(is_eager=True, callback=read, help=text)]


_CONFIG, _FIT_CONFIG = _config(), _config(", and tables [model] and [training]")
_DEBUG = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --debug and --config to a command, and the options that `read` and `new_model` stand for.

    A command with a parameter `read` has a flag for every option of reading, and gets the validated `ReadOptions`. One
    with `new_model` has the flags of a fit too, and gets a function that makes the forecaster.
    """
    asked = inspect.signature(command).parameters
    groups = {
        "read": [_flag(name, ReadOptions, name) for name in _READ],
        "new_model": [_flag(*one) for one in _FIT],
    }
    shown = [_parameter("context", typer.Context, inspect.Parameter.empty)]
    for name, parameter in asked.items():
        shown += groups.get(name) or [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
    if asked.keys() & {"model", "new_model"}:
        shown.append(_parameter("config", _FIT_CONFIG if "new_model" in asked else _CONFIG, None))
    shown.append(_parameter("debug", _DEBUG, False))

    @wraps(command)
    def run(context: typer.Context, **values: Any) -> None:
        # --config is read before all others, --debug where errors are caught.
        del values["debug"]
        values.pop("config", None)
        read = ReadOptions(**{name: values.pop(name) for name in _READ}) if "read" in asked else None
        if read is not None:
            values["read"] = read
        if read is not None and "new_model" in asked:
            given = {option: values.pop(flag) for flag, _, option in _FIT}
            given |= {name: getattr(read, name) for name in _READ}
            values["new_model"] = lambda: _forecaster(given, config_tables(context))
        command(**values)

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def _forecaster(given: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> "LeapTS":
    from leapts import LeapTS

    return LeapTS(**given, model=tables.get("model") or None, training=tables.get("training") or None)


def changed_flags(read: ReadOptions) -> list[str]:
    """Flags of reading that were given a value other than the default."""
    return [_FLAGS[name] for name in _READ if getattr(read, name) != ReadOptions.model_fields[name].default]


def as_flags(message: str) -> str:
    """Write the options that an error message names as flags: `--fill ffill` for `fill='ffill'`."""

    def flag(match: re.Match[str]) -> str:
        if match["name"] is None:
            return match[0]
        value = (match["value"] or "").strip("[]")
        return f"{_FLAGS[match['name']]} {re.sub(_TEXT, lambda text: shlex.quote(text[0][1:-1]), value)}".rstrip()

    return _OPTION.sub(flag, message)


def use_threads(count: int) -> None:
    """Set the number of threads torch uses.

    One is the default: most products are too small to share, and waiting threads slow down other programs.
    """
    import torch

    torch.set_num_threads(count)


def parse_levels(levels: Sequence[str] | None) -> list[int | float]:
    """Parse levels given as `80,95` or one by one; whole numbers stay whole, for the names of columns."""
    texts = [text for level in levels or () for text in level.split(",")]
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        raise ConfigError(f"--level {quoted(','.join(texts))}: must be numbers, such as 80 or 80,95") from None
    return [int(number) if number.is_integer() else number for number in numbers]
