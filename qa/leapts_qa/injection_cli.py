"""Names with terminal control sequences or path tricks, through the command line."""

import contextlib
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pandas as pd

from leapts.cli import run
from leapts.data.frames import csv_bytes
from leapts.messages import printable
from leapts_qa.injection_payloads import as_file, series_names
from leapts_qa.outcome import Outcome
from leapts_qa.samples import LOOKBACK, H, forecaster, waves

_SHOWN_AT_ONCE = 8
_FIT = ("--horizon", H, "--input-size", LOOKBACK, "--max-steps", 1, "--val-size", 9)


class _Terminal(io.TextIOWrapper):
    """A stream that claims to be a terminal, and stores its input."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="backslashreplace", newline="")

    def isatty(self) -> bool:
        return True

    @property
    def sent(self) -> str:
        """Return all text."""
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode()


@dataclass(frozen=True)
class Shown:
    """The output of a command at a terminal."""

    code: int
    out: str
    err: str

    @property
    def obeyed(self) -> str:
        """Return the control sequences that a terminal would execute, except line ends."""
        return "".join(one for one in self.out + self.err if not one.isprintable() and one != "\n")


def at_terminal(*arguments: object) -> Shown:
    """Run a command at a terminal without colors or cursor movements."""
    out, err = _Terminal(), _Terminal()
    plain = patch.dict(os.environ, {"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "200"})
    with plain, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(argument) for argument in arguments])
    return Shown(code, out.sent, err.sent)


def terminal(payloads: Sequence[str], folder: Path, outcome: Outcome) -> None:
    """Use payloads as names of series in tables, CSV and JSON, as column names, and as arguments."""
    model = folder / "model"
    forecaster().fit(waves()).save(model)
    for start in range(0, len(payloads), _SHOWN_AT_ONCE):
        _shown(tuple(payloads[start : start + _SHOWN_AT_ONCE]), folder, outcome)
    (folder / "good.csv").write_bytes(csv_bytes(waves()))
    for name in payloads:
        table = folder / "columns.csv"
        table.write_bytes(csv_bytes(waves().rename(columns={"unique_id": name, "y": f"{name}2"})))
        broken = waves().astype({"y": str})
        broken.loc[5, ["unique_id", "y"]] = name
        (folder / "broken.csv").write_bytes(csv_bytes(broken))
        commands: tuple[tuple[object, ...], ...] = (
            ("predict", model, table),
            ("predict", model, folder / "broken.csv"),
            ("predict", name),
            ("predict", model, name),
            ("predict", model, "--debug", "-o", f"{name}/x.csv"),
            ("predict", model, f"--level={name}"),
            ("predict", model, f"--{name}"),
            ("predict", model, f"--quantile={name}"),
            ("predict", model, f"--samples={name}"),
            ("forecast", name, "--horizon=3"),
            ("forecast", table, "--horizon=3"),
            ("report", model, folder / "good.csv", f"--series={name}", "-o", folder / "report.html"),
            ("backtest", folder / "good.csv", f"--id-col={name}", *_FIT),
            ("datasets", "fetch", f"x{name}", "--to", folder),
            ("serve", f"{name}x", "--port=0"),
            (f"x{name}",),
        )
        _judge(name, [at_terminal(*command) for command in commands], outcome)


def _shown(names: tuple[str, ...], folder: Path, outcome: Outcome) -> None:
    """Show forecasts as a table, as CSV and as JSON, which preserves the names."""
    names = series_names(names)
    data = folder / "names.csv"
    data.write_bytes(csv_bytes(waves(names, 12)))
    model = folder / "model"
    shown = [at_terminal("predict", model, data), at_terminal("predict", model, data, "-o", "-")]
    as_json = at_terminal("predict", model, data, "--json")
    told = [row["unique_id"] for row in json.loads(as_json.out)["forecast"]] if as_json.code == 0 else []
    for name in names:
        if any(one.code for one in (*shown, as_json)):
            outcome.fail(f"{name!r:.60}: {shown[0].err or as_json.err}")
        elif name not in told:
            outcome.fail(f"{name!r:.60} is not among the names in JSON")
        elif "".join(printable(name).split())[:20] not in "".join(shown[1].out.replace('""', '"').split()):
            outcome.fail(f"{name!r:.60} is not shown")
        else:
            _judge(name, [*shown, as_json], outcome)


def _judge(name: str, shown: Sequence[Shown], outcome: Outcome) -> None:
    for one in shown:
        if one.obeyed:
            outcome.fail(f"{name!r:.60}: a terminal would obey {one.obeyed!r:.60}")
        elif one.code not in (0, 2):
            outcome.fail(f"{name!r:.60}: code {one.code}: {one.err[-300:]}")
        else:
            outcome.count("shown escaped" if one.code == 0 else "refused, message escaped")


def file_names(payloads: Sequence[str], folder: Path, outcome: Outcome) -> None:
    """Use payloads as names of data, models, forecasts, traces and reports: each is written to its path, or refused."""
    (folder / "good.csv").write_bytes(csv_bytes(waves()))
    for number, payload in enumerate(payloads):
        place = folder / str(number)
        place.mkdir()
        name = place / as_file(payload)
        data, model = Path(f"{name}.csv"), Path(f"{name}.model")
        data.write_bytes((folder / "good.csv").read_bytes())
        shown = [
            at_terminal("fit", data, *_FIT, "--out", model),
            at_terminal("predict", model, data, "-o", f"{name}.1.csv", "--trace", f"{name}.2.csv"),
            at_terminal("report", model, data, "-o", f"{name}.html", f"--title={payload[:200]}", "--cutoffs=1"),
            at_terminal("predict", data),
            at_terminal("predict", model, f"{name}.missing"),
            at_terminal("fit", data, "--target-col=z", *_FIT, "--out", model),
        ]
        expected = {f"{name.name}{end}" for end in (".csv", ".model", ".1.csv", ".2.csv", ".html")}
        if [one.code for one in shown] != [0, 0, 0, 2, 2, 2]:
            outcome.fail(f"{payload!r:.60}: {[(one.code, one.err[-200:]) for one in shown if one.code]}")
        elif {path.name for path in place.iterdir()} != expected or len(pd.read_csv(f"{name}.1.csv")) != 2 * H:
            outcome.fail(f"{payload!r:.60}: {sorted(path.name for path in place.iterdir())!r:.300}")
        else:
            _judge(payload, shown, outcome)
