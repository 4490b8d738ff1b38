"""The options that several commands share, each described once."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from leapts.data.options import Duplicates, Layout, PanelOptions
from leapts.errors import ConfigError
from leapts.wording import nearest, quoted

if TYPE_CHECKING:
    from leapts import LeapTS

Engine = Literal["local", "ray"]

_TABLES = "leapts.tables"  # where the tables of --config wait for the command


def _read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Makes what the file says the defaults of this command, before its other options are looked at.

    One file may serve several commands: what another command understands is left to that one.
    """
    if path is None or context.resilient_parsing:
        return path
    values = _parsed(path)
    tables = {name: values.pop(name, {}) for name in ("model", "training")}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: {name} is a table: write [{name}] on a line of its own")
    own, others = _options_of(context.command), _options_of_siblings(context)
    defaults: dict[str, Any] = {}
    for key, value in values.items():
        option = key.replace("-", "_")
        if option in own:
            multiple = bool(getattr(own[option], "multiple", False))
            if isinstance(value, dict) or isinstance(value, list) != multiple:
                kind = "a list" if multiple else "a single value"
                raise ConfigError(f"{path}: {key} is {kind}, not {quoted(value)}")
            if isinstance(value, bool) and not getattr(own[option], "is_flag", False):
                raise ConfigError(f"{path}: {key} is no switch; give it a value, not {str(value).lower()}")
            defaults[option] = value
        elif option not in others:
            known = [_shown(name) for name in own]
            near = nearest(key, known)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}, [model] and [training]"
            raise ConfigError(f"{path}: there is no option {quoted(key)}; {hint}")
    context.default_map = {**(context.default_map or {}), **defaults}
    context.meta[_TABLES] = tables
    return path


def _options_of(command: Any) -> dict[str, Any]:
    """A command's options by name, without those that make no sense in a file."""
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


def _shown(name: str) -> str:
    return name.replace("_", "-")


Model = Annotated[Path, typer.Argument(metavar="MODEL", help="The folder leapts fit wrote.")]
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="A CSV or Parquet file, - for standard input, or a data set: see leapts datasets list."
    ),
]
Horizon = Annotated[int, typer.Option("--horizon", min=1, help="Steps to forecast.")]
InputSize = Annotated[int | None, typer.Option(min=1, help="Steps of history to look back on. [picked if left out]")]
Freq = Annotated[
    str | None, typer.Option(help="The data's frequency: a pandas alias, or a whole number. [found if left out]")
]
IdCol = Annotated[str, typer.Option(help="The column of series names.")]
TimeCol = Annotated[str, typer.Option(help="The column of time stamps.")]
TargetCol = Annotated[str, typer.Option(help="The column of values.")]
LayoutOption = Annotated[
    Layout, typer.Option(help="One row for each value (long), or one column for each series (wide).")
]
FillOption = Annotated[
    str | None, typer.Option(help="What to put into gaps: interpolate, ffill or a number. [gaps are errors]")
]
DuplicatesOption = Annotated[Duplicates, typer.Option(help="What to do with rows that repeat a series and stamp.")]
ValSize = Annotated[
    int | None,
    typer.Option(
        min=0, help="Steps at the end held out to choose weights and measure intervals by. [picked if left out]"
    ),
]
MaxSteps = Annotated[int | None, typer.Option(min=1, help="Steps of training. [picked if left out]")]
LearningRate = Annotated[float | None, typer.Option(help="The learning rate of the first step; it falls from there.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed, the same forecast.")]
Threads = Annotated[
    int, typer.Option(min=1, max=256, help="Threads to compute with; more than one pays off only on wide data.")
]
Config = Annotated[
    Path | None,
    typer.Option(is_eager=True, callback=_read_config, help="A TOML file with defaults for these options."),
]
FitConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        is_eager=True,
        callback=_read_config,
        help="A TOML file with defaults for these options, and tables [model] and [training].",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
SafeCells = Annotated[
    bool,
    typer.Option(
        "--safe-cells", help="In CSV, put an apostrophe before names that a spreadsheet would take for formulas."
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error came from.")]
Address = Annotated[
    str | None, typer.Option(help="Of the Ray cluster, such as auto or ray://host:10001. [one on this machine]")
]
Levels = Annotated[
    list[float] | None, typer.Option("--level", help="An interval to give, in percent; may be repeated.")
]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a table is to be read, as the shell gave it."""

    id_col: str = "unique_id"
    time_col: str = "ds"
    target_col: str = "y"
    layout: Layout = "auto"
    freq: str | None = None
    fill: str | None = None
    duplicates: Duplicates = "error"

    def values(self) -> dict[str, Any]:
        """As the library takes them: numbers as numbers."""
        fill: str | float | None = self.fill
        if self.fill is not None and self.fill not in ("interpolate", "ffill"):
            try:
                fill = float(self.fill)
            except ValueError:
                raise ConfigError(f"--fill {quoted(self.fill)} must be interpolate, ffill or a number") from None
        freq = int(self.freq) if self.freq is not None and self.freq.removeprefix("-").isdecimal() else self.freq
        return {**vars(self), "fill": fill, "freq": freq}

    def panel_options(self) -> PanelOptions:
        """For reading a file."""
        return PanelOptions(**self.values())

    def changed(self) -> list[str]:
        """The options that were given, as the shell writes them."""
        usual = vars(Reading())
        return [f"--{_shown(name)}" for name, value in vars(self).items() if value != usual[name]]


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """How a model is to be fitted, as the shell gave it."""

    horizon: int
    input_size: int | None = None
    val_size: int | None = None
    max_steps: int | None = None
    learning_rate: float | None = None
    seed: int = 1
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def forecaster(self, reading: Reading) -> "LeapTS":
        """The forecaster, not fitted yet."""
        from leapts import LeapTS

        return LeapTS(
            self.horizon,
            self.input_size,
            **reading.values(),
            val_size=self.val_size,
            max_steps=self.max_steps,
            learning_rate=self.learning_rate,
            random_seed=self.seed,
            model=self.tables.get("model") or None,
            training=self.tables.get("training") or None,
        )


def config_tables(context: typer.Context) -> Mapping[str, Mapping[str, Any]]:
    """The tables [model] and [training] of --config."""
    tables: Mapping[str, Mapping[str, Any]] = context.meta.get(_TABLES, {})
    return tables


def use_threads(count: int) -> None:
    """Compute with so many threads.

    One is the default: the products of most models are too small to share, and beside another program that computes,
    threads that wait for each other cost many times what they bring.
    """
    import torch

    torch.set_num_threads(count)


def whole_levels(levels: list[float] | None) -> list[int | float]:
    """80.0 as 80, so that columns are called after what was typed."""
    return [int(level) if level.is_integer() else level for level in levels or []]
