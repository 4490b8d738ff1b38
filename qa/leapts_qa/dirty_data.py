"""Dirty data through every entry point: the forecast of the clean data, or an error with place and remedy."""

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leapts import LeapTS, LeapTSError
from leapts.cli import run as command_line
from leapts.server.registry import ModelRegistry
from leapts_qa.data_defects import Defect, clean, defects
from leapts_qa.forks import in_fork
from leapts_qa.outcome import Outcome
from leapts_qa.samples import TINY, forecaster, waves
from leapts_qa.server_thread import served

FRAMES_A_UNIT = 250
DOORS = ("file", "frame", "fit", "command line", "server", "pretrained")
UNITS = (
    *DOORS,
    *(f"frames seed {seed}" for seed in range(40)),
    *(f"pretrained, frames seed {seed}" for seed in range(4)),
)

Forecast = dict[str, Any]  # {"values": [...]} or {"refused": message}


def run(unit: str, folder: Path, *, most: int | None = None) -> Outcome:
    """Pass all defects, or some hundred fuzzed frames, through one entry point.

    Args:
        unit: The entry point, or the seed of the frames.
        folder: A folder to work in.
        most: The maximum number of cases.
    """
    model = forecaster(val_size=9, pad_short=False).fit(waves())
    model.save(folder / "model")
    if "frames seed " in unit:
        asked = LeapTS.pretrained(3) if unit.startswith("pretrained") else model
        return _made_up(asked, int(unit.rpartition(" ")[2]), most or FRAMES_A_UNIT)
    outcome = Outcome()
    with served(ModelRegistry([folder / "model"])) if unit == "server" else contextlib.nullcontext("") as address:
        expected = through(unit, clean(), folder, address)["values"]
        for defect in islice(defects(), most):
            if unit == "server":
                judge(defect, through(unit, defect.content, folder, address), expected, outcome)
                continue
            ended = in_fork(partial(through, unit, defect.content, folder, address), seconds=60)
            outcome.most("MB of memory", ended.megabytes)
            if ended.hung or ended.signal or ended.error:
                what = "hung" if ended.hung else ended.error.strip().rpartition("\n")[2] or f"signal {ended.signal}"
                outcome.fail(f"{unit}: {defect.name}: {what}")
            else:
                judge(defect, ended.value, expected, outcome)
    return outcome


def judge(defect: Defect, found: Forecast, expected: list[float], outcome: Outcome) -> None:
    """Check for the same numbers, any numbers where the data differ, or a helpful refusal."""
    if "refused" in found:
        message = found["refused"]
        if helps(message):
            outcome.count("refused, with place and hint")
        else:
            outcome.fail(f"{defect.name}: a message that does not help: {message}")
    elif not np.isfinite(np.array(found["values"], dtype=float)).all():
        outcome.fail(f"{defect.name}: forecasts that are no numbers")
    elif defect.may == "same" and not np.allclose(found["values"], expected, rtol=1e-6):
        outcome.fail(f"{defect.name}: another forecast than from clean data, without a word")
    else:
        outcome.count("same forecast as from clean data" if defect.may == "same" else "finite forecast")


def helps(message: str) -> bool:
    """Check that a refusal is one line of limited length, with a remedy."""
    return "\n" not in message and len(message) < 1000 and any(mark in message for mark in (";", " needs ", "("))


