"""Build a bank: read the corpus, refuse what overlaps test sets, hold series out, make the first shards."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from leapts_pretrain.bank import M4, Bank, BankOptions, write_manifest, write_real
from leapts_pretrain.corpus import CorpusSet, Series, corpus_sets, read_series
from leapts_pretrain.overlap import fingerprints_of_tests, refuse_by_name, without_overlap

HELD_OUT_OF_M4 = 50  # every so manieth series

Part = list[tuple[CorpusSet, list[Series]]]


def build(folder: Path, options: BankOptions, *, data: Path, wheels: Path, report: Callable[[str], None]) -> Bank:
    """Build a bank in a folder.

    Args:
        folder: Where the bank goes.
        options: Its size.
        data: The folder with the corpus and the test sets; it is needed to compare them.
        wheels: The folder with the wheels of `corpus.toml`.
        report: Called with a line on every set.

    Raises:
        DataError: When a set of the corpus is a test set.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("synthetic-*.npy"):
        stale.unlink()
    tests = fingerprints_of_tests(data)
    train: Part = []
    validation: Part = []
    manifest: list[dict[str, Any]] = []
    for source in corpus_sets():
        refuse_by_name(source)
        found = read_series(source, data=data, wheels=wheels)
        kept = without_overlap(source.name, found, tests)
        taken, held_out = split(source, kept)
        train += [(source, taken)] if taken else []
        validation += [(source, held_out)] if held_out else []
        manifest.append(
            {
                "name": source.name,
                "source": source.file or f"{source.wheel}: {source.member}",
                "licence": source.licence,
                "series": len(taken),
                "values": sum(map(len, taken)),
                "held_out": len(held_out),
                "overlap": len(found) - len(kept),
            }
        )
        report(f"{source.name}: {len(taken)} series, {len(held_out)} held out, {len(found) - len(kept)} overlap")
    write_real(folder, "train", train, options.m4_share)
    write_real(folder, "validation", validation, options.m4_share)
    write_manifest(folder, options, manifest)
    return Bank.open(folder)


def split(source: CorpusSet, series: list[Series]) -> tuple[list[Series], list[Series]]:
    """Split the series of a set into those of training and those of validation."""
    if source.held_out:
        return [], series
    if not source.name.startswith(M4):
        return series, []
    return [one for number, one in enumerate(series) if number % HELD_OUT_OF_M4], series[::HELD_OUT_OF_M4]
