r"""Random arrivals at a server: how many requests are in flight, and how long they wait.

Requests arrive from outside, whether or not earlier ones have been answered. The engine works in
passes: a pass prefills the prompts that have arrived and gives each running sequence a token.
Sequences thus share the engine, and a pass takes longer the more of them run. Without a limit on
sequences this is a server with processor sharing, and with Poisson arrivals its mean does not
depend on the distribution of lengths. Three approximations extend this: other arrivals scale the
fluctuations by their peakedness, waits for a place are exponential, and percentiles are those of
the lognormal distribution with the same mean and variance.
"""

import math

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, erf, exp, expm1, log, maximum, sqrt, where

__all__ = [
    "arrival_peakedness",
    "budget_wait",
    "busy_pass_seen",
    "busy_share",
    "fluctuation_over_a_stay",
    "in_flight_variance",
    "length_in_flight",
    "mean_in_flight",
    "pass_seen_on_arrival",
    "pass_with_prompts",
    "place_queue_wait",
    "place_rate",
    "prompt_rate",
    "prompts_alongside",
    "prompts_in_busy_pass",
    "requests_at_balance",
    "waiting_probability",
    "waiting_quantile",
]

_NEWTON = 12
"""Steps of Newton's method: up to a load of 99.9% the last one changes one part in 10^9."""


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
def pass_with_prompts(decode: Value, rate: Value, prefill: Value) -> Value:
    r"""Mean time of a pass, including the prefill of prompts that arrived since the last one.

    $$ t_c = \frac{t_d}{1 - \lambda t_p} $$

    Parameters
    ----------
    decode : [s]
        $t_d$, time of a pass without prompts.
    rate : [1/s]
        $\lambda$, arrival rate.
    prefill : [s]
        $t_p$, prefill of one prompt.

    Returns
    -------
    time : [s]
        $t_c$, mean time between the tokens of a sequence.

    References
    ----------
    Conservation: a pass prefills as many prompts as arrive. Takagi (1988), Queuing Analysis of
    Polling Models, https://doi.org/10.1145/62058.62059
    """
    return decode / (1 - rate * prefill)


@formula
def place_rate(sequences: Value, decodes: Value, decode: Value, prefill: Value) -> Value:
    r"""Requests per second that leave an engine with a given number of running sequences.

    $$ X = \frac{b}{k\,t_d + b\,t_p} $$

    Parameters
    ----------
    sequences : [1]
        $b$, sequences that run.
    decodes : [1]
        $k$, passes of a request after its first token.
    decode : [s]
        $t_d$, time of a pass without prompts.
    prefill : [s]
        $t_p$, prefill of one prompt.

    Returns
    -------
    rate : [1/s]
        $X$, requests per second.

    References
    ----------
    Little (1961), A Proof for the Queuing Formula L = λW, https://doi.org/10.1287/opre.9.3.383
    """
    return sequences / (decodes * decode + sequences * prefill)


