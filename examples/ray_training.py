"""Data-parallel training with Ray Train: its workers form the process group, and `fit` joins it.

python examples/ray_training.py DATA MODEL --horizon 24 [--workers 2]
"""

import argparse
from pathlib import Path
from typing import Any

import ray.train
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer

from leapts import LeapTS


def fit(settings: dict[str, Any]) -> None:
    """What every worker does: fit alike; the first saves.

    Args:
        settings: Of the forecaster under `options`, and the places of `data` and `model`.
    """
    model = LeapTS(**settings["options"]).fit(settings["data"])
    if ray.train.get_context().get_world_rank() == 0:
        model.save(settings["model"])


def train(data: Path, model: Path, *, workers: int, options: dict[str, Any], storage: Path) -> None:
    """Fit on a Ray cluster and save the model.

    Args:
        data: Where every worker finds the data.
        model: Where the first worker writes the model.
        workers: How many processes.
        options: Of `LeapTS`.
        storage: Where Ray keeps notes of its own.
    """
    trainer = TorchTrainer(
        fit,
        train_loop_config={"options": options, "data": str(data), "model": str(model)},
        scaling_config=ScalingConfig(num_workers=workers),
        torch_config=TorchConfig(backend="gloo"),
        run_config=RunConfig(storage_path=str(storage)),
    )
    trainer.fit()


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--horizon", type=int, required=True)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    model = options.model.absolute()
    train(options.data.absolute(), model, workers=options.workers, options={"h": options.horizon}, storage=model.parent)


if __name__ == "__main__":
    main()
