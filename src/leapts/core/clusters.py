"""Grouping variates that behave alike, so that each group can have its own dynamics."""

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

_RESTARTS = 8
_SWEEPS = 100


def cluster_variates(
    series: Float[Tensor, "variates time"], clusters: int, generator: Generator
) -> Int[Tensor, " variates"]:
    """The group of each variate, by k-means on the standardised series in Euclidean distance.

    Starts from k-means++ seeds and keeps the best of several restarts. Groups are numbered in order of first
    appearance, so equal partitions have equal numbers.
    """
    series = series.double()
    centered = series - series.mean(1, keepdim=True)
    standard = centered / centered.square().mean(1, keepdim=True).sqrt().clamp(min=1e-12)
    runs = [_lloyd(standard, _spread_seeds(standard, clusters, generator)) for _ in range(_RESTARTS)]
    best, _ = min(runs, key=lambda run: run[1])
    return _numbered_by_appearance(best)


def _spread_seeds(points: Tensor, clusters: int, generator: Generator) -> Tensor:
    """k-means++: each further seed is drawn with probability proportional to its squared distance from the others."""
    chosen = [int(torch.randint(len(points), (1,), generator=generator))]
    for _ in range(clusters - 1):
        distance = torch.cdist(points, points[chosen]).min(1).values.square()
        distance[chosen] = 0
        if distance.sum() == 0:  # fewer distinct points than clusters: any unused point will do
            distance = torch.ones_like(distance).index_fill_(0, torch.tensor(chosen), 0)
        chosen.append(int(torch.multinomial(distance, 1, generator=generator)))
    return points[chosen].clone()


def _lloyd(points: Tensor, centers: Tensor) -> tuple[Tensor, float]:
    """Assign and average until nothing moves; returns the assignment and its total squared distance."""
    assignment = torch.full((len(points),), -1)
    for _ in range(_SWEEPS):
        distance = torch.cdist(points, centers)
        nearest = distance.argmin(1)
        if torch.equal(nearest, assignment):
            break
        assignment = nearest
        counts = torch.bincount(assignment, minlength=len(centers)).unsqueeze(1)
        sums = torch.zeros_like(centers).index_add_(0, assignment, points)
        # A center that lost all its points stays where it was.
        centers = torch.where(counts > 0, sums / counts.clamp(min=1), centers)
    inertia = (points - centers[assignment]).square().sum()
    return assignment, float(inertia)


def _numbered_by_appearance(assignment: Tensor) -> Tensor:
    numbers: dict[int, int] = {}
    return torch.tensor([numbers.setdefault(group, len(numbers)) for group in assignment.tolist()])
