"""Pretrain the universal network: resumable to the bit, for as long as there is time.

Batches, noise and horizons depend on the seed and the step alone. The state (weights, their mean, moments of the
optimizer) is one file, replaced at every validation check; the checks are lines of `log.jsonl` beside it. The learning
rate rises, then stays, so that a run can go on for as long as there is time. A milestone is a copy of its folder that
trains on while the rate falls to zero.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Generator, Tensor

from leapts.config import QUANTILES
from leapts.errors import DataError
from leapts.files import write_file
from leapts.model.context import SEASONAL_NAIVE, Context, View, context_of, simple_forecasts, usual_change
from leapts.model.network import RunOptions
from leapts.model.universal import UniversalConfig, UniversalModel
from leapts.training.losses import pinball_errors
from leapts_pretrain.sampler import Batch, Sampler

STATE, LOG = "state.safetensors", "log.jsonl"
_HORIZONS = (16, 32, 64, 128, 256)  # of a step of training; the shorter ones are drawn more often
_SHARES = (0.3, 0.25, 0.2, 0.15, 0.1)
_MIN_CHANGE = 0.1  # unit of the loss of a window, in standard deviations of its context
_MAX_TARGET = 20.0  # in the same


@dataclass(frozen=True, kw_only=True)
class PretrainOptions:
    """Options of a run; a run resumes with the same ones only."""

    learning_rate: float = 1.5e-3
    warmup: int = 1_000
    weight_decay: float = 0.01
    gradient_clip: float = 1.0
    mean_of_steps: int = 2_000  # over which the running mean of the weights reaches back
    validation_windows: int = 2_048
    seed: int = 0


@dataclass
class Run:
    """The state of a run."""

    model: UniversalModel
    mean: UniversalModel  # the running mean of the weights
    optimizer: torch.optim.AdamW
    step: int = 0
    seconds: float = 0.0  # processor time of training so far

    @classmethod
    def fresh(cls, options: PretrainOptions) -> "Run":
        """Start with weights that depend on the seed alone."""
        torch.manual_seed(options.seed)
        model, mean = (UniversalModel(UniversalConfig(QUANTILES)) for _ in range(2))
        mean.load_state_dict(model.state_dict())
        return cls(model, mean, torch.optim.AdamW(model.parameters(), weight_decay=options.weight_decay, fused=True))

    def save(self, folder: Path, options: PretrainOptions) -> None:
        """Replace the state in a folder, atomically."""
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"mean.{name}": value for name, value in self.mean.state_dict().items()}
        for number, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{name}": value for name, value in moments.items()}
        record = {"step": self.step, "seconds": self.seconds, "options": asdict(options)}
        contiguous = {name: value.contiguous() for name, value in tensors.items()}
        write_file(folder / STATE, save(contiguous, metadata={"record": json.dumps(record)}))

    def restore(self, folder: Path, options: PretrainOptions) -> None:
        """Go on from the state in a folder.

        Raises:
            DataError: When it was saved with other options.
        """
        content = (folder / STATE).read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        record = json.loads(header["__metadata__"]["record"])
        if record["options"] != asdict(options):
            raise DataError(f"{folder / STATE} belongs to a run with the options {record['options']}; use these")
        tensors, moments = load(content), dict[int, dict[str, Tensor]]()
        self.model.load_state_dict({n[6:]: v for n, v in tensors.items() if n.startswith("model.")})
        self.mean.load_state_dict({n[5:]: v for n, v in tensors.items() if n.startswith("mean.")})
        for name, value in tensors.items():
            if name.startswith("optimizer."):
                _, number, moment = name.split(".")
                moments.setdefault(int(number), {})[moment] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        self.step, self.seconds = record["step"], record["seconds"]


def pretrain(
    folder: Path, sampler: Sampler, options: PretrainOptions, *, steps: int, decay: int = 0, check_every: int = 1_000
) -> Run:
    """Train up to a number of steps in all, from the state in a folder if there is one.

    The learning rate falls to zero over the last `decay` steps.
    """
    folder.mkdir(parents=True, exist_ok=True)
    run = Run.fresh(options)
    if (folder / STATE).exists():
        run.restore(folder, options)
    losses: list[float] = []
    while run.step < steps:
        started = time.process_time()
        share = min(1.0, (steps - run.step) / decay) if decay else 1.0
        losses.append(take_step(run, sampler, options, share))
        run.seconds += time.process_time() - started
        if run.step % check_every == 0 or run.step == steps:
            line = {
                "step": run.step,
                "windows": run.step * sampler.options.batch_size,
                "hours": round(run.seconds / 3600, 4),
                "loss": round(float(np.mean(losses)), 5),
                "synthetic": validate(run.mean, sampler, options, real=False),
                "real": validate(run.mean, sampler, options, real=True),
            }
            losses.clear()
            run.save(folder, options)
            with (folder / LOG).open("a") as log:
                log.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)
    return run


def export(folder: Path, options: PretrainOptions, bank: Path, path: Path) -> None:
    """Write the mean of the weights in half precision, with a record of what they were trained on."""
    run = Run.fresh(options)
    run.restore(folder, options)
    sets = json.loads((bank / "manifest.json").read_text())["sets"]
    last = json.loads((folder / LOG).read_text().splitlines()[-1])
    record = {**last, "seed": options.seed, "sets": sorted({one["name"] for one in sets})}
    weights = {name: value.half().contiguous() for name, value in run.mean.state_dict().items()}
    write_file(path, save(weights, metadata={"record": json.dumps(record)}))


def take_step(run: Run, sampler: Sampler, options: PretrainOptions, share_of_rate: float = 1.0) -> float:
    """Take one step of training with a share of the learning rate, and return its loss."""
    rng = np.random.default_rng((options.seed, run.step, 1))
    horizon = int(rng.choice(_HORIZONS, p=_SHARES))
    for group in run.optimizer.param_groups:
        group["lr"] = options.learning_rate * share_of_rate * min(1.0, (run.step + 1) / options.warmup)
    noise = Generator().manual_seed(int(rng.integers(2**62)))
    run.optimizer.zero_grad()
    loss = _losses(run.model, sampler.batch(run.step), horizon, noise).mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(run.model.parameters(), options.gradient_clip)
    run.optimizer.step()
    run.step += 1
    share = 1 / min(run.step, options.mean_of_steps)
    with torch.no_grad():
        for mean, value in zip(run.mean.parameters(), run.model.parameters(), strict=True):
            mean.lerp_(value, share)
    return float(loss.detach())


def validate(model: UniversalModel, sampler: Sampler, options: PretrainOptions, *, real: bool) -> dict[str, float]:
    """Measure the loss on fixed windows, and the error relative to the seasonal naive forecast."""
    batch = sampler.validation(real=real, windows=options.validation_windows)
    totals: dict[str, list[Tensor]] = {"loss": [], "relative": []}
    with torch.inference_mode():
        for part in _split(batch, 512):
            horizon = part.target.shape[1]
            context = _context(part)
            target = _target(part, context)
            known = ~target.isnan()
            forecast = model(context, horizon, RunOptions(None, "dense"))
            totals["loss"].append(_loss_of(forecast.values, target, context))
            median = forecast.values.unflatten(1, (horizon, -1))[..., len(QUANTILES) // 2]
            naive = simple_forecasts(context, horizon)[:, SEASONAL_NAIVE]
            ours, theirs = (
                (torch.where(known, (values - target).abs(), 0.0).sum(1) / known.sum(1).clamp(min=1)) + 1e-3
                for values in (median, naive)
            )
            totals["relative"].append((ours / theirs).log())
    loss, relative = (torch.cat(values).mean().item() for values in totals.values())
    return {"loss": round(loss, 5), "relative": round(float(np.exp(relative)), 5)}


def _losses(model: UniversalModel, batch: Batch, horizon: int, noise: Generator) -> Tensor:
    context = _context(batch)
    target = _target(batch, context)[:, :horizon]
    return _loss_of(model(context, horizon, RunOptions(noise, "dense")).values, target, context)


def _loss_of(forecast: Tensor, target: Tensor, context: Context) -> Tensor:
    """Pinball loss of each window, in units of the usual change over its season."""
    errors = pinball_errors(forecast, target, torch.tensor(QUANTILES)).mean(2).sum(1)
    known = (~target.isnan()).sum(1).clamp(min=1)
    return errors / known / usual_change(context).clamp(min=_MIN_CHANGE)


def _context(batch: Batch) -> Context:
    return context_of(View(torch.from_numpy(batch.context), torch.from_numpy(batch.observed)))


def _target(batch: Batch, context: Context) -> Tensor:
    """Targets in the units of their context; NaN where unknown."""
    target = (torch.from_numpy(batch.target) - context.center) / context.scale
    return target.clamp(-_MAX_TARGET, _MAX_TARGET).masked_fill(torch.from_numpy(batch.target_observed) == 0, torch.nan)


def _split(batch: Batch, size: int) -> Iterator[Batch]:
    for start in range(0, len(batch.context), size):
        yield Batch(*(part[start : start + size] for part in batch))