@formula
def prompt_rate(prefill: Value, decode: Value, seq_len: Value, pass_tokens: Value) -> Value:
    r"""Requests per second that an engine can prefill, if every pass is full of prompts.

    $$ X_p = \frac{1}{t_p + t_d\,s / C} $$

    Parameters
    ----------
    prefill : [s]
        $t_p$, prefill of one prompt.
    decode : [s]
        $t_d$, time of a pass without prompts.
    seq_len : [token]
        $s$, tokens of a prompt.
    pass_tokens : [token]
        $C$, most prompt tokens in one pass.

    Returns
    -------
    rate : [1/s]
        $X_p$, requests per second.

    References
    ----------
    Agrawal et al. (2024), Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve,
    section 4.2, https://arxiv.org/abs/2403.02310
    """
    return 1 / (prefill + decode * seq_len / pass_tokens)


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
    Little (1961), A Proof for the Queuing Formula L = λW, https://doi.org/10.1287/opre.9.3.383
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
    Whitt (2004), A Diffusion Approximation for the G/GI/n/m Queue,
    https://doi.org/10.1287/opre.1040.0136; its integral of the squared survival function over the
    mean is 1 / (1 + c²) for lengths that are equal and for exponential ones
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
    Whitt (2004), A Diffusion Approximation for the G/GI/n/m Queue,
    https://doi.org/10.1287/opre.1040.0136
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
    Uhlenbeck and Ornstein (1930), On the Theory of the Brownian Motion,
    https://doi.org/10.1103/PhysRev.36.823
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
def pass_seen_on_arrival(
    decode: Value, rate: Value, prefill: Value, burstiness: Value, input_variation: Value
) -> Value:
    r"""Mean time of the pass during which a request arrives.

    Passes with many prompts are long, and more requests arrive during a long pass.

    $$ t_s = \frac{t_d}{1 - \rho} + \frac{\lambda\,t_p^2\,(c_a^2 + c_p^2)}{1 - \rho^2},
    \qquad \rho = \lambda\,t_p $$

    Parameters
    ----------
    decode : [s]
        $t_d$, time of a pass without prompts.
    rate : [1/s]
        $\lambda$, arrival rate.
    prefill : [s]
        $t_p$, prefill of one prompt.
    burstiness : [1]
        $c_a^2$, squared coefficient of variation of the times between arrivals.
    input_variation : [1]
        $c_p$, coefficient of variation of the lengths of prompts.

    Returns
    -------
    time : [s]
        $t_s$, second moment of the time of a pass, divided by its mean.

    References
    ----------
    Takagi (1988), Queuing Analysis of Polling Models, gated service of one queue,
    https://doi.org/10.1145/62058.62059
    """
    load = rate * prefill
    square = prefill * prefill * (burstiness + input_variation * input_variation)
    return decode / (1 - load) + rate * square / (1 - load * load)


@formula
def prompts_in_busy_pass(rate: Value, empty: Value, prefill: Value) -> Value:
    r"""Mean prompts in a pass of an engine that never decodes, and so has no pass without prompts.

    A pass takes the prompts that arrived during the last one, or else the next one to arrive.

    $$ k = x + e^{-x}, \qquad x = \lambda\,(t_0 + k\,t_p) $$

    Parameters
    ----------
    rate : [1/s]
        $\lambda$, arrival rate.
    empty : [s]
        $t_0$, time of a pass beyond its prompts.
    prefill : [s]
        $t_p$, prefill of one prompt.

    Returns
    -------
    prompts : [1]
        $k$, found by Newton's method.

    References
    ----------
    Takagi (1988), Queuing Analysis of Polling Models, gated service of one queue,
    https://doi.org/10.1145/62058.62059
    """
    return _prompts_in_pass(rate * empty, rate * prefill)


def _prompts_in_pass(base: Value, load: Value) -> Value:
    """Solve k = x + exp(-x) with x = base + load k; without bound from a load of 1 on."""
    stable = load < 1
    load = where(stable, load, 0 * load)
    prompts = 1 + base / (1 - load)
    for _ in range(_NEWTON):
        arriving = base + load * prompts
        none = exp(-arriving)
        prompts = prompts + (arriving + none - prompts) / (1 - load * (1 - none))
    return where(stable, prompts, math.inf)


@formula
def busy_pass_seen(
    time: Value,
    prompts: Value,
    rate: Value,
    prefill: Value,
    burstiness: Value,
    input_variation: Value,
) -> Value:
    r"""Mean time of the pass during which a request arrives, at an engine that never decodes.

    $$ t_s = t + \frac{t_p^2}{t}\left(\frac{c_a^2\,v}{1 - \rho^2} + k\,c_p^2\right), \qquad
    \rho = \lambda\,t_p,\quad v = x + e^{-x}(1 - 2x - e^{-x}),\quad x = \lambda\,t $$

    Parameters
    ----------
    time : [s]
        $t$, mean time of a pass.
    prompts : [1]
        $k$, mean prompts in it.
    rate : [1/s]
        $\lambda$, arrival rate.
    prefill : [s]
        $t_p$, prefill of one prompt.
    burstiness : [1]
        $c_a^2$, squared coefficient of variation of the times between arrivals.
    input_variation : [1]
        $c_p$, coefficient of variation of the lengths of prompts.

    Returns
    -------
    time : [s]
        $t_s$, second moment of the time of a pass, divided by its mean.

    References
    ----------
    $v$ is the variance of the larger of 1 and a Poisson number. Takagi (1988), Queuing Analysis of
    Polling Models, https://doi.org/10.1145/62058.62059
    """
    spread = _variance_of_one_or_more(rate * time)
    load = rate * prefill
    square = burstiness * spread / (1 - load * load) + prompts * input_variation * input_variation
    return time + prefill * prefill / time * square


