"""K-means clustering of series, so that each cluster can have its own vector field."""

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

_RESTARTS = 8
_MAX_ITERATIONS = 100


def cluster_series(series: Float[Tensor, "series time"], clusters: int, generator: Generator) -> Int[Tensor, " series"]:
    """Assign every series to a cluster by k-means on the standardized values.

    Starts from k-means++ centers and keeps the best of several restarts. Clusters are numbered in order of first
    appearance, so that equal partitions have equal numbers.
    """
    series = series.double()
    centered = series - series.mean(1, keepdim=True)
    standard = centered / centered.square().mean(1, keepdim=True).sqrt().clamp(min=1e-12)
    runs = [_lloyd(standard, _initial_centers(standard, clusters, generator)) for _ in range(_RESTARTS)]
    best, _ = min(runs, key=lambda run: run[1])
    numbers: dict[int, int] = {}
    return torch.tensor([numbers.setdefault(cluster, len(numbers)) for cluster in best.tolist()])


def _initial_centers(points: Tensor, clusters: int, generator: Generator) -> Tensor:
    """Draw k-means++ centers: in proportion to the squared distance from the centers before."""
    chosen = [int(torch.randint(len(points), (1,), generator=generator))]
    for _ in range(clusters - 1):
        distance = torch.cdist(points, points[chosen]).min(1).values.square()
        distance[chosen] = 0
        if distance.sum() == 0:  # fewer distinct points than clusters: any unused point will do
            distance = torch.ones_like(distance).index_fill_(0, torch.tensor(chosen), 0)
        chosen.append(int(torch.multinomial(distance, 1, generator=generator)))
    return points[chosen].clone()


def _lloyd(points: Tensor, centers: Tensor) -> tuple[Tensor, float]:
    """Iterate to a fixed point; return the assignment and its total squared distance."""
    assignment = torch.full((len(points),), -1)
    for _ in range(_MAX_ITERATIONS):
        nearest = torch.cdist(points, centers).argmin(1)
        if torch.equal(nearest, assignment):
            break
        assignment = nearest
        counts = torch.bincount(assignment, minlength=len(centers)).unsqueeze(1)
        sums = torch.zeros_like(centers).index_add_(0, assignment, points)
        # A center without points stays where it was.
        centers = torch.where(counts > 0, sums / counts.clamp(min=1), centers)
    return assignment, float((points - centers[assignment]).square().sum())
