"""Measure the cost of forecasting many series, and extrapolate it to a million or ten billion a day.

    python benchmarks/leapts_bench/scale.py measure   measure, and append a line to benchmarks/results/scale.jsonl
    python benchmarks/leapts_bench/scale.py render    write the tables of docs/scale.md from the last line

Times are medians over several runs of one process with one thread. They are processor times, because wall-clock times
are unreliable on a busy machine.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import torch

from leapts import LeapTS
from leapts.integrations.ray import PartitionForecaster
from leapts_bench import results
from leapts_bench.scale_document import write

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "scale.jsonl"
DOCUMENT = ROOT / "docs" / "scale.md"

HORIZON, LOOKBACK, STEPS, HIDDEN = 24, 96, 192, 64
IMPORTS = "import leapts.integrations.ray"
# In a separate process. The peak of getrusage would still be that of its parent.
MEMORY = """
import re, sys
from pathlib import Path
import pyarrow.parquet
from leapts.integrations.ray import PartitionForecaster
peak = lambda: int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
forecaster = PartitionForecaster(sys.argv[1])
forecaster.model
before = peak()
forecaster(pyarrow.parquet.read_table(sys.argv[2]))
print(before, peak())
"""


def measure(series: int, repeats: int) -> results.Line:
    """Measure processor time, memory and bytes of a partition, and the cost of starting a process.

    Args:
        series: Series in the partition.
        repeats: Repetitions of every timing.
    """
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        model, data, out = (Path(folder) / name for name in ("model", "data.parquet", "out.parquet"))
        small = _waves(8)
        LeapTS(
            HORIZON, LOOKBACK, max_steps=2, loss="huber", model={"hidden_size": HIDDEN, "mixing": {"kind": "none"}}
        ).fit(small).save(model)
        pa.parquet.write_table(_waves(series), data, compression="zstd")
        forecaster = PartitionForecaster(str(model))
        table = pa.parquet.read_table(data)
        forecast = forecaster(table)  # reads the model too
        idle, peak = _memory(model, data)
        pa.parquet.write_table(forecast, out, compression="zstd")
        panel, predictor = forecaster.model.read(table), forecaster.model.predictor_
        times = {
            "read": _median(repeats, lambda: pa.parquet.read_table(data)),
            "partition": _median(repeats, lambda: forecaster(table)),
            "model": _median(repeats, lambda: predictor.predict(predictor.windows(panel))),
            "write": _median(repeats, lambda: pa.parquet.write_table(forecast, out, compression="zstd")),
            "load": _median(repeats, lambda: LeapTS.load(model)),
        }
        return {
            "config": {"series": series, "steps": STEPS, "lookback": LOOKBACK, "horizon": HORIZON, "hidden": HIDDEN},
            "seed": 1,
            "repeats": repeats,
            "processor_seconds": {**times, "start": _start(repeats)},
            "bytes": {
                "memory": peak - idle,
                "process": idle,
                "rows": table.nbytes,
                "history": data.stat().st_size,
                "forecast": out.stat().st_size,
                "model": sum(path.stat().st_size for path in model.iterdir()),
            },
            **results.provenance(),
        }


def _waves(series: int) -> pa.Table:
    """Generate noisy daily waves with three decimals."""
    luck = np.random.default_rng(1)
    steps = np.arange(STEPS)
    values = 10 + np.sin(steps / 12 * np.pi) + luck.normal(0, 0.3, (series, STEPS))
    timestamps = np.datetime64("2024-01-01", "us") + steps * np.timedelta64(1, "h")
    names = np.repeat(np.array([f"series-{number:08d}" for number in range(series)]), STEPS)
    return pa.table({"unique_id": names, "ds": np.tile(timestamps, series), "y": values.round(3).reshape(-1)})


def _median(repeats: int, work: Callable[[], object]) -> float:
    """Return the median processor time in seconds."""
    work()
    taken = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return statistics.median(taken)


def _start(repeats: int) -> float:
    """Return the processor time in seconds until a new process can read a model."""
    taken = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", IMPORTS], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(taken)


def _memory(model: Path, data: Path) -> tuple[int, int]:
    """Return the bytes of a process after reading the model, and the maximum while it forecasts."""
    command = [sys.executable, "-c", MEMORY, str(model), str(data)]
    idle, peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(idle), int(peak)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["measure", "render"])
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if options.what == "measure":
        results.append(RESULTS, measure(options.series, options.repeats))
    write(results.read(RESULTS)[-1], DOCUMENT)


if __name__ == "__main__":
    main()
