"""What the tests noticed, from the results file, and what was made of the rest."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from leapts_bench import results
from leapts_bench.markdown import table
from leapts_bench.mutation.mutants import mutants_of
from leapts_bench.mutation.targets import TARGETS

FILE = "mutation.jsonl"
JUDGED = Path(__file__).with_name("judged.toml")

_LAW = """\
## Tests of the tests

Small faults are put into the code one at a time: a comparison, an operator or `and` and `or` swapped, a number moved, a
truth value or a condition turned around, nothing returned, a statement left out. Each is run against the tests of its
module (`benchmarks/leapts_bench/mutation/targets.py`), of which one has to fail. `make mutation` tries what is not
tried, or was not noticed last time; each fault is a line of `benchmarks/results/mutation.jsonl`. Those that nothing
noticed count against the score even where the code does the same with them."""


def section(lines: Sequence[results.Line]) -> str:
    """For the page: the score of each module, and all that was not noticed, judged."""
    last = {(line["module"], line["key"]): line for line in lines}
    rows, missed = [], []
    tried = noticed = possible = 0
    for target in TARGETS:
        keys = [(target.module, mutant.key) for mutant in mutants_of(target.source.read_text())]
        own = [last[key] for key in keys if key in last]
        caught = sum(line["noticed"] for line in own)
        missed += [line for line in own if not line["noticed"]]
        rows.append([f"`{target.module}`", f"{len(own)} of {len(keys)}", f"{caught}", _share(caught, len(own))])
        tried, noticed, possible = tried + len(own), noticed + caught, possible + len(keys)
    rows.append(["all", f"{tried:,} of {possible:,}", f"{noticed:,}", _share(noticed, tried)])
    parts = [_LAW, table(["module", "faults tried", "noticed", "score"], rows)]
    if missed:
        judged = _judgements(tomllib.loads(JUDGED.read_text()))
        parts.append("Not noticed:\n\n" + "\n".join(_line(line, judged) for line in missed))
    return "\n\n".join(parts)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "not run yet"


def _judgements(content: Mapping[str, list[dict[str, str]]]) -> dict[tuple[str, str, str], str]:
    return {(one["module"], one["place"], one["what"]): one["judgement"] for one in content.get("fault", [])}


def _line(line: results.Line, judged: Mapping[tuple[str, str, str], str]) -> str:
    judgement = judged.get((line["module"], line["place"], line["what"]), "not judged")
    by = "" if line["by"] == "survived" else f" ({line['by']})"
    return f"- `{line['module']}`, `{line['place']}`: {line['what']}{by}: {judgement}"
