"""Defects of data files: each is made from clean data, with the outcomes that are allowed."""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd

from leapts_qa.samples import waves

May = Literal["same", "finite"]


@dataclass(frozen=True)
class Defect:
    """A file with a defect or an unusual feature.

    Attributes:
        name: The name of the defect.
        content: The file.
        may: The allowed forecast, if it is not refused: that of the clean data, or any numbers.
    """

    name: str
    content: bytes
    may: May = "same"


def clean() -> bytes:
    """Create two daily series without defects."""
    return waves().to_csv(index=False).encode()


def defects() -> Iterator[Defect]:
    """Generate all defects; some are large."""
    for name, change in _LINES.items():
        lines = clean().decode().splitlines()
        yield Defect(name, ("\n".join(change(lines)) + "\n").encode())
    for name, values in _VALUES.items():
        frame = waves()
        frame["y"] = values(frame["y"].to_numpy())
        yield Defect(name, frame.to_csv(index=False).encode(), "finite")
    for name, make in _FILES.items():
        yield Defect(name, make(), "finite" if name in _OTHER_DATA else "same")


def _cell(row: int, text: str, column: int = 2) -> Callable[[list[str]], list[str]]:
    """Replace one cell."""

    def change(lines: list[str]) -> list[str]:
        cells = lines[row].split(",")
        cells[column] = text
        return [*lines[:row], ",".join(cells), *lines[row + 1 :]]

    return change


def _each(change: Callable[[str, str, str], str]) -> Callable[[list[str]], list[str]]:
    """Rewrite every row."""
    return lambda lines: [lines[0], *(change(*line.split(",")) for line in lines[1:])]


_LINES: dict[str, Callable[[list[str]], list[str]]] = {
    **{f"{text or 'nothing'} among the values": _cell(20, text) for text in ("NaN", "inf", "-inf", "", "null", "#N/A")},
    **{f"{text} among the values": _cell(20, text) for text in ("12abc", "1+2j", "3%", "$4", "1 000", "0x1F", "True")},
    "a gap": lambda lines: lines[:20] + lines[22:],
    "a stamp twice, alike": lambda lines: [*lines[:20], lines[19], *lines[20:]],
    "a stamp twice, with another value": lambda lines: [*lines[:20], lines[19][:-3] + "999", *lines[20:]],
    "unsorted": lambda lines: [lines[0], *np.random.default_rng(0).permutation(lines[1:]).tolist()],
    "newest first": lambda lines: [lines[0], *lines[:0:-1]],
    "series in turns": lambda lines: [lines[0], *sorted(lines[1:], key=lambda line: line.split(",")[1])],
    "mixed frequency": _cell(20, "2024-01-19 12:00:00", 1),
    "mixed time zones": _cell(20, "2024-01-20T00:00:00+05:00", 1),
    "29 February where there is none": _cell(20, "2023-02-29", 1),
    "a stamp of the year 99999": _cell(48, "99999-01-01", 1),
    "a stamp that is missing": _cell(20, "", 1),
    "a stamp in words": _cell(20, "last Tuesday", 1),
    "a series without a name": _cell(20, "", 0),
    "numbers in quotes": _each(lambda name, ds, y: f'"{name}","{ds}","{y}"'),
    "decimal commas": lambda lines: [line.replace(",", ";").replace(".", ",") for line in lines],
    "separated by semicolons": lambda lines: [line.replace(",", ";") for line in lines],
    "separated by tabs": lambda lines: [line.replace(",", "\t") for line in lines],
    "spaces around everything": lambda lines: [line.replace(",", " , ") for line in lines],
    "days before months, or months before days": _each(lambda name, ds, y: f"{name},{ds[8:]}/{ds[5:7]}/{ds[:4]},{y}"),
    "dates as numbers": _each(lambda name, ds, y: f"{name},{ds.replace('-', '')},{y}"),
    "a header twice": lambda lines: ["unique_id,ds,ds", *lines[1:]],
    "a column without a name": lambda lines: ["unique_id,,y", *lines[1:]],
    "another header": lambda lines: ["shop,day,sold", *lines[1:]],
    "no header": lambda lines: lines[1:],
    "lines of too few cells": lambda lines: [*lines[:20], "a", *lines[20:]],
    "lines of too many cells": lambda lines: [*lines[:20], lines[20] + ",1,2,3", *lines[21:]],
    "a quote that is never closed": _cell(20, '"1'),
    "blank lines at the end": lambda lines: [*lines, "", "", ""],
    "a column of remarks": lambda lines: [lines[0] + ",remark", *(f"{line},fine" for line in lines[1:])],
    "one row": lambda lines: lines[:2],
    "a header alone": lambda lines: lines[:1],
}

_VALUES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "constant": lambda y: np.full_like(y, 7.0),
    "all zero": lambda y: np.zeros_like(y),
    "minus zero": lambda y: -np.zeros_like(y),
    "of 1e308": lambda y: y * 1e307,
    "of 1e29": lambda y: y * 1e28,
    "of 1e-300": lambda y: y * 1e-301,
    "denormal": lambda y: np.sign(y) * 5e-324,
    "at the limits of 64-bit integers": lambda y: np.where(y > y.mean(), 2.0**63 - 1, -(2.0**63)),
    "one spike": lambda y: np.where(np.arange(len(y)) == 30, 1e25, y),
    "one spike at the end": lambda y: np.where(np.arange(len(y)) == len(y) - 1, 1e25, y),
    "a step of 1e12 with noise of one": lambda y: y + 1e12,
}


