"""Render `docs/scale.md` from a measurement: the text is here, all figures are computed."""

import math
from dataclasses import dataclass
from pathlib import Path

from leapts.files import write_file
from leapts.messages import counted
from leapts_bench.results import Line
from leapts_bench.tables.markdown import table

# The machine of the plan, and the time for the forecasts of a day.
_CORES, _MEMORY, _NETWORK = 16, 64e9, 1.25e9  # bytes, bytes a second: 10 Gbit/s
_SHARED = 0.3  # share of memory in which Ray holds rows in transit
_WINDOW = 3600.0
_TIERS = {"1 million": 10**6, "100 million": 10**8, "10 billion": 10**10}
_DAYS_KEPT = 30


@dataclass(frozen=True)
class Costs:
    """The cost of one series, and of a process before its first series."""

    read: float  # seconds of one core
    forecast: float
    write: float
    model: float  # the network's part of the forecast
    start: float
    history: float  # bytes on disk
    output: float
    rows: float  # bytes uncompressed, as sent between machines
    memory: float  # bytes in memory while its partition is forecast
    process: float  # bytes of a process before its first series

    @classmethod
    def of(cls, line: Line) -> "Costs":
        """Read the costs from a result line."""
        series = line["config"]["series"]
        seconds, size = line["processor_seconds"], line["bytes"]
        each = {name: seconds[name] / series for name in ("read", "partition", "write", "model")}
        return cls(
            read=each["read"],
            forecast=each["partition"],
            write=each["write"],
            model=each["model"],
            start=seconds["start"] + seconds["load"],
            history=size["history"] / series,
            output=size["forecast"] / series,
            rows=size["rows"] / series,
            memory=size["memory"] / series,
            process=size["process"],
        )

    @property
    def seconds(self) -> float:
        """Return the seconds of one core for one series, from file to file."""
        return self.read + self.forecast + self.write

    def machines(self, series: float) -> int:
        """Return the number of machines for these series within the window, if every file holds whole series."""
        return max(1, math.ceil(series * self.seconds / _WINDOW / _CORES))

    def machines_that_exchange(self, series: float) -> int:
        """Return the same when all rows cross the network first, in half of the window, and are held in memory."""
        forecasting = series * self.seconds / (_WINDOW / 2) / _CORES
        crossing = series * self.rows / (_WINDOW / 2) / _NETWORK
        return max(1, math.ceil(max(forecasting, crossing, series * self.rows / (_MEMORY * _SHARED))))


def write(line: Line, out: Path) -> None:
    """Render a result line to a file."""
    write_file(out, render(line).encode())


def render(line: Line) -> str:
    """Render the whole page."""
    costs, config = Costs.of(line), line["config"]
    parts = [
        _HOW,
        _MEASURED.format(
            **config, repeats=line["repeats"], commit=str(line["commit"])[:10], torch=line["versions"]["torch"]
        ),
        _measured(costs),
        _PLAN.format(
            cores=_CORES, memory=_MEMORY / 1e9, network=_NETWORK * 8 / 1e9, hours=_WINDOW / 3600, shared=_SHARED
        ),
        _plan(costs),
        _BOTTLENECKS.format(
            preparing=1 - costs.model / costs.seconds,
            start=costs.start,
            break_even=costs.start / costs.seconds,
            small=_time(1e6 * costs.seconds),
            middle=counted(costs.machines(1e8), "machine"),
            middle_exchange=counted(costs.machines_that_exchange(1e8), "machine"),
            middle_rows=_bytes(1e8 * costs.rows),
            middle_bytes=_bytes(1e8 * costs.history),
            large=counted(costs.machines(1e10), "machine"),
            large_exchange=counted(costs.machines_that_exchange(1e10), "machine"),
            large_bytes=_bytes(1e10 * costs.history),
            large_rate=_bytes(1e10 * costs.history / _WINDOW),
            large_kept=_bytes(_DAYS_KEPT * 1e10 * costs.output),
            days=_DAYS_KEPT,
        ),
    ]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _measured(costs: Costs) -> str:
    rows = [
        ["from file to file, series a second and core", f"{1 / costs.seconds:,.0f}"],
        ["of that time, the network itself", f"{costs.model / costs.seconds:.0%}"],
        ["of that time, checking the data, windows and the frame that comes out",
         f"{(costs.forecast - costs.model) / costs.seconds:.0%}"],
        ["of that time, reading and writing Parquet", f"{(costs.read + costs.write) / costs.seconds:.0%}"],
        ["a process until its first forecast (imports and model), seconds of one core", f"{costs.start:.1f}"],
        ["a process before its first partition", _bytes(costs.process)],
        ["memory for each series of the partition in work", _bytes(costs.memory)],
        ["history as rows in memory, each series", _bytes(costs.rows)],
        ["history on disk, each series", _bytes(costs.history)],
        ["forecast on disk, each series", _bytes(costs.output)],
    ]  # fmt: skip
    return table(["what", "cost"], rows)


def _plan(costs: Costs) -> str:
    rows = []
    for name, series in _TIERS.items():
        machines = costs.machines(series)
        partition = min(series / (machines * _CORES), 1e4)
        memory = _CORES * (costs.process + partition * costs.memory)
        rows.append(
            [
                name,
                _time(series * costs.seconds),
                f"{machines:,}",
                f"{costs.machines_that_exchange(series):,}",
                _bytes(memory),
                _bytes(series * costs.history),
                _bytes(series * costs.output),
                _bytes(series * costs.history / _WINDOW / machines) + "/s",
            ]
        )
    headings = ["forecasts a day", "time of one core", "machines", "machines, with an exchange", "memory, each machine",
                "history read", "forecasts written", "reading, each machine"]  # fmt: skip
    return table(headings, rows)


