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
        ["series per second and core, from file to file", f"{1 / costs.seconds:,.0f}"],
        ["share of the network in that time", f"{costs.model / costs.seconds:.0%}"],
        ["share of validation, windows and output frames",
         f"{(costs.forecast - costs.model) / costs.seconds:.0%}"],
        ["share of reading and writing Parquet", f"{(costs.read + costs.write) / costs.seconds:.0%}"],
        ["start of a process (imports and model), seconds of one core", f"{costs.start:.1f}"],
        ["memory of a process before its first partition", _bytes(costs.process)],
        ["memory per series of the current partition", _bytes(costs.memory)],
        ["history as rows in memory, per series", _bytes(costs.rows)],
        ["history on disk, per series", _bytes(costs.history)],
        ["forecast on disk, per series", _bytes(costs.output)],
    ]  # fmt: skip
    return table(["quantity", "value"], rows)


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
    headings = ["forecasts per day", "time of one core", "machines", "machines, with a shuffle", "memory per machine",
                "history read", "forecasts written", "reading per machine"]  # fmt: skip
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
# Clusters: distributed training and forecasting

## Train with several processes or machines

    torchrun --nproc-per-node 2 -m leapts fit sales.csv --horizon 24 --out model/ --checkpoint run/
    torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint HOST:29500 -m leapts fit ...

This is data parallelism: every process reads the same data and computes its share of each batch; the gradients are
added, weighted by the shares. `batch_size` is the size of the whole batch, and the weights equal those of a single
process up to the order of additions. Only the first process writes files and prints. If a process is lost, the
others exit with a one-line error; the same command with `--resume` continues from the last checkpoint, with any
number of processes.

Processes on one machine communicate over the loopback interface, unless `GLOO_SOCKET_IFNAME` names another.
torchrun itself listens on every network interface while it runs; use a firewall to keep others out.

In a program, `LeapTS.fit` joins a process group that is already initialized by Ray Train
([examples/ray_training.py](../examples/ray_training.py)), Spark's TorchDistributor or
`torch.distributed.init_process_group("gloo")`. All processes call `fit` with the same arguments, and all get the
same model. `fit(workers=leapts.training.distributed.SingleProcess())` ignores the process group.

## Forecast on a cluster

    leapts predict model/ history/ --engine ray -o forecasts/              pip install 'leapts[ray]'
    leapts predict model/ history/ --engine ray --address auto -o forecasts/

Without `--address`, Ray runs on this machine only and accepts no connections from others.

`history/` is a folder of Parquet files in the long layout, in any order; `forecasts/` becomes such a folder too.
All machines must see both folders and the model under the same paths.

- Each file is a partition if no series is in two files and no file has more than two million rows. The statistics
  in the files decide: the ranges of series names must not overlap.
- Otherwise, or with `--partitions`, rows are exchanged between machines (a shuffle): a hash of the series name
  assigns each row to a partition, so that every series is complete. There is a partition for every million rows,
  and at least two for each processor. Give `--partitions` if you may repeat the command on a cluster of another
  size.
- Each worker reads the model once and then forecasts one partition after the other. A partition that is written is
  not forecast again, neither after the loss of a machine nor when you repeat the command. `forecasts/` appears when
  all partitions are complete.

The function behind it is `leapts.integrations.ray.predict_partition(table, model)`, from Arrow table to Arrow
table. Spark runs it through `mapInArrow`: [examples/spark_forecast.py](../examples/spark_forecast.py), `pip install
'leapts[spark]'`. A multivariate model forecasts all its series together and cannot be distributed this way; fit it
with `mixing.kind = "none"`.

## Tune and benchmark on a cluster

    leapts tune sales.csv --horizon 24 --engine ray --address auto --study search.db --out best.toml
    python -m leapts_bench run SUITE --engine ray --address auto

As many trials or runs are in progress as the cluster has processors. The process you started stores each when it
ends. If a machine is lost, only its unfinished trials or runs are repeated elsewhere.
"""

_MEASURED = """
## Measured cost

Measured by `python benchmarks/leapts_bench/scale.py measure` (commit {commit}, torch {torch}); the figures are in
`benchmarks/results/scale.jsonl`. One process with one thread forecasts a partition of {series:,} series of {steps}
steps, with look-back {lookback}, horizon {horizon} and hidden size {hidden}. The figures are medians of {repeats}
runs, in processor time, because the machine was shared. A quiet or newer machine is faster.
"""

_PLAN = """
## Capacity plan

One forecast is the whole horizon of one series. The plan assumes machines with {cores} cores, {memory:.0f} GB and
{network:.0f} Gbit/s, and {hours:.0f} hour for the forecasts of a day. *With a shuffle* applies when series are
spread over several files: half of the time is then spent on exchanging rows, and all rows are held in the
{shared:.0%} of memory that Ray reserves for them. Ray moves further rows to disk, which was not measured. The plan
is computed from the figures above. Nothing was run at these sizes, and the overhead of Ray or Spark is not
included: double the number of machines before you rely on it.
"""

_BOTTLENECKS = """
## Bottlenecks

**1 million.** {small} of one core: no cluster is needed. The bottleneck is not the network but everything around
it: {preparing:.0%} of the time is reading, validating and writing. Starting a process takes {start:.1f} s, as long
as forecasting {break_even:,.0f} series, so a few large partitions are better than many small ones. Use `leapts
predict` on one machine.

**100 million.** {middle} for the hour if every file holds complete series. Otherwise {middle_rows} of rows
({middle_bytes} as Parquet) are exchanged each day, and memory is the bottleneck: {middle_exchange}. To avoid the
shuffle, write the history sorted by series, in files of up to two million rows, with only the look-back of each series.

**10 billion.** {large} for the hour without a shuffle, {large_exchange} with one. The next bottleneck is storage:
{large_bytes} read within the hour is {large_rate} per second, and {days} days of forecasts take {large_kept}. At
this size it would pay to forecast only series that have new data; to store look-backs as packed float32 arrays
instead of rows with names and timestamps, which removes the shuffle and most of the validation; to write forecasts
as float32; and to divide the series among independent clusters, because no forecast needs another series. """