def _variance_of_one_or_more(mean: Value) -> Value:
    """Variance of the larger of 1 and a Poisson number."""
    none = exp(-mean)
    return mean + none * (1 - 2 * mean - none)


@formula
def prompts_alongside(rate: Value, time: Value, burstiness: Value) -> Value:
    r"""Other prompts that arrive during the same pass as a request.

    Poisson arrivals are independent. Evenly spaced arrivals rarely share a pass; bursts often do.

    $$ k = \lambda t + (c_a^2 - 1)\left(1 - e^{-\lambda t}\right) $$

    Parameters
    ----------
    rate : [1/s]
        $\lambda$, arrival rate.
    time : [s]
        $t$, time of the pass.
    burstiness : [1]
        $c_a^2$, squared coefficient of variation of the times between arrivals.

    Returns
    -------
    prompts : [1]
        $k$, other prompts.

    References
    ----------
    Cox (1962), Renewal Theory, on the expected number of renewals, for long and for short times
    """
    arrivals = rate * time
    return arrivals + (burstiness - 1) * (1 - exp(-arrivals))


@formula
def budget_wait(
    utilization: Value, time: Value, burstiness: Value, input_variation: Value
) -> Value:
    r"""Mean time that a prompt waits because passes are full of other prompts.

    $$ t_w = \frac{c_a^2 + c_p^2}{2}\,\frac{u}{1 - u}\,t $$

    Parameters
    ----------
    utilization : [1]
        $u$, prompt tokens that arrive per pass, divided by its budget.
    time : [s]
        $t$, time of a pass that one prompt takes.
    burstiness : [1]
        $c_a^2$, squared coefficient of variation of the times between arrivals.
    input_variation : [1]
        $c_p$, coefficient of variation of the lengths of prompts.

    Returns
    -------
    time : [s]
        $t_w$, mean wait.

    References
    ----------
    Kingman (1961), The Single Server Queue in Heavy Traffic,
    https://doi.org/10.1017/S0305004100036094
    """
    variability = (burstiness + input_variation * input_variation) / 2
    return variability * utilization / (1 - utilization) * time


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
def waiting_probability(
    places: Value, mean: Value, variance: Value, rate: Value, capacity: Value, peakedness: Value
) -> Value:
    r"""Probability that a request finds every place of the engine taken.

    Up to the number of places, the number in flight has a Gamma distribution, in the approximation
    of Wilson and Hilferty; above that, it falls exponentially. Both parts have the same
    fluctuations.

    $$ P = \frac{h}{1 + h}, \qquad
    h = \left(1 + \frac{z\,\lambda}{\mu - \lambda}\right)\frac{\varphi(x)\,x'}{\Phi(x)}, \qquad
    x = 3\sqrt k\left(\sqrt[3]{\frac{N}{L}} - 1 + \frac{1}{9k}\right), \qquad
    k = \frac{L^2}{\sigma^2}, \qquad x' = \frac{\mathrm{d}x}{\mathrm{d}N} $$

    Parameters
    ----------
    places : [1]
        $N$, most sequences that the engine runs at once.
    mean : [1]
        $L$, mean requests in flight.
    variance : [1]
        $\sigma^2$, their variance.
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
    Halfin and Whitt (1981), Heavy-Traffic Limits for Queues with Many Exponential Servers,
    https://doi.org/10.1287/opre.29.3.567; Wilson and Hilferty (1931), The Distribution of
    Chi-Square, https://doi.org/10.1073/pnas.17.12.684
    """
    shape = mean * mean / variance
    root = exp(log(places / mean) / 3)
    x = 3 * sqrt(shape) * (root - 1 + 1 / (9 * shape))
    density = exp(-x * x / 2) / 2.5066282746310002 * sqrt(shape) * root / places
    below = (1 + erf(x / 1.4142135623730951)) / 2
    odds = (1 + peakedness * rate / (capacity - rate)) * density / maximum(below, 1e-12)
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
    Halfin and Whitt (1981), Heavy-Traffic Limits for Queues with Many Exponential Servers,
    https://doi.org/10.1287/opre.29.3.567
    """
    return wait * log(maximum(probability / beyond, 1))
