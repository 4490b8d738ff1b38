"""Damage to a model folder: every bit of every byte turned, and every file cut at every length."""

from pathlib import Path

from leapts import LeapTS, ModelFileError
from leapts.persistence.save import CONFIG, WEIGHTS
from leapts_qa.outcome import Outcome
from leapts_qa.samples import forecaster, waves

# The card is for people to read and change; a model is the other two files.
UNITS = tuple(f"{name} {how}" for name in (CONFIG, WEIGHTS) for how in (*(f"bit {bit}" for bit in range(8)), "cut"))


def run(unit: str, folder: Path, *, stride: int = 1) -> Outcome:
    """Damage one file in one way, at every place or at every so many.

    Args:
        unit: Which file, and how.
        folder: To work in.
        stride: Bytes from one place to the next.
    """
    forecaster().fit(waves()).save(folder / "model")
    name, _, how = unit.partition(" ")
    file = folder / "model" / name
    original = file.read_bytes()
    outcome = Outcome()
    for place in range(0, len(original), stride):
        file.write_bytes(damaged(original, place, how))
        try:
            LeapTS.load(folder / "model")
            outcome.fail(f"{unit} at {place}: not noticed")
        except ModelFileError:
            outcome.count("detected")
        except Exception as error:
            outcome.fail(f"{unit} at {place}: {error!r}")
    return outcome


def damaged(original: bytes, place: int, how: str) -> bytes:
    """The content with one bit turned, or cut off at the place."""
    if how == "cut":
        return original[:place]
    turned = bytearray(original)
    turned[place] ^= 1 << int(how.removeprefix("bit "))
    return bytes(turned)
