"""Time of the forward pass relative to its own matrix products: ratios in one run, one thread.

    python -m leapts_bench.speed.matrix_products [--rounds 15] [--record]

With `--record`, the measurements are added to the results, and the decision page on speed is rendered.

Every matrix product of the sparse forward pass is recorded with its operands and timed alone; the ratio of both times
is the cost of everything else. The same ratio is given for the selected output heads alone. A training step is compared
with the dense forward pass, and DLinear of the same size serves as a reference. Each optimization of the sparse path is
also left out in turn. Candidates take turns, and the fastest round of each counts: a busy machine only adds time.
"""

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from leapts.config import ModelConfig
from leapts.files import write_file
from leapts.model import LeapTSModel, inference, rollout
from leapts.model.build import build_model
from leapts.model.network import RunOptions
from leapts_bench import results

LOOKBACK, HORIZON, WINDOWS = 96, 60, 32
CONFIG = ModelConfig(h=HORIZON, input_size=LOOKBACK, hidden_size=64, control_size=16)
LIMITS = {7: 3.0, 321: 1.7}
ALL_HEADS = "all heads at once for few rows"
CHOSEN_PRODUCTS = "products of the chosen heads"
T = TypeVar("T")

_ROOT = Path(__file__).parents[3]
RESULTS = _ROOT / "benchmarks" / "results" / "core_speed.jsonl"
PAGE = _ROOT / "docs" / "decisions" / "model-speed.md"
TRAINING_LIMIT = 4.0
# Names of optimizations in recorded runs, and their current names.
_RENAMED = {
    "a light view kept between passes": "an inference copy kept between forecasts",
    "light views": "inference copies",
    "hard swish instead of GELU": "hardswish instead of GELU",
}


class DLinear(nn.Module):
    """The reference: a moving average splits trend and season, and one linear layer forecasts each."""

    def __init__(self, lookback: int, horizon: int, kernel: int = 25) -> None:
        super().__init__()
        self.kernel = kernel
        self.trend, self.season = nn.Linear(lookback, horizon), nn.Linear(lookback, horizon)

    def forward(self, history: Tensor) -> Tensor:
        """Forecast every series of every window."""
        edge = self.kernel // 2
        trend = F.avg_pool1d(F.pad(history, (edge, edge), mode="replicate"), self.kernel, stride=1)
        forecast: Tensor = self.trend(trend) + self.season(history - trend)
        return forecast


# Operations that are matrix products, and the index of their left factor.
_FACTOR: dict[Callable[..., Tensor], int] = {
    torch.ops.aten.linear.default: 0,
    torch.ops.aten.addmm.default: 1,
    torch.ops.aten.mm.default: 0,
    torch.ops.aten.bmm.default: 0,
}


@dataclass
class Products:
    """The matrix products of one forward pass."""

    calls: list[tuple[Callable[..., Tensor], tuple[Tensor, ...], Tensor]]

    def replay(self) -> None:
        """Compute all products and nothing else."""
        for product, operands, _ in self.calls:
            product(*operands)

    @property
    def operations(self) -> int:
        """Count floating-point operations: a multiplication and an addition for each pair of values."""
        return sum(2 * operands[_FACTOR[product]].numel() * out.shape[-1] for product, operands, out in self.calls)


class _ProductRecorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products = Products([])

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        out = func(*args, **(kwargs or {}))
        if func in _FACTOR:
            # Operands keep their strides: a weight is used transposed, and that is part of a product's cost.
            self.products.calls.append((func, args, out))
        return out


def products_of(model: LeapTSModel, history: Tensor) -> Products:
    """Record the products of the sparse forward pass."""
    recorder = _ProductRecorder()
    with recorder:
        model.forecast(history)
    return recorder.products


def seconds(action: Callable[[], object], repeats: int) -> float:
    """Return the mean processor time of a call, without that of other processes."""
    begin = time.process_time()
    for _ in range(repeats):
        action()
    return (time.process_time() - begin) / repeats