def _hourly(start: str) -> bytes:
    """Create hourly timestamps of Berlin across a change of daylight saving, with offsets."""
    stamps = pd.date_range(start, periods=48, freq="h", tz="Europe/Berlin")
    frame = pd.DataFrame({"unique_id": "a", "ds": [stamp.isoformat() for stamp in stamps], "y": waves(("a",))["y"]})
    return frame.to_csv(index=False).encode()


def _on_wall_clocks(start: str) -> bytes:
    """Create the same without offsets: an hour is missing or occurs twice."""
    stamps = pd.date_range(start, periods=48, freq="h", tz="Europe/Berlin").tz_localize(None)
    return pd.DataFrame({"unique_id": "a", "ds": stamps, "y": waves(("a",))["y"]}).to_csv(index=False).encode()


def _parquet() -> bytes:
    sink = io.BytesIO()
    waves().to_parquet(sink)
    return sink.getvalue()


def _bomb() -> bytes:
    """Create a few megabytes that decompress to gigabytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    row = b"a,2024-01-01,1\n" * 70_000
    return b"".join(
        [packer.compress(b"unique_id,ds,y\n"), *(packer.compress(row) for _ in range(3000)), packer.flush()]
    )


def _million_rows() -> bytes:
    rows = [f"a,{number},{number % 7}" for number in range(1_000_000)]
    rows[500_000] = "a,500000,seven"
    return ("unique_id,ds,y\n" + "\n".join(rows) + "\n").encode()


def _wide() -> bytes:
    """Create ten thousand series, one for each column."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 10_000)).round(3), columns=[f"c{number}" for number in range(10_000)])
    frame.insert(0, "ds", pd.date_range("2024-01-01", periods=30))
    return frame.to_csv(index=False).encode()


def _spelled_in_turns(other: str) -> bytes:
    """Give every second row of a series a name that looks the same."""
    header, *rows = clean().decode().splitlines()
    names = ("caf\xe9", other)
    turns = [f"{names[number % 2]},{row.partition(',')[2]}" for number, row in enumerate(rows) if row.startswith("a,")]
    return "\n".join([header, *turns]).encode()


def _moved(start: str) -> bytes:
    frame = waves()
    frame["ds"] += pd.Timestamp(start) - frame["ds"].min()
    return frame.to_csv(index=False).encode()


_FILES: dict[str, Callable[[], bytes]] = {
    "a mark at the start (BOM)": lambda: b"\xef\xbb\xbf" + clean(),
    "lines that end as on Windows": lambda: clean().replace(b"\n", b"\r\n"),
    "lines that end as on old Macs": lambda: clean().replace(b"\n", b"\r"),
    "Latin-1": lambda: clean().replace(b"a,", b"\xe4,"),
    "UTF-16": lambda: clean().decode().encode("utf-16"),
    "bytes of zero": lambda: clean().replace(b"a,2024-01-20", b"a\0,2024-01-20"),
    "noise": lambda: np.random.default_rng(0).bytes(5000),
    "nothing at all": lambda: b"",
    "blanks": lambda: b"  \n \n",
    "a leap day": lambda: _moved("2024-02-10"),
    "stamps before 1677": lambda: _moved("1500-01-01"),
    "spring, clocks with offsets": lambda: _hourly("2024-03-30 12:00"),
    "autumn, clocks with offsets": lambda: _hourly("2024-10-26 12:00"),
    "spring, wall clocks": lambda: _on_wall_clocks("2024-03-30 12:00"),
    "autumn, wall clocks": lambda: _on_wall_clocks("2024-10-26 12:00"),
    "Parquet": _parquet,
    "Parquet, cut": lambda: _parquet()[:-100],
    "Parquet, its middle overwritten": lambda: _parquet()[:300] + b"\xff" * 200 + _parquet()[500:],
    "gzip": lambda: gzip.compress(clean()),
    "gzip, cut": lambda: gzip.compress(clean())[:-20],
    "a gzip bomb": _bomb,
    "a string in the middle of a million rows": _million_rows,
    "10,000 columns": _wide,
    "a name of a million letters": lambda: clean().replace(b"a,", b"a" * 1_000_000 + b",", 1),
    "a million columns": lambda: b"," * 1_000_000 + b"\n" + clean(),
    "a row of a million cells": lambda: clean() + b"," * 1_000_000 + b"\n",
    "a byte of zero in the header": lambda: clean().replace(b"unique_id", b"unique_id\0", 1),
    **{
        f"one name spelled in two ways ({name!a})": partial(_spelled_in_turns, name)
        for name in ("cafe\u0301", "caf\xe9 ", "caf\xe9\u200b", "\ufeffcaf\xe9")
    },
}
_OTHER_DATA = {"a leap day", "stamps before 1677", "10,000 columns", "a name of a million letters"}
_OTHER_DATA |= {name for name in _FILES if name.startswith(("spring", "autumn"))}
