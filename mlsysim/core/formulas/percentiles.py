"""Percentiles of times, from their mean and their variance."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, exp, log, sqrt

__all__ = ["lognormal_deviation", "lognormal_quantile", "normal_score"]


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
    Joiner and Rosenblatt (1971), Some Properties of the Range in Samples from Tukey's Symmetric
    Lambda Distributions, https://doi.org/10.1080/01621459.1971.10482275
    """
    return (exp(0.135 * log(share)) - exp(0.135 * log(1 - share))) / 0.1975
