"""Peak memory of reading and fitting 321 series of 26,304 steps, without the imports.

    python -m leapts_bench.speed.fit_memory [--series 321] [--steps 26304] [--out benchmarks/results/fit_memory.jsonl]

The data are generated in the shape of the Electricity data set. The limit is 1.5 GB.
"""

import argparse
import resource
from pathlib import Path

import numpy as np
import pandas as pd

from leapts.forecasting import LeapTS
from leapts_bench import results

LIMIT = 1.5e9


def synthetic_load(series: int, steps: int) -> pd.DataFrame:
    """Generate a wide frame of hourly loads with a daily season."""
    rng = np.random.default_rng(0)
    hours = np.arange(steps)
    rhythm = np.sin(2 * np.pi * hours / 24)
    columns = {f"client{k}": 100 + 20 * rng.random() * rhythm + rng.normal(size=steps) for k in range(series)}
    return pd.DataFrame({"date": pd.date_range("2016-07-01", periods=steps, freq="h"), **columns})


def peak() -> int:
    """Return the peak memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Measure once and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=321)
    parser.add_argument("--steps", type=int, default=26_304)
    parser.add_argument("--max-steps", type=int, default=60, help="steps of training")
    parser.add_argument("--out", type=Path, help="append the figures to this file, as one JSON line")
    options = parser.parse_args()
    LeapTS(1)  # everything is imported by now
    imports = peak()
    frame = synthetic_load(options.series, options.steps)
    data = int(frame.memory_usage(index=True).sum())
    model = LeapTS(h=24, input_size=96, max_steps=options.max_steps).fit(frame)
    model.predict(level=[80])
    above = peak() - imports
    verdict = "within" if above <= LIMIT else "ABOVE"
    print(f"frame {data / 1e6:.0f} MB, imports {imports / 1e6:.0f} MB")
    print(f"peak above the imports {above / 1e6:.0f} MB: {verdict} 1.5 GB")
    if options.out:
        figures = {
            "series": options.series,
            "steps": options.steps,
            "training_steps": options.max_steps,
            "model": model.predictor_.config.model_dump(mode="json"),
            "seed": model.random_seed,
            "frame_bytes": data,
            "imports_bytes": imports,
            "peak_above_imports_bytes": above,
        }
        results.append(options.out, {**results.provenance(), **figures})


if __name__ == "__main__":
    main()
