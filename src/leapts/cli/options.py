"""Options that several commands share, and the models, data and files that they name.

Names, types, limits and help of flags come from `leapts.config`.
"""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer

from leapts.cli.config_file import TABLES, read_config
from leapts.cli.terminal import note
from leapts.config import FitConfig, ReadOptions, RootOptions, TrainingConfig
from leapts.datasets.catalogue import Dataset, catalogue, find
from leapts.errors import ConfigError, DataError
from leapts.messages import listed, nearest, quoted
from leapts.training import launcher

if TYPE_CHECKING:
    from leapts.data.panel import Panel
    from leapts.forecasting.estimator import LeapTS

PREFIX = "dataset:"
PAGE_SUFFIXES = (".html", ".htm")
# Flags of reading, and the option that describes each.
_LISTS = {"future": "futr_exog_list", "past": "hist_exog_list", "static": "stat_exog_list"}
_READ = {name: name for name in ("freq", "id_col", "time_col", "target_col", "layout", "fill", "duplicates")} | _LISTS
# Flags of a fit, and the option that describes each.
_FIT: tuple[tuple[str, type[RootOptions], str], ...] = (
    ("horizon", FitConfig, "h"),
    ("input_size", FitConfig, "input_size"),
    ("max_steps", TrainingConfig, "max_steps"),
    ("learning_rate", TrainingConfig, "learning_rate"),
    ("seed", TrainingConfig, "random_seed"),
    ("val_size", FitConfig, "val_size"),
    ("loss", FitConfig, "loss"),
    ("support", FitConfig, "support"),
    ("init", FitConfig, "init"),
)
# Flags by the names that options have in Python, for error messages.
FLAGS = {
    **{option: f"--{flag.replace('_', '-')}" for flag, option in _READ.items()},
    **{name: f"--{name.replace('_', '-')}" for name in ("level", "step_size", "max_series")},
    **{option: f"--{flag.replace('_', '-')}" for flag, _, option in _FIT},
    "checkpoint_dir": "--checkpoint",
    "futr_df": "--future-data",
    "n_samples": "--samples",
    "quantiles": "--quantile",
    "n_windows": "--windows",
    "season": "--season-length",
}


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _flag(name: str, group: type[RootOptions], option: str) -> inspect.Parameter:
    """Parameter of a command with the description, type and lower limit of an option.

    It is text where several types are possible; options of a fit are chosen from the data by default.
    """
    field = group.model_fields[option]
    kind: Any = field.annotation
    limits, inner = field.metadata, [one for one in get_args(kind) if one is not NoneType]
    if len(inner) == 1 and get_origin(inner[0]) is Annotated:  # such as Annotated[int, Field(ge=1)] | None
        kind, found = get_args(inner[0])
        limits = found.metadata
    elif not isinstance(kind, type) and get_origin(kind) is not Literal:
        kind = str
    limit, text = next((one.ge for one in limits if hasattr(one, "ge")), None), str(field.description)
    default, remark = field.default or None, ""
    if field.is_required():
        default = inspect.Parameter.empty
    elif group is not ReadOptions and name not in ("seed", "loss", "support", "init"):
        default, remark = None, f" [{default if name == 'learning_rate' else 'chosen from the data'}]"
    shown = typer.Option(min=limit, help=f"{text[0].upper()}{text[1:]}.{remark}")
    return _parameter(name, Annotated[kind | None, shown], default)