def through(door: str, content: bytes, folder: Path, address: str) -> Forecast:
    """Return the result of an entry point for a file."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        file = Path(place) / "data.csv"
        file.write_bytes(content)
        if door == "command line":
            return _by_command("predict", str(folder / "model"), str(file))
        if door == "pretrained":
            return _by_command("forecast", str(file), "--horizon", "3")
        if door == "server":
            return _by_request(address, content)
        try:
            return {"values": _by_python(door, folder / "model", file)["LeapTS"].tolist()}
        except LeapTSError as error:
            return {"refused": str(error)}


def _by_python(door: str, model: Path, file: Path) -> pd.DataFrame:
    frame: Any
    if door == "fit":
        return pd.DataFrame(LeapTS(3, input_size=6, max_steps=1, model=TINY, alias="LeapTS").fit(file).predict())
    if door == "frame":
        try:
            frame = pd.read_csv(file, nrows=200_000)
        except (ValueError, UnicodeError, pd.errors.ParserError):
            frame = file  # it cannot be read as a frame
        return pd.DataFrame(LeapTS.load(model).predict(frame))
    return pd.DataFrame(LeapTS.load(model).predict(file))


def _by_command(*arguments: str) -> Forecast:
    target = Path(arguments[2 if arguments[0] == "predict" else 1]).with_name("forecast.csv")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
        code = command_line([*arguments, "-o", str(target)])
    sys.stdout.flush()
    said = err.getvalue().strip()
    if code == 0:
        return {"values": pd.read_csv(target)["LeapTS"].tolist()}
    is_plain = code == 2 and said.startswith("error: ") and "unexpected" not in said
    return {"refused": said.replace("\n", " ") if is_plain else f"code {code}\n{said}"}


def _by_request(address: str, content: bytes) -> Forecast:
    import httpx

    answer = httpx.post(f"{address}/v1/forecast/csv", content=content, headers={"Content-Type": "text/csv"}, timeout=60)
    if answer.status_code == 200:
        return {"values": pd.read_csv(io.BytesIO(answer.content))["LeapTS"].tolist()}
    told = answer.json()
    is_plain = answer.status_code in (413, 422)
    return {"refused": f"{told.get('detail')}; {told.get('hint', '')}" if is_plain else f"{answer.status_code}\n{told}"}


def _made_up(model: LeapTS, seed: int, most: int) -> Outcome:
    """Forecast frames with one to three random defects; numbers or refusals are allowed."""
    outcome = Outcome()
    for what, frame in islice(_frames(seed), most):
        try:
            values = model.predict(frame)["LeapTS"].to_numpy()
        except LeapTSError as error:
            if helps(str(error)):
                outcome.count("refused, with place and hint")
            else:
                outcome.fail(f"{what}: a message that does not help: {error}")
        except Exception as error:
            outcome.fail(f"{what}: {error!r}")
        else:
            if np.isfinite(values).all():
                outcome.count("finite forecast")
            else:
                outcome.fail(f"{what}: forecasts that are no numbers")
    return outcome


def _frames(seed: int) -> Iterator[tuple[str, pd.DataFrame]]:
    """Generate frames; combinations of defects that cannot be applied are skipped."""
    for number in count():
        rng = np.random.default_rng([seed, number])
        frame = waves(length=int(rng.integers(1, 40)))
        names = rng.choice(list(_CHANGES), size=int(rng.integers(1, 4)))
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                for name in names:
                    frame = _CHANGES[str(name)](frame, rng)
        except Exception:  # refused by pandas, not by our code
            continue
        yield f"frame {seed} {number} ({', '.join(names)})", frame


_ODD: tuple[Any, ...] = (
    np.nan,
    np.inf,
    -np.inf,
    1e308,
    5e-324,
    2**63 - 1,
    "x",
    "",
    None,
    pd.NA,
    pd.NaT,
    True,
    [1],
    "1,5",
)


def _set(frame: pd.DataFrame, rng: np.random.Generator, column: str) -> pd.DataFrame:
    frame = frame.astype({column: object})
    frame.loc[int(rng.integers(len(frame))), column] = _ODD[int(rng.integers(len(_ODD)))]
    return frame


def _typed(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    kind = rng.choice(
        ["float32", "float16", "int8", "int64", "str", "category", "bool", "complex128", "Float64", "object"]
    )
    return frame.astype({"y": str(kind)})


def _stamped(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    kinds: list[Callable[[pd.Series], Any]] = [
        lambda ds: ds.dt.tz_localize("Europe/Berlin"),
        lambda ds: ds.astype(str),
        lambda ds: ds.dt.date,
        lambda ds: ds.dt.to_period("D"),
        lambda ds: ds.astype("int64"),
        lambda ds: ds.dt.year,
        lambda ds: ds.astype("datetime64[s]"),
        lambda ds: ds.astype(float) if ds.dtype.kind != "M" else ds.astype("int64") / 7,
    ]
    return frame.assign(ds=kinds[int(rng.integers(len(kinds)))](frame["ds"]))


_CHANGES: dict[str, Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]] = {
    "an odd value": lambda frame, rng: _set(frame, rng, "y"),
    "an odd stamp": lambda frame, rng: _set(frame, rng, "ds"),
    "an odd name": lambda frame, rng: _set(frame, rng, "unique_id"),
    "another type of value": _typed,
    "another type of stamp": _stamped,
    "rows shuffled": lambda frame, rng: frame.sample(frac=1.0, random_state=int(rng.integers(1 << 30))),
    "rows left out": lambda frame, rng: frame.sample(frac=0.8, random_state=int(rng.integers(1 << 30))),
    "rows twice": lambda frame, rng: pd.concat([frame, frame.head(int(rng.integers(1, 5)))]),
    "scaled": lambda frame, rng: frame.assign(y=pd.to_numeric(frame["y"]) * 10.0 ** int(rng.integers(-320, 308))),
    "a column dropped": lambda frame, rng: frame.drop(columns=str(rng.choice(frame.columns))),
    "a column twice": lambda frame, rng: pd.concat([frame, frame[[str(rng.choice(frame.columns))]]], axis=1),
    "a column more": lambda frame, _: frame.assign(other="text"),
    "columns turned": lambda frame, _: frame[frame.columns[::-1]],
    "an odd index": lambda frame, _: frame.set_index(frame.columns[0], drop=False),
    "no rows": lambda frame, _: frame.head(0),
    "wide": lambda frame, _: frame.pivot(index="ds", columns="unique_id", values="y").reset_index(),
}
