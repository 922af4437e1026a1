"""Toy problems drawn as the papers describe them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from samewise._typing import Array
from samewise.datasets._parameter_checks import check_count, check_real

Labels = NDArray[np.int64]

_TWO = """
.##########.
.##########.
.........##.
.........##.
.........##.
.##########.
.##########.
.##.........
.##.........
.##.........
.##########.
.##########.
"""


def make_zebra_stripes(
    n_samples: int = 2000,
    *,
    n_classes: int = 2,
    n_stripes: int = 20,
    height: float = 50.0,
    offset: float = 200.0,
    noise: float = 0.1,
    random_state: Any = None,
) -> tuple[Array, Labels]:
    """Make vertical stripes of alternating class, in two sets far apart.

    Stripe s of a set lies at horizontal place s (one unit from the next) and belongs to class
    ``s mod n_classes``; the second set repeats the first, moved right by `offset`. Within a class
    the variance is far larger horizontally than vertically, yet the neighbors that share the
    class are the vertical ones. Methods that shrink all distances within a class therefore make
    nearest neighbors worse here, and those that look at near neighbors make them better.

    Parameters
    ----------
    n_samples : int, default=2000
        Number of points, spread evenly over the stripes.
    n_classes : int, default=2
        Number of classes.
    n_stripes : int, default=20
        Stripes of each set, at least `n_classes`.
    height : float, default=50.0
        Length of a stripe, over which its points are uniform.
    offset : float, default=200.0
        Horizontal distance between the two sets.
    noise : float, default=0.1
        Standard deviation of a point about the middle of its stripe.
    random_state : int, RandomState instance or None, default=None
        Seed for reproducible points.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Horizontal and vertical place.
    y : int64 ndarray of shape (n_samples,)
        Class of each point.

    References
    ----------
    Weinberger and Saul, "Distance metric learning for large margin nearest neighbor
    classification", §3.3 and Figure 2 (which has n = 2000 and two classes).

    Examples
    --------
    >>> from samewise.datasets import make_zebra_stripes
    >>> X, y = make_zebra_stripes(random_state=0)
    >>> X.shape, np.bincount(y).tolist()
    ((2000, 2), [1000, 1000])
    """
    n = check_count("n_samples", n_samples, 1)
    c = check_count("n_classes", n_classes, 2)
    stripes = check_count("n_stripes", n_stripes, c)
    height = check_real("height", height, 0, open_low=True)
    offset = check_real("offset", offset, 0, open_low=False)
    noise = check_real("noise", noise, 0, open_low=False)
    rng = check_random_state(random_state)

    right, stripe = np.divmod(rng.permutation(n) % (2 * stripes), stripes)
    horizontal = stripe + offset * right + noise * rng.standard_normal(n)
    vertical = rng.uniform(0, height, size=n)
    return np.column_stack([horizontal, vertical]), (stripe % c).astype(np.int64)


def make_concentric_circles(
    n_samples: int = 60,
    *,
    n_classes: int = 2,
    gap: float | None = None,
    noise: float = 0.0,
    random_state: Any = None,
) -> tuple[Array, Labels]:
    """Make one circle per class about the origin, with the points of all circles side by side.

    With m points per circle at angles ``θ_j = 2π(j + u_j)/m``, u_j uniform in [−1/4, 1/4], class
    c has the points ``(1 + c·gap)(cos θ_j, sin θ_j)``. While the gap is below the distance
    between neighbors on the innermost circle, the nearest neighbor of every point is of another
    class: leave-one-out 1-nearest-neighbor is always wrong, and no single linear map sets it right.

    Parameters
    ----------
    n_samples : int, default=60
        Number of points, at least two per class.
    n_classes : int, default=2
        Number of circles. The innermost has radius 1.
    gap : float, default=None
        Difference of successive radii. If not given ``sin(π/2m)``, half of the least distance
        that two points of the innermost circle can have.
    noise : float, default=0.0
        Standard deviation of Gaussian noise on both coordinates.
    random_state : int, RandomState instance or None, default=None
        Seed for reproducible points.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points. If n_samples is no multiple of n_classes, the outer circles lack one.
    y : int64 ndarray of shape (n_samples,)
        Circle of each point, from the innermost.

    References
    ----------
    Weinberger and Saul, "Distance metric learning for large margin nearest neighbor
    classification", §5.2 and Figure 7.

    Examples
    --------
    >>> from samewise.datasets import make_concentric_circles
    >>> X, y = make_concentric_circles(8, gap=0.5, random_state=0)
    >>> np.linalg.norm(X, axis=1).round(2).tolist()
    [1.0, 1.5, 1.0, 1.5, 1.0, 1.5, 1.0, 1.5]
    >>> y.tolist()
    [0, 1, 0, 1, 0, 1, 0, 1]
    """
    c = check_count("n_classes", n_classes, 2)
    n = check_count("n_samples", n_samples, 2 * c)
    noise = check_real("noise", noise, 0, open_low=False)
    m = -(-n // c)
    step = np.sin(np.pi / (2 * m)) if gap is None else check_real("gap", gap, 0, open_low=True)
    rng = check_random_state(random_state)

    theta = 2 * np.pi * (np.arange(m) + rng.uniform(-0.25, 0.25, size=m)) / m
    j, y = np.divmod(np.arange(n), c)
    circle = np.column_stack([np.cos(theta), np.sin(theta)])
    X = circle[j] * (1 + step * y)[:, None] + noise * rng.standard_normal((n, 2))
    return X, y.astype(np.int64)


def make_noisy_digits(
    n_samples: int = 64, *, snr: float = 1.0, random_state: Any = None
) -> tuple[Array, Labels, Array]:
    """Make noisy 12×12 images of a "2" and a "5", the noise on every other column or row.

    A noisy image is ``x = p + e``: p is the clean digit with pixels 0 and 1, and e is Gaussian
    with mean zero on the odd columns (the 1st, 3rd, ... 11th) of half of the images, on the odd
    rows of the others, and zero elsewhere. Its variance makes the signal-to-noise ratio
    ``‖p‖² / E‖e‖²`` equal to `snr`. One quarter of the pixels never has noise.

    Parameters
    ----------
    n_samples : int, default=64
        Number of images; the four kinds (digit × pattern) are equally frequent, up to one.
    snr : float, default=1.0
        Signal-to-noise ratio; 1 is 0 dB.
    random_state : int, RandomState instance or None, default=None
        Seed for reproducible noise.

    Returns
    -------
    X : ndarray of shape (n_samples, 144)
        Noisy images, row by row.
    y : int64 ndarray of shape (n_samples,)
        The digit, 2 or 5.
    prototypes : ndarray of shape (2, 144)
        The clean "2" and the clean "5".

    References
    ----------
    Shalev-Shwartz, Singer and Ng, "Online and batch learning of pseudo-metrics", §7, first
    experiment (64 images, 0 dB). The paper does not print its digits; these are made of bars.

    Examples
    --------
    >>> from samewise.datasets import make_noisy_digits
    >>> X, y, prototypes = make_noisy_digits(random_state=0)
    >>> X.shape, np.unique(y, return_counts=True)[1].tolist()
    ((64, 144), [32, 32])
    >>> for row in prototypes[0].reshape(12, 12)[::2].astype(int):
    ...     print("".join(".#"[pixel] for pixel in row))
    .##########.
    .........##.
    .........##.
    .##########.
    .##.........
    .##########.
    """
    n = check_count("n_samples", n_samples, 1)
    snr = check_real("snr", snr, 0, open_low=True)
    rng = check_random_state(random_state)

    two = np.array([[pixel == "#" for pixel in row] for row in _TWO.split()], dtype=np.float64)
    # Upside down, the 2 is a 5.
    prototypes = np.array([two.ravel(), two[::-1].ravel()])
    odd = np.arange(12) % 2 == 0
    patterns = np.array([np.tile(odd, 12), np.repeat(odd, 12)])
    digit, pattern = np.divmod(rng.permutation(n) % 4, 2)
    power = (prototypes**2).sum(axis=1) / snr
    deviation = np.sqrt(power[digit] / patterns.sum(axis=1)[pattern])
    e = rng.standard_normal((n, 144)) * patterns[pattern] * deviation[:, None]
    return prototypes[digit] + e, np.array([2, 5])[digit].astype(np.int64), prototypes