def training_step(model: LeapTSModel, history: Tensor) -> Callable[[], None]:
    """Take a training step: forward, backward and optimizer."""
    target = torch.randn(history.shape[0], history.shape[1], HORIZON)
    generator = torch.Generator().manual_seed(0)
    # A learning rate of zero keeps the schedule, and so the cost, the same in every step.
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        F.huber_loss(model(history, generator), target, delta=0.5).backward()
        optimizer.step()

    return step


def peak_rate(size: int = 2000) -> float:
    """Measure floating-point operations per second of a large product, with all threads, by wall-clock time."""
    a = torch.randn(size, size)
    out = torch.empty_like(a)
    fastest = math.inf
    for _ in range(8):
        begin = time.perf_counter()
        torch.mm(a, a, out=out)
        fastest = min(fastest, time.perf_counter() - begin)
    return 2 * size**3 / fastest


def with_another(place: object, name: str, value: object, action: Callable[[], T]) -> Callable[[], T]:
    """Run an action while an attribute of a module is replaced."""

    def changed() -> T:
        kept = getattr(place, name)
        setattr(place, name, value)
        try:
            return action()
        finally:
            setattr(place, name, kept)

    return changed


def tricks(model: LeapTSModel, history: Tensor) -> dict[str, Callable[[], object]]:
    """Return the sparse forward pass with each optimization left out."""
    fast = model.snapshot()

    def forward() -> object:
        return fast.forecast(history)

    return {
        "an inference copy kept between forecasts": lambda: model.forecast(history),
        "inference copies": torch.inference_mode()(lambda: model.run(history, RunOptions())),
        ALL_HEADS: with_another(rollout, "_MIN_ROWS_TO_SORT", 0, forward),
        "hardswish instead of GELU": with_another(inference, "hardswish", F.gelu, forward),
    }


def measure(variates: int, rounds: int) -> dict[str, Any]:
    """Measure one size."""
    torch.manual_seed(0)
    history = torch.randn(variates, WINDOWS, LOOKBACK).cumsum(2).transpose(0, 1)
    model, dlinear = build_model(CONFIG, seed=0), DLinear(LOOKBACK, HORIZON)
    fast = model.snapshot()
    products = products_of(fast, history)
    fewest = with_another(rollout, "_MIN_ROWS_TO_SORT", 0, lambda: products_of(fast, history))()
    left_out = tricks(model, history)
    generator = torch.Generator().manual_seed(0)
    candidates: dict[str, Callable[[], object]] = {
        "sparse forward": lambda: fast.forecast(history),
        "its bare products": torch.inference_mode()(products.replay),
        CHOSEN_PRODUCTS: torch.inference_mode()(fewest.replay),
        "DLinear forward": torch.inference_mode()(lambda: dlinear(history)),
        "dense forward": lambda: model(history, generator),
        "training step": training_step(model, history),
    }
    candidates |= left_out
    repeats = max(1, 4000 // (WINDOWS * variates))
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds + 1):
        for name, action in candidates.items():
            times[name].append(seconds(action, repeats))
    trace = model.forecast(history, record="leaps").trace
    assert trace is not None
    fastest = {name: min(values[1:]) for name, values in times.items()}  # the first round warms up

    def ratio(name: str, base: str) -> float:
        return fastest[name] / fastest[base]

    return {
        "variates": variates,
        "windows": WINDOWS,
        "leaps": trace.leaps.double().mean().item(),
        "operations": products.operations,
        "seconds": {name: value for name, value in fastest.items() if name not in left_out},
        "sparse_over_products": ratio("sparse forward", "its bare products"),
        "training_over_dense": ratio("training step", "dense forward"),
        "sparse_over_dlinear": ratio("sparse forward", "DLinear forward"),
        "chosen_head_over_products": ratio(ALL_HEADS, CHOSEN_PRODUCTS),
        "slower_without": {trick: ratio(trick, "sparse forward") for trick in left_out},
    }


