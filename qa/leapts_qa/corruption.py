"""Corrupted model folders: every bit of every byte flipped, and every file truncated at every length."""

from pathlib import Path

from leapts import LeapTS, ModelFileError
from leapts.persistence.save import CONFIG, WEIGHTS
from leapts_qa.outcome import Outcome
from leapts_qa.samples import forecaster, waves

# Users may edit the model card; the model is the other two files.
UNITS = tuple(f"{name} {how}" for name in (CONFIG, WEIGHTS) for how in (*(f"bit {bit}" for bit in range(8)), "cut"))


def run(unit: str, folder: Path, *, stride: int = 1) -> Outcome:
    """Corrupt one file in one way, at every position or at every few bytes.

    Args:
        unit: The file and the kind of corruption.
        folder: A folder to work in.
        stride: Bytes between positions.
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
    """Return the content with one bit flipped, or truncated at the position."""
    if how == "cut":
        return original[:place]
    turned = bytearray(original)
    turned[place] ^= 1 << int(how.removeprefix("bit "))
    return bytes(turned)
