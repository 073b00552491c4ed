r"""Random arrivals at a server: how many requests are in flight, and how long they wait.

Requests arrive from outside, whether or not earlier ones have been answered. The engine works in
passes: a pass prefills the prompts that have arrived and gives each running sequence a token.
Sequences thus share the engine, and a pass takes longer the more of them run. Without a limit on
sequences this is a server with processor sharing, and with Poisson arrivals its mean does not
depend on the distribution of lengths. Three approximations extend this: other arrivals scale the
fluctuations by their peakedness, waits for a place are exponential, and percentiles are the times
with the percentiles of the numbers of prompts and sequences.
"""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, exp, expm1, log, maximum

__all__ = [
    "arrival_peakedness",
    "busy_share",
    "fluctuation_over_a_stay",
    "in_flight_variance",
    "length_in_flight",
    "mean_in_flight",
    "place_queue_wait",
    "requests_at_balance",
    "waiting_probability",
    "waiting_quantile",
]


@formula
def length_in_flight(mean: Value, variation: Value) -> Value:
    r"""Mean length of the answers that are in flight at a moment.

    Long answers stay longer, so at any moment they are overrepresented.

    $$ \tilde o = o\,(1 + c^2) $$

    Parameters
    ----------
    mean : [token]
        $o$, mean length of all answers.
    variation : [1]
        $c$, coefficient of variation of the lengths.

    Returns
    -------
    length : [token]
        $\tilde o$, mean length of those in flight.

    References
    ----------
    Cox (1962), Renewal Theory, on the length of the interval that holds a given moment
    """
    return mean * (1 + variation * variation)


@formula
def requests_at_balance(rate: Value, base: Value, slope: Value) -> Value:
    r"""Requests in flight at which as many leave as arrive.

    Each request that shares the engine lengthens a stay by the same time.

    $$ n = \frac{\lambda\,t_0}{1 - \lambda\,t_1} $$

    Parameters
    ----------
    rate : [1/s]
        $\lambda$, arrival rate.
    base : [s]
        $t_0$, time in the engine that does not depend on others.
    slope : [s]
        $t_1$, additional time for each request in flight.

    Returns
    -------
    requests : [1]
        $n$, requests in flight.

    References
    ----------
    @little1961
    """
    return rate * base / (1 - rate * slope)


@formula
def arrival_peakedness(burstiness: Value, output_variation: Value) -> Value:
    r"""Variance of the requests in flight, relative to Poisson arrivals.

    $$ z = 1 + \frac{c_a^2 - 1}{1 + c_s^2} $$

    Parameters
    ----------
    burstiness : [1]
        $c_a^2$, squared coefficient of variation of the times between arrivals.
    output_variation : [1]
        $c_s$, coefficient of variation of the lengths of answers.

    Returns
    -------
    peakedness : [1]
        $z$, ratio of the variances; 1 for Poisson arrivals.

    References
    ----------
    @whitt2004; its integral of the squared survival function over the mean is 1 / (1 + c²) for
    lengths that are equal and for exponential ones
    """
    return 1 + (burstiness - 1) / (1 + output_variation * output_variation)


@formula
def mean_in_flight(balance: Value, peakedness: Value, load: Value) -> Value:
    r"""Mean number of requests in flight, which fluctuations raise above the balance.

    If arrivals are Poisson and the time in the engine is linear in the requests in flight, their
    number has a negative binomial distribution with this mean.

    $$ L = n + \frac{z\,r}{1 - r} $$

    Parameters
    ----------
    balance : [1]
        $n$, requests at which as many leave as arrive.
    peakedness : [1]
        $z$, peakedness of the arrivals.
    load : [1]
        $r$, arrival rate times the longer stay for each request in flight.

    Returns
    -------
    requests : [1]
        $L$, mean requests in flight.

    References
    ----------
    Cohen (1979), The Multiple Phase Service Network with Generalized Processor Sharing, Acta
    Informatica 12, 245-284
    """
    return balance + peakedness * load / (1 - load)