def show(figures: dict[str, Any]) -> None:
    """Print the figures of one size."""
    variates, times, operations = figures["variates"], figures["seconds"], figures["operations"]
    print(f"\n{WINDOWS} windows x {variates} variates, {figures['leaps']:.2f} leaps a row")
    for name, value in times.items():
        print(f"  {name:28} {value * 1e3:9.3f} ms")
    rate, bare = (operations / times[name] / 1e9 for name in ("sparse forward", "its bare products"))
    print(f"  {operations / 1e6:.1f} MFLOP: {rate:.1f} GFLOP/s in the forward, {bare:.1f} in its bare products")
    for text, key, limit in [
        ("sparse forward / its bare products", "sparse_over_products", LIMITS[variates]),
        ("training step / dense forward", "training_over_dense", TRAINING_LIMIT),
    ]:
        verdict = "reached" if figures[key] <= limit else "MISSED"
        print(f"  {text:36} {figures[key]:5.2f}  (at most {limit}: {verdict})")
    print(f"  {'sparse forward / DLinear forward':36} {figures['sparse_over_dlinear']:5.2f}")
    print(f"  {'forward / products, chosen head only':36} {figures['chosen_head_over_products']:5.2f}")
    for trick, factor in figures["slower_without"].items():
        print(f"  without {trick:36} x {factor:4.2f}")


def rendered(page: str, lines: list[results.Line]) -> str:
    """Render the page with the figures of every run."""
    # Runs before the inference copy measured other optimizations; their figures are in the file.
    runs = [line for line in lines if "chosen_head_over_products" in line["sizes"][0]]
    ratios = ["| measured at | size | forward / products | chosen head alone | step / dense | forward / DLinear |"]
    ratios += ["|---|---|---|---|---|---|"]
    for line in runs:
        for size in line["sizes"]:
            keys = ("sparse_over_products", "chosen_head_over_products", "training_over_dense", "sparse_over_dlinear")
            figures = " | ".join(f"{size[key]:.2f}" for key in keys)
            ratios.append(f"| `{line['commit'][:7]}` | {size['windows']} x {size['variates']} | {figures} |")
    few, many = runs[-1]["sizes"]
    tricks = ["| trick | 32 x 7 | 32 x 321 |", "|---|---|---|"]
    tricks += [
        f"| {_RENAMED.get(trick, trick)} | {factor:.2f} | {many['slower_without'][trick]:.2f} |"
        for trick, factor in few["slower_without"].items()
    ]
    return _between(_between(page, "ratios", ratios), "tricks", tricks)


def _between(page: str, name: str, table: list[str]) -> str:
    """Replace the table between the two markers of its name."""
    before, _, rest = page.partition(f"<!-- {name} -->\n")
    _, _, after = rest.partition(f"<!-- end of {name} -->\n")
    return "".join([before, f"<!-- {name} -->\n", *(f"{row}\n" for row in table), f"<!-- end of {name} -->\n", after])


def main() -> None:
    """Measure both sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="alternations between the candidates")
    parser.add_argument("--record", action="store_true", help="keep the figures, and render the page that shows them")
    options = parser.parse_args()
    torch.set_num_threads(1)
    peak = peak_rate()
    print(f"one thread; a large product reaches {peak / 1e9:.1f} GFLOP/s")
    sizes = []
    for variates in LIMITS:
        sizes.append(measure(variates, options.rounds))
        show(sizes[-1])
    if options.record:
        figures = {"config": CONFIG.model_dump(mode="json"), "seed": 0, "rounds": options.rounds}
        results.append(RESULTS, {**results.provenance(), **figures, "peak_flops": peak, "sizes": sizes})
        write_file(PAGE, rendered(PAGE.read_text(encoding="utf-8"), results.read(RESULTS)).encode())


if __name__ == "__main__":
    main()
