"""Command line of the pretraining data.

python -m leapts_pretrain speed
python -m leapts_pretrain picture docs/images/generators.png
"""

import argparse
import time
from pathlib import Path

import numpy as np

from leapts_pretrain.generators import GENERATORS, generate
from leapts_pretrain.picture import draw


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


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(prog="leapts_pretrain", description="The data of pretraining.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("speed", help="measure the generators")
    commands.add_parser("picture", help="draw examples of every generator").add_argument("path", type=Path)
    options = parser.parse_args()
    if options.command == "speed":
        measure_generators()
    if options.command == "picture":
        draw(options.path)


if __name__ == "__main__":
    main()