Engine = Literal["local", "ray"]
Prepare = Callable[[str, int], tuple["LeapTS", "Panel", int]]
Pretrained = Callable[[str, int], tuple["LeapTS", "Panel"]]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder written by leapts fit.")]
_DATA = "CSV or Parquet file, - for standard input, or a data set: see leapts datasets list."
Data = Annotated[str, typer.Argument(metavar="DATA", help=_DATA)]
MaxSteps: Any = _flag("max_steps", TrainingConfig, "max_steps").annotation
StepSize = Annotated[int | None, typer.Option(min=1, help="Steps between cutoffs. [the horizon]")]
_THREADS = "Number of threads; more than one helps only with many series."
Threads = Annotated[int, typer.Option(min=1, max=256, help=_THREADS)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Page = Annotated[Path | None, typer.Option("--report", help="HTML file for a report of the forecasts.")]
_ESCAPE = "In CSV, put an apostrophe before text that looks like a formula."
EscapeFormulas = Annotated[bool, typer.Option("--escape-formulas", help=_ESCAPE)]
_ADDRESS = "Address of the Ray cluster, such as auto or ray://host:10001. [start a local one]"
Address = Annotated[str | None, typer.Option(help=_ADDRESS)]
_LEVELS = "Prediction interval in percent, such as 80; several as 80,95 or by repeating it."
Levels: Any = Annotated[list[str] | None, typer.Option("--level", help=_LEVELS)]  # a command gets numbers
_QUANTILES = "Quantile between 0 and 1, such as 0.9; several as 0.1,0.9 or by repeating it. Instead of --level."
Quantiles: Any = Annotated[list[str] | None, typer.Option("--quantile", help=_QUANTILES)]
_DEBUG = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def _read_config(context: typer.Context, path: Path | None) -> Path | None:
    if path is not None and not context.resilient_parsing:
        read_config(context, path)
    return path


def shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --debug and --config to a command, and the options that `prepare` stands for.

    A command with a parameter `prepare` has the flags of reading and of a fit, and gets a function of the data and the
    number of threads that makes the forecaster, reads the data and finds the season length. One with a parameter
    `pretrained` has the flags of reading, and gets a function of the data and the horizon that makes the pretrained
    forecaster and reads the data.
    """
    asked = inspect.signature(command).parameters
    shown = [_parameter("context", typer.Context)]
    for name, parameter in asked.items():
        if name in ("prepare", "pretrained"):
            fit = _FIT if name == "prepare" else ()
            shown += [_flag(*one) for one in fit]
            shown += [_flag(flag, ReadOptions, option) for flag, option in _READ.items()]
        else:
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    if asked.keys() & {"model", "prepare"}:  # --config sets the defaults of all other options and is thus read first
        tables = ", and tables [model] and [training]" if "prepare" in asked else ""
        text = f"TOML file with defaults for these options{tables}."
        option = typer.Option(is_eager=True, callback=_read_config, help=text)
        shown.append(_parameter("config", Annotated[Path | None, option], None))
    shown.append(_parameter("debug", _DEBUG, False))

    @wraps(command)
    def run(context: typer.Context, **values: Any) -> None:
        del values["debug"]  # read where errors are caught
        values.pop("config", None)
        for name in ("level", "quantile"):
            if name in asked:
                values[name] = parse_levels(values[name], name)
        if "prepare" in asked:
            read = _read_options(values)
            given = {option: values.pop(flag) for flag, _, option in _FIT}
            given["support"] = _parse_support(given["support"])
            given |= {name: getattr(read, name) for name in _READ.values()}
            values["prepare"] = partial(_prepare, given, context.meta.get(TABLES, {}))
        if "pretrained" in asked:
            read = _read_options(values)
            values["pretrained"] = partial(_pretrained, {name: getattr(read, name) for name in _READ.values()})
        command(**values)

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def _read_options(values: dict[str, Any]) -> ReadOptions:
    """Take the options of reading out of the values of all flags."""
    given = {option: values.pop(flag) for flag, option in _READ.items()}
    return ReadOptions(**{name: value for name, value in given.items() if value is not None})


def _prepare(
    given: Mapping[str, Any], tables: Mapping[str, Any], data: str, threads: int
) -> tuple["LeapTS", "Panel", int]:
    """Make a forecaster, read its data and find the season length, by the catalogue or the frequency."""
    from leapts.data.frequency import seasonal_period
    from leapts.forecasting.estimator import LeapTS

    use_threads(threads)
    model = LeapTS(**given, model=tables.get("model") or None, training=tables.get("training") or None)
    panel, season = _read(model, data, _changed(given))
    return model, panel, season or seasonal_period(panel.freq)


def _pretrained(given: Mapping[str, Any], data: str, horizon: int) -> tuple["LeapTS", "Panel"]:
    """Make a forecaster that needs no training, and read its data."""
    from leapts.forecasting.estimator import LeapTS

    use_threads(1)
    model = LeapTS.pretrained(horizon, **given)
    return model, _read(model, data, _changed(given))[0]


def _changed(given: Mapping[str, Any]) -> list[str]:
    """Flags of reading that a user set."""
    return [FLAGS[name] for name in _READ.values() if given[name] != ReadOptions.model_fields[name].default]


def load(
    folder: Path, data: str | None = None, threads: int = 1, horizon: int | None = None
) -> tuple["LeapTS", "Panel"]:
    """Load a model, or make the pretrained one; read data with its read options, or take the data of the fit."""
    from leapts.forecasting.estimator import LeapTS

    use_threads(threads)
    model = LeapTS.load(folder) if horizon is None else LeapTS.pretrained(horizon)
    return model, model.predictor_.tail if data is None else _read(model, data)[0]


def use_threads(count: int) -> None:
    """Set the number of threads torch uses.

    One is the default: most products are too small to share, and waiting threads slow down other programs.
    """
    import torch

    torch.set_num_threads(count)


def _read(model: "LeapTS", data: str, changed: Sequence[str] = ()) -> tuple["Panel", int | None]:
    """Read a file, or a data set and its season length; data sets accept no flags of reading."""
    found = _resolve(data)
    if isinstance(found, Dataset):
        from leapts.datasets.loading import FOLDER_VARIABLE, load_dataset

        if changed:
            raise ConfigError(f"{found.name} is a data set with its own read options; leave out {', '.join(changed)}")
        if found.kind == "files" and not os.environ.get(FOLDER_VARIABLE):
            raise DataError(
                f"{found.name} is not part of LeapTS: set {FOLDER_VARIABLE} to the folder that has it "
                f"(leapts datasets fetch {found.name} --to FOLDER downloads it)"
            )
        return load_dataset(found), found.season
    panel = model.read(found)
    if panel.unused and launcher.is_first():
        target = panel.style.target_col
        wide = " (--layout wide reads each column as a series)" if panel.series == (target,) else ""
        note(f"not used: {listed(panel.unused)}; only {quoted(target)} is forecast{wide}")
    return panel, None


def _resolve(data: str) -> str | Dataset:
    """Find the path or data set with a name; `-` is standard input.

    A file takes precedence over a data set of the same name; `dataset:NAME` always means the data set.
    """
    if data.startswith(PREFIX):
        return find(data.removeprefix(PREFIX))
    if data == "-" or Path(data).exists():
        return data
    if data.casefold() in {name.casefold() for name in catalogue()}:
        return find(data)
    near = nearest(data, list(catalogue()))
    hint = f"did you mean the data set {near}?" if near else "leapts datasets list shows all data sets"
    raise DataError(f"{quoted(data)} is neither a file nor a data set; check the path ({hint})")


def require_output(
    out: Path | None, suffixes: tuple[str, ...] = (), *, data: str | None = None, model: Path | None = None
) -> None:
    """Refuse an output file that cannot be written, that is the data, or that lies in the model folder.

    By default the suffix must be that of a table.
    """
    if out is None:
        return
    from leapts.data.frames import SUFFIXES, require_writable

    require_writable(out, suffixes or SUFFIXES)
    if data is not None and out.exists() and out.resolve() == Path(data).resolve():
        raise ConfigError(f"{out} is the data file and would be overwritten; write to another file")
    if model is not None and model.resolve() in out.resolve().parents:
        raise ConfigError(f"{out} is inside the model folder {model}; write to another folder")


def _parse_support(support: str) -> str | tuple[float, ...]:
    """Parse two limits given as `0,1`; a name stays a name."""
    try:
        return tuple(map(float, support.split(",")))
    except ValueError:
        return support


def parse_levels(levels: Sequence[str] | None, name: str = "level") -> list[int | float]:
    """Parse levels given as `80,95` or one by one; whole numbers stay whole, for the names of columns."""
    texts = [text for level in levels or () for text in level.split(",")]
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        example = "80 or 80,95" if name == "level" else "0.9 or 0.1,0.9"
        raise ConfigError(f"--{name} {quoted(','.join(texts))}: must be numbers, such as {example}") from None
    return [int(number) if number.is_integer() and name == "level" else number for number in numbers]
