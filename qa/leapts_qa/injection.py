"""Injection by names: wherever a name is shown or written, it must remain a name."""

import csv
import io
import re
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import httpx
import pandas as pd

from leapts.data.frames import csv_bytes
from leapts.data.reader import read_csv_text
from leapts.report.plots import write_forecast_plot
from leapts.server.model import ServedModel
from leapts.server.registry import ModelRegistry
from leapts_qa import injection_cli, injection_pages
from leapts_qa.injection_payloads import PAYLOADS, as_file
from leapts_qa.outcome import Outcome
from leapts_qa.samples import forecaster, waves
from leapts_qa.server_thread import served, under_many_names

Unit = Callable[[Sequence[str], Path, Outcome], None]


def run(unit: str, folder: Path, *, every: int = 1) -> Outcome:
    """Pass all payloads, or one of every few, through one output.

    Args:
        unit: The output.
        folder: A folder to work in.
        every: Use one of this many payloads.
    """
    outcome = Outcome()
    _UNITS[unit](PAYLOADS[::every], folder, outcome)
    return outcome


def _tables(payloads: Sequence[str], _: Path, outcome: Outcome) -> None:
    """Check that CSV preserves names, and that escaped cells are no formulas while numbers stay unchanged."""
    for name in payloads:
        frame = pd.DataFrame({name: [name, "other"], "y": [-1.5, 2.0]})
        read = read_csv_text(csv_bytes(frame), id_col=name)
        # Spaces around column names are removed.
        if read.columns != [name.strip(), "y"] or read.frame.get_column(name.strip()).to_list() != [name, "other"]:
            outcome.fail(f"{name!r:.60} does not come back: {read.frame!r:.100}")
            continue
        rows = list(csv.reader(io.StringIO(csv_bytes(frame, escape_formulas=True).decode(), newline="")))
        texts = [rows[0][0], *(row[0] for row in rows[1:])]
        if any(_COMPUTED.match(text) for text in texts) or [float(row[1]) for row in rows[1:]] != [-1.5, 2.0]:
            outcome.fail(f"{name!r:.60} can be computed: {rows!r:.100}")
        elif not {text.removeprefix("'") for text in texts} <= {name, name.removeprefix("'"), "other"}:
            outcome.fail(f"{name!r:.60} is another name: {rows!r:.100}")
        else:
            outcome.count("same name read back, no formula with escape_formulas")


# Prefixes that spreadsheets evaluate according to their documentation, with full-width signs and leading spaces.
_COMPUTED = re.compile(r"[\s\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")


def _labels(payloads: Sequence[str], folder: Path, outcome: Outcome) -> None:
    """Check that labels preserve the names of models and add no lines."""
    forecaster().fit(waves()).save(folder / "model")
    names = [*payloads, "\udc80 without UTF-8", '\udc80"']
    with served(under_many_names(folder / "model", names)) as address, httpx.Client(base_url=address) as client:
        for name in payloads[:20]:
            client.get(f"/{quote(name)}")
        text = client.get("/metrics").text
    found = [labels["model"] for metric, labels in samples(text) if metric == "leapts_model_info"]
    for name in names:
        spelt = name.encode("utf-8", "backslashreplace").decode()
        if found.count(spelt) == 1:
            outcome.count("one metric label, same name")
        else:
            outcome.fail(f"{name!r:.60} is there {found.count(spelt)} times")
    if len(found) != len(names):
        outcome.fail(f"{len(found)} models instead of {len(names)}")


_SAMPLE = re.compile(r'([a-z_:]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)')
_LABEL = re.compile(r'([a-z]+)="((?:[^"\\\n]|\\["\\n])*)"')


def samples(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Parse metrics strictly in the format of Prometheus."""
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith(("# HELP ", "# TYPE ")):
            continue
        match = _SAMPLE.fullmatch(line)
        if match is None:
            raise ValueError(f"no line of metrics: {line[:200]!r}")
        float(match[3])
        labels = _LABEL.findall(match[2] or "")
        yield match[1], {name: re.sub(r"\\(.)", lambda one: _UNESCAPED[one[1]], value) for name, value in labels}


_UNESCAPED = {"n": "\n", "\\": "\\", '"': '"'}


class _Treacherous(ModelRegistry):
    """Fails at every request with a message that contains the request."""

    def find(self, name: str | None) -> ServedModel:
        raise RuntimeError(name)


def _logs(payloads: Sequence[str], folder: Path, outcome: Outcome) -> None:
    """Check that logs show hostile names in one line without control sequences."""
    forecaster().fit(waves()).save(folder / "model")
    damaged = [folder / as_file(name) for name in payloads]
    for path in damaged:
        path.mkdir()
        (path / "config.json").write_text("{}")
        (path / "model.safetensors").touch()
    registry = under_many_names(folder / "model", [path.name for path in damaged])
    registry.__class__ = _Treacherous
    registry._folders = {path.name: path for path in damaged}
    lines: list[str] = []
    serving = served(registry, log=lines.append, reload_every=0.05)
    with serving as address, httpx.Client(base_url=address) as client:
        for name in payloads:
            client.post("/v1/report", params={"model": name[:500]}, headers={"Content-Type": "text/csv"})
        end = time.monotonic() + 60
        while len(lines) < 2 * len(payloads) and time.monotonic() < end:
            time.sleep(0.05)
    for line in lines:
        if line.isprintable():
            outcome.count("one harmless log line")
        else:
            outcome.fail(f"a line that is more than a line: {line!r:.200}")
    if len(lines) != 2 * len(payloads):
        outcome.fail(f"{len(lines)} lines instead of {2 * len(payloads)}")


def _figures(payloads: Sequence[str], folder: Path, outcome: Outcome) -> None:
    """Check that figures show the name and contain nothing active."""
    model = forecaster().fit(waves())
    for name in payloads:
        history = waves((name,), 24)
        forecast, trace = model.predict(history, return_trace=True)
        write_forecast_plot(history, forecast, trace, name, folder / "figure.svg")
        drawn = ET.parse(folder / "figure.svg").getroot()
        # Matplotlib writes `use`, `style` and internal links.
        acting = [node.tag for node in drawn.iter() if node.tag.rpartition("}")[2] in _ACTING]
        if acting:
            outcome.fail(f"{name!r:.60}: {acting[:3]}")
        else:
            outcome.count("drawn, no active content")


_ACTING = {"script", "foreignObject", "a", "image", "iframe", "animate", "set"}


_UNITS: dict[str, Unit] = {
    "report": injection_pages.report,
    "titles": injection_pages.titles,
    "page": injection_pages.page,
    "terminal": injection_cli.terminal,
    "file names": injection_cli.file_names,
    "tables": _tables,
    "labels": _labels,
    "logs": _logs,
    "figures": _figures,
}
UNITS = tuple(_UNITS)
