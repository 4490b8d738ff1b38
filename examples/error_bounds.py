"""The error bounds of the paper's appendix, worked out: why scheduling never has the worst bound.

Errors grow by a factor `growth` a step (the Lipschitz constant), and forecasting `length` steps in one go adds
`local_error(length)`, which grows faster than in proportion. Three ways to cover a horizon then have these bounds:

- direct, all at once: the local error of the whole horizon;
- recursive, step by step: each step's error, grown by all the steps after it;
- scheduled: the best of all ways to cut the horizon into leaps, found by dynamic programming, beside the direct one.

The paper writes the last as the infimum over a gate between the direct forecast and a schedule. That is linear in the
gate, so it lies at one of its ends.

Run it:  python examples/error_bounds.py
"""

from collections.abc import Callable
from typing import NamedTuple

LocalError = Callable[[int], float]


class Bounds(NamedTuple):
    """What each way promises, and the schedule behind the third."""

    direct: float
    recursive: float
    scheduled: float
    leaps: tuple[int, ...]  # of the best schedule


def direct_bound(horizon: int, local_error: LocalError) -> float:
    """All steps in one go."""
    return local_error(horizon)


def schedule_bound(leaps: tuple[int, ...], growth: float, local_error: LocalError) -> float:
    """One leap after the other: every leap's own error, grown by the steps that come after it."""
    bound = 0.0
    for length in leaps:
        bound = growth**length * bound + local_error(length)
    return bound


def recursive_bound(horizon: int, growth: float, local_error: LocalError) -> float:
    """One step after the other."""
    return schedule_bound((1,) * horizon, growth, local_error)


def best_schedule(horizon: int, growth: float, local_error: LocalError) -> tuple[int, ...]:
    """The leaps with the lowest bound, by dynamic programming over where the last leap starts.

    The bound up to a step only grows with the bound up to where the last leap starts, so the best way there is part of
    the best way here: `best(t) = min over l of growth ** l * best(t - l) + local_error(l)`.
    """
    best = [0.0]
    last = [0]
    for step in range(1, horizon + 1):
        bounds = [growth**length * best[step - length] + local_error(length) for length in range(1, step + 1)]
        lowest = min(range(step), key=bounds.__getitem__)
        best.append(bounds[lowest])
        last.append(lowest + 1)
    leaps: list[int] = []
    step = horizon
    while step:
        leaps.append(last[step])
        step -= last[step]
    return tuple(reversed(leaps))


def bounds(horizon: int, growth: float, local_error: LocalError) -> Bounds:
    """All three bounds."""
    leaps = best_schedule(horizon, growth, local_error)
    direct = direct_bound(horizon, local_error)
    return Bounds(
        direct=direct,
        recursive=recursive_bound(horizon, growth, local_error),
        scheduled=min(direct, schedule_bound(leaps, growth, local_error)),
        leaps=leaps,
    )


def main() -> None:
    """A table of the bounds over 48 steps, for a local error that outgrows the length of the leap."""
    print(f"{'growth':>7} {'direct':>8} {'recursive':>10} {'scheduled':>10}  leaps")
    for growth in (1.01, 1.02, 1.03, 1.05, 1.1):
        found = bounds(48, growth, lambda length: 0.01 * length * (1 + (length / 30) ** 2))
        leaps = " ".join(map(str, found.leaps))
        print(f"{growth:7.2f} {found.direct:8.3f} {found.recursive:10.3f} {found.scheduled:10.3f}  {leaps}")


if __name__ == "__main__":
    main()
