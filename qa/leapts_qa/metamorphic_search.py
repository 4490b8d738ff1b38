"""Examples made up by hypothesis, which shrinks one that breaks a law to the smallest that does."""

from collections.abc import Callable, Iterable

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from leapts_qa.metamorphic import Example
from leapts_qa.outcome import Outcome


def tried(
    check: Callable[[Example], float],
    laws: Iterable[str],
    freqs: Iterable[str],
    *,
    shortest: int,
    examples: int,
    seed: int,
) -> Outcome:
    """Try examples until one fails, or so many did not.

    Args:
        check: Raises for an example that breaks its law; else says how far off it was.
        laws: To choose from.
        freqs: Likewise.
        shortest: The fewest steps of a series.
        examples: How many.
        seed: The same seed, the same examples.
    """
    outcome = Outcome()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(
        st.builds(
            Example,
            law=st.sampled_from(list(laws)),
            freq=st.sampled_from(list(freqs)),
            lengths=st.lists(st.integers(shortest, 40), min_size=1, max_size=4).map(tuple),
            seed=st.integers(0, 2**32 - 1),
        )
    )
    def every(example: Example) -> None:
        error = check(example)
        outcome.count(example.law)
        outcome.most("millionths of a mean absolute deviation error", error * 1e6)

    try:
        every()
    except Exception as error:
        outcome.fail(" ".join([str(error), *getattr(error, "__notes__", [])]))
    return outcome
