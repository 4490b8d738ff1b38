"""Command line of pretraining: its data, and the training itself.

python -m leapts_pretrain speed
python -m leapts_pretrain train RUN --bank BANK --steps 100000
python -m leapts_pretrain card
python -m leapts_pretrain picture docs/images/generators.png
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from leapts.datasets.loading import data_folder
from leapts_pretrain.bank import Bank, BankOptions
from leapts_pretrain.build import build
from leapts_pretrain.card import write_card
from leapts_pretrain.generators import GENERATORS, generate
from leapts_pretrain.memory import keep_freed_memory
from leapts_pretrain.picture import draw
from leapts_pretrain.sampler import Sampler
from leapts_pretrain.training import PretrainOptions, export, pretrain


def measure_generators(series: int = 8192, length: int = 1024) -> None:
    """Print microseconds of CPU time for a series of every generator, and series a second of the mixture."""
    for name, entry in GENERATORS.items():
        count = int(series * entry.share)
        start = time.process_time()
        entry.generate(np.random.default_rng(0), count, length)
        print(f"{name:20} {(time.process_time() - start) / count * 1e6:6.0f} us a series of {length}")
    start = time.process_time()
    generate(np.random.default_rng(0), series, length)
    print(f"{'all, by their shares':20} {series / (time.process_time() - start):6.0f} series a second")


def measure_sampler(bank: Bank, batches: int = 20) -> None:
    """Print windows a second of CPU time, after a batch that is not counted."""
    sampler = Sampler(bank)
    sampler.batch(0)
    start = time.process_time()
    for step in range(1, 1 + batches):
        sampler.batch(step)
    count = batches * sampler.options.batch_size
    print(f"{'windows':20} {count / (time.process_time() - start):6.0f} a second")


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(prog="leapts_pretrain", description="Pretraining.")
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="build a bank of series")
    building.add_argument("bank", type=Path)
    building.add_argument("--wheels", type=Path, required=True, help="folder of the wheels that corpus.toml names")
    building.add_argument("--shards", type=int, default=BankOptions.shards)
    building.add_argument("--seed", type=int, default=BankOptions.seed)
    speed = commands.add_parser("speed", help="measure the generators, and the sampler of a bank")
    speed.add_argument("--bank", type=Path)
    training = commands.add_parser("train", help="train, or go on with a run")
    training.add_argument("folder", type=Path, help="folder of the state and the log")
    training.add_argument("--bank", type=Path, required=True)
    training.add_argument("--steps", type=int, required=True, help="steps in all")
    training.add_argument("--decay", type=int, default=0, help="last steps, over which the learning rate falls to zero")
    exporting = commands.add_parser("export", help="write the weights of a run in half precision")
    exporting.add_argument("folder", type=Path)
    exporting.add_argument("--bank", type=Path, required=True)
    exporting.add_argument("--out", type=Path, required=True)
    commands.add_parser("card", help="write the model card and the curve of training into docs/")
    commands.add_parser("picture", help="draw examples of every generator").add_argument("path", type=Path)
    options = parser.parse_args()
    keep_freed_memory()
    if options.command == "build":
        size = BankOptions(shards=options.shards, seed=options.seed)
        bank = build(options.bank, size, data=data_folder(), wheels=options.wheels, report=print)
        print(f"{len(bank.synthetic(0))} shards, {len(bank.synthetic_validation)} of validation")
    if options.command == "speed":
        measure_generators()
        if options.bank:
            measure_sampler(Bank.open(options.bank))
    if options.command == "train":
        torch.set_num_threads(1)
        sampler = Sampler(Bank.open(options.bank))
        pretrain(options.folder, sampler, PretrainOptions(), steps=options.steps, decay=options.decay)
    if options.command == "export":
        export(options.folder, PretrainOptions(), options.bank, options.out)
    if options.command == "card":
        write_card()
    if options.command == "picture":
        draw(options.path)


if __name__ == "__main__":
    main()