@formula
def in_flight_variance(mean: Value, peakedness: Value, load: Value) -> Value:
    r"""Variance of the requests in flight.

    A count is a whole number. If it alternates between two neighboring values, its variance is 1/6,
    averaged over all fractions.

    $$ \sigma^2 = \frac{z\,L}{1 - r} + \frac{1}{6} $$

    Parameters
    ----------
    mean : [1]
        $L$, mean requests in flight.
    peakedness : [1]
        $z$, peakedness of the arrivals.
    load : [1]
        $r$, arrival rate times the longer stay for each request in flight.

    Returns
    -------
    variance : [1]
        $\sigma^2$, variance.

    References
    ----------
    @whitt2004
    """
    return peakedness * mean / (1 - load) + 1 / 6


@formula
def fluctuation_over_a_stay(load: Value) -> Value:
    r"""Share of the variance of the requests in flight that remains after averaging over a stay.

    The number returns to its mean within a stay, and more slowly at higher load.

    $$ g = 2\,\frac{e^{-x} - 1 + x}{x^2}, \qquad x = 1 - r $$

    Parameters
    ----------
    load : [1]
        $r$, arrival rate times the longer stay for each request in flight.

    Returns
    -------
    share : [1]
        $g$, share of the variance.

    References
    ----------
    @uhlenbeck1930
    """
    x = 1 - load
    return 2 * (exp(-x) - 1 + x) / (x * x)


@formula
def busy_share(requests: Value) -> Value:
    r"""Probability that a request finds others in the engine.

    $$ P = 1 - e^{-L} $$

    Parameters
    ----------
    requests : [1]
        $L$, mean requests in flight.

    Returns
    -------
    probability : [1]
        $P$, probability.

    References
    ----------
    Cox (1962), Renewal Theory; for Poisson arrivals that do not delay each other much
    """
    return -expm1(-requests)


@formula
def place_queue_wait(
    rate: Value, capacity: Value, burstiness: Value, output_variation: Value
) -> Value:
    r"""Mean wait of requests that find every place of the engine taken.

    $$ t_q = \frac{c_a^2 + c_s^2}{2}\,\frac{1}{\mu - \lambda} $$

    Parameters
    ----------
    rate : [1/s]
        $\lambda$, arrival rate.
    capacity : [1/s]
        $\mu$, requests per second of an engine whose places are all taken.
    burstiness : [1]
        $c_a^2$, squared coefficient of variation of the times between arrivals.
    output_variation : [1]
        $c_s$, coefficient of variation of the lengths of answers.

    Returns
    -------
    time : [s]
        $t_q$, mean wait.

    References
    ----------
    Whitt (1993), Approximations for the GI/G/m Queue, Production and Operations Management 2, on
    the Allen-Cunneen approximation
    """
    return (burstiness + output_variation * output_variation) / 2 / (capacity - rate)


@formula
def waiting_probability(full: Value, rate: Value, capacity: Value, peakedness: Value) -> Value:
    r"""Probability that a request finds every place of the engine taken.

    While every place is taken, more requests wait, in numbers that fall exponentially.

    $$ P = \frac{h}{1 + h}, \qquad h = \left(1 + \frac{z\,\lambda}{\mu - \lambda}\right) p $$

    Parameters
    ----------
    full : [1]
        $p$, probability that every place is taken while no request waits, relative to that of a
        free place.
    rate : [1/s]
        $\lambda$, arrival rate.
    capacity : [1/s]
        $\mu$, requests per second of an engine whose places are all taken.
    peakedness : [1]
        $z$, peakedness of the arrivals.

    Returns
    -------
    probability : [1]
        $P$, probability.

    References
    ----------
    @halfin1981; Cohen (1979), The Multiple Phase Service Network with Generalized Processor
    Sharing, Acta Informatica 12, 245-284, on the numbers up to the places
    """
    odds = (1 + peakedness * rate / (capacity - rate)) * full
    return odds / (1 + odds)


@formula
def waiting_quantile(wait: Value, probability: Value, beyond: Value) -> Value:
    r"""Wait for a place that only a given share of all requests exceeds.

    $$ t = t_q\,\max\left(0,\, \ln\frac{P}{q}\right) $$

    Parameters
    ----------
    wait : [s]
        $t_q$, mean wait of requests that wait.
    probability : [1]
        $P$, probability of waiting.
    beyond : [1]
        $q$, share that waits longer.

    Returns
    -------
    time : [s]
        $t$, wait.

    References
    ----------
    @halfin1981
    """
    return wait * log(maximum(probability / beyond, 1))
