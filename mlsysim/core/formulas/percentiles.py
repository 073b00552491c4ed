"""Percentiles of times, from their mean and their variance."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, exp, log, sqrt, where

__all__ = [
    "joint_edge",
    "lognormal_deviation",
    "lognormal_quantile",
    "normal_score",
]


@formula
def lognormal_deviation(mean: Value, variance: Value) -> Value:
    r"""Standard deviation of the logarithm of a time with a lognormal distribution.

    $$ s = \sqrt{\ln(1 + v / \bar t^2)} $$

    Parameters
    ----------
    mean : [s]
        $\bar t$, mean of the time.
    variance : [s**2]
        $v$, variance of the time.

    Returns
    -------
    deviation : [1]
        $s$, standard deviation.

    References
    ----------
    Definition of the lognormal distribution by its first two moments
    """
    return sqrt(log(1 + variance / (mean * mean)))


@formula
def lognormal_quantile(mean: Value, deviation: Value, score: Value) -> Value:
    r"""Percentile of a time with a lognormal distribution.

    $$ t = \bar t\,e^{s\,(x - s / 2)} $$

    Parameters
    ----------
    mean : [s]
        $\bar t$, mean.
    deviation : [1]
        $s$, standard deviation of the logarithm.
    score : [1]
        $x$, the same percentile of the standard normal distribution.

    Returns
    -------
    time : [s]
        $t$, percentile.

    References
    ----------
    Definition of the lognormal distribution by its first two moments
    """
    return mean * exp(deviation * (score - deviation / 2))


@formula
def normal_score(share: Value) -> Value:
    r"""Score below which a share of a normal distribution lies.

    The approximation by Tukey's lambda distribution is accurate to 0.02 between the 1st and the
    99th percentile.

    $$ x = \frac{p^a - (1 - p)^a}{b}, \qquad a = 0.135, \qquad b = 0.1975 $$

    Parameters
    ----------
    share : [1]
        $p$, share below the score, between 0 and 1.

    Returns
    -------
    score : [1]
        $x$, score.

    References
    ----------
    @joiner1971
    """
    return (exp(0.135 * log(share)) - exp(0.135 * log(1 - share))) / 0.1975


@formula
def joint_edge(value: Value, one: Value, other: Value) -> Value:
    r"""Edge of a band around a value with two independent errors.

    Each error has a band of its own, as factors of the value. If the logarithms of independent
    errors are normally distributed, their squared widths add up.

    $$ t_e = t\,e^{\pm\sqrt{\ln^2 e_1 + \ln^2 e_2}} $$

    with the sign of $\ln(e_1 e_2)$.

    Parameters
    ----------
    value : [s]
        $t$, the predicted time.
    one : [1]
        $e_1$, edge of one error's band: below 1 for the lower edge, above it for the upper one.
    other : [1]
        $e_2$, the same edge of the other error's band.

    Returns
    -------
    edge : [s]
        $t_e$, edge of the band.

    References
    ----------
    Joint Committee for Guides in Metrology (2008), Guide to the Expression of Uncertainty in
    Measurement, JCGM 100, section 5.1.2, on the propagation of independent errors
    """
    width = sqrt(log(one) * log(one) + log(other) * log(other))
    return value * where(one * other < 1, exp(-width), exp(width))