def _bytes(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} PB"


def _time(seconds: float) -> str:
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} seconds"


_HOW = """
# Beyond one machine

## Train on several processes or machines

    torchrun --nproc-per-node 2 -m leapts fit sales.csv --horizon 24 --out model/ --checkpoint run/
    torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint HOST:29500 -m leapts fit ...

Every process reads the same data and takes its share of each batch; gradients are added, weighted by the shares. So
`batch_size` means what it always means, and the weights are those of one process up to the order of additions. The
first process alone writes and speaks. When a process is lost the others end with one line; the same command with
`--resume` goes on from the last checkpoint, with as many processes as you like. Processes of one machine talk where no
other can reach them, unless `GLOO_SOCKET_IFNAME` names an interface; torchrun itself listens at every address of the
machine while they run, which only a firewall can keep from others.

In a program, `LeapTS.fit` joins a process group that is initialised already, by Ray Train
([examples/ray_training.py](../examples/ray_training.py)), Spark's TorchDistributor, or
`torch.distributed.init_process_group("gloo")`: all processes call `fit` alike, and all end with the same model.
`fit(workers=leapts.training.distributed.SingleProcess())` keeps out of it.

## Forecast on a cluster

    leapts predict model/ history/ --engine ray -o forecasts/              pip install 'leapts[ray]'
    leapts predict model/ history/ --engine ray --address auto -o forecasts/

Without `--address`, Ray runs on this machine alone, and listens for nobody else.

`history/` is a folder of Parquet files, long, in any order; `forecasts/` becomes one. All machines see both, and
the model, under the same names. Where no series is in two files, as far as the files' own statistics tell (the first
and last names in them do not overlap) and no file has more than two million rows, each file is a partition. Otherwise,
or with `--partitions`, rows are exchanged: they go to partitions by a hash of the series' name, so that whole series
come together. Actors that have read the model once forecast a partition each. A partition that was written is not
forecast again, neither when a machine is lost nor when the same command is given anew; `forecasts/` appears when all
of them are there. Where rows are exchanged, there is a partition for every million rows, and at least two for each
processor: give
`--partitions` if the cluster may have another size when the command is given anew.

The function behind it is `leapts.integrations.ray.predict_partition(table, model)`: Arrow table in, Arrow table out.
Spark runs it through `mapInArrow`: [examples/spark_forecast.py](../examples/spark_forecast.py), `pip install
'leapts[spark]'`. A model that mixes its series forecasts them together and cannot be spread: fit it with
`mixing.kind = "none"`.

## Search and benchmark on a cluster

    leapts tune sales.csv --horizon 24 --engine ray --address auto --study search.db --out best.toml
    python -m leapts_bench run SUITE --engine ray --address auto

As many trials, or runs, are under way as the cluster has processors. Each is put down when it ends, by the process that
was started: what a lost machine was doing is done again elsewhere, what had ended is not.
"""

_MEASURED = """
## What it costs

Made by `python benchmarks/leapts_bench/scale.py measure` (commit {commit}, torch {torch}); the figures are in
`benchmarks/results/scale.jsonl`. One process with one thread forecasts a partition of {series:,} series of {steps}
steps, look-back {lookback}, horizon {horizon}, hidden size {hidden}; medians of {repeats} runs, in processor time,
because the machine did other things at the same time. Expect a quiet or newer machine to be faster.
"""

_PLAN = """
## What that comes to

A forecast is one series' whole horizon. A machine is taken to have {cores} cores, {memory:.0f} GB and {network:.0f}
Gbit/s, and a day's forecasts to be due within {hours:.0f} hour of the data. *With an exchange*: files cut through
series, so that half of the time goes to bringing their rows together across the network, and all rows are held in the
{shared:.0%} of memory that Ray sets aside for them. It moves them to disk beyond that, which was not measured.
Worked out from the figures above: nothing was run at these sizes, and what Ray or Spark adds of its own is not in
them. Double the machines before you promise anything.
"""

_BOTTLENECKS = """
## The first bottleneck, and what would change

**1 million.** {small} of one core: no cluster. The first bottleneck is not the network of the model but the way to
it: {preparing:.0%} of the time is reading, checking and writing. Starting a process takes {start:.1f} s, as long as
forecasting {break_even:,.0f} series, so few large partitions beat many small ones. Use `leapts predict` on one
machine.

**100 million.** {middle} for the hour if every file holds whole series. If not, {middle_rows} of rows
({middle_bytes} as Parquet) change places each day, and the memory for them is the first bottleneck: {middle_exchange}.
Write the history sorted by series into files of up to two million rows, with no more than the look-back of each
series; then nothing is exchanged.

**10 billion.** {large} for the hour without an exchange, {large_exchange} with one: by now it decides the bill.
Then comes the storage: {large_bytes} read within the hour is {large_rate} a second, and {days} days of forecasts
are {large_kept}. What would change: forecast only series that have new data; keep look-backs as packed float32
arrays instead of rows with names and timestamps, which leaves out the exchange and most of the checking; write
forecasts as float32; split the series among clusters that know nothing of each other, for nothing in a forecast
needs another series.
"""
