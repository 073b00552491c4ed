r"""Prompts in the passes of an engine: how many a pass reads, and how long it then takes.

A pass gives each running sequence a token and prefills the prompts that have arrived. Without
decode there is no pass without a prompt, so a busy engine has other passes than one that decodes.
"""

import math

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, exp, expm1, log1p, maximum, minimum, sqrt, where

__all__ = [
    "budget_wait",
    "busy_pass_seen",
    "prompts_alongside",
    "prompts_if_any",
    "prompts_in_busy_pass",
    "queued_prompt_time",
    "share_found_busy",
    "steps_with_backlog",
]

_SMALL = 1e-6
_LEAST = 1e-14
"""Least share of requests that arrive at an idle server; the difference from 1 is still exact."""
_NEWTON = 12
"""Steps of Newton's method: up to a load of 99.9% the last one changes one part in 10^9."""


@formula
def prompts_if_any(prompts: Value) -> Value:
    r"""Mean prompts in the passes that have any, if a random number arrives during each pass.

    $$ g = \frac{k}{1 - e^{-k}} $$

    Parameters
    ----------
    prompts : [1]
        $k$, mean prompts per pass, above zero.

    Returns
    -------
    prompts : [1]
        $g$, mean over the passes with at least one.

    References
    ----------
    Definition of a mean under a condition: a Poisson number is zero with probability $e^{-k}$.
    """
    return prompts / -expm1(-prompts)


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
    @takagi1988, gated service of one queue
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
    $v$ is the variance of the larger of 1 and a Poisson number. @takagi1988
    """
    spread = _variance_of_one_or_more(rate * time)
    load = rate * prefill
    square = burstiness * spread / (1 - load * load) + prompts * input_variation * input_variation
    return time + prefill * prefill / time * square


def _variance_of_one_or_more(mean: Value) -> Value:
    """Variance of the larger of 1 and a Poisson number."""
    # With one less than the share without arrivals, a small variance keeps its sign.
    less = expm1(-mean)
    return -(mean + less) - less * (2 * mean + less)


@formula
def prompts_alongside(rate: Value, time: Value, burstiness: Value) -> Value:
    r"""Other prompts that arrive during the same pass as a request.

    Poisson arrivals are independent. Evenly spaced arrivals rarely share a pass; bursts often do,
    above all in short passes, because most times in a burst are short.

    $$ k = \lambda t + (c_a^2 - 1)\left(1 - e^{-x}\right), \qquad
    x = \begin{cases} \lambda t & c_a^2 \le 1 \\ \sqrt{\lambda t} & c_a^2 > 1 \end{cases} $$

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
    Cox (1962), Renewal Theory, on the expected number of renewals in a long time; for short times,
    an approximation for times between arrivals with a Gamma distribution
    """
    arrivals = rate * time
    clustered = where(burstiness > 1, sqrt(arrivals), arrivals)
    return arrivals + (burstiness - 1) * (1 - exp(-clustered))


@formula
def share_found_busy(utilization: Value, burstiness: Value) -> Value:
    r"""Share of the requests that arrive while a server with exponential times is busy.

    With Poisson arrivals it is the utilization. In a burst, most requests find another one, even if
    the utilization is low.

    $$ \sigma = \left(1 + \frac{c_a^2\,(1 - \sigma)}{u}\right)^{-1/c_a^2} $$

    Parameters
    ----------
    utilization : [1]
        $u$, share of the time in which the server is busy.
    burstiness : [1]
        $c_a^2$, squared coefficient of variation of the times between arrivals, which have a Gamma
        distribution.

    Returns
    -------
    share : [1]
        $\sigma$, found by Newton's method.

    References
    ----------
    Kleinrock (1975), Queueing Systems, volume 1, chapter 6, the queue G/M/1
    """
    return _share_found_busy(utilization, burstiness)


def _share_found_busy(utilization: Value, burstiness: Value) -> Value:
    """Solve s = (1 + c (1 - s) / u) ** (-1 / c) for s < 1."""
    spread, load = maximum(burstiness, _SMALL), maximum(utilization, _SMALL)
    # We solve for the other share, which is the small one where a result depends on it most. Both
    # starting points are above the solution, and every step ends above it.
    idle = where(spread < 1, minimum(2 * (1 - load) / (1 + spread), 1), 1 - load)
    for _ in range(_NEWTON):
        idle = maximum(idle, _LEAST)
        base = spread * idle / load
        arriving = log1p(base) / spread
        slope = exp(-arriving) / (load * (1 + base)) - 1
        idle = idle - (-expm1(-arriving) - idle) / slope
    return 1 - maximum(idle, _LEAST)


@formula
def budget_wait(found_busy: Value, time: Value, burstiness: Value, input_variation: Value) -> Value:
    r"""Mean time that a prompt waits because passes are full of other prompts.

    It is the wait at a server whose times of service are exponential, scaled to the actual
    variation of the prompts.

    $$ t_w = \frac{c_a^2 + c_p^2}{c_a^2 + 1}\,\frac{\sigma}{1 - \sigma}\,t $$

    Parameters
    ----------
    found_busy : [1]
        $\sigma$, share of the prompts that arrive while others fill the passes.
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
    Kleinrock (1975), Queueing Systems, volume 1, chapter 6, the queue G/M/1; for large utilizations
    and for Poisson arrivals, the result is that of @kingman1961

    Examples
    --------
    Half of the time is busy: Poisson arrivals of equal prompts, then bursts.

    >>> from mlsysim.core.formulas import budget_wait, share_found_busy
    >>> for burstiness in (1.0, 4.0):
    ...     found = share_found_busy(0.5, burstiness)
    ...     print(round(found, 3), round(budget_wait(found, 1.0, burstiness, 0.0), 3))
    0.5 0.5
    0.771 2.689
    """
    variability = (burstiness + input_variation * input_variation) / (burstiness + 1)
    return variability * found_busy / (1 - found_busy) * time


@formula
def queued_prompt_time(step: Value, prefill: Value, per_pass: Value, readers: Value) -> Value:
    r"""Time from one queued prompt to the next, if passes are full of prompts.

    A prompt that takes several passes also waits for the decode step of each. Of prompts that share
    a pass, one is counted with its decode step: they are prefilled together.

    $$ t = \frac{t_d + t_p\,\min(n, 1)}{r\,n} $$

    Parameters
    ----------
    step : [s]
        $t_d$, time of a decode step.
    prefill : [s]
        $t_p$, prefill of one prompt.
    per_pass : [1]
        $n$, prompts in a full pass of one rank; below 1 if a prompt takes several passes.
    readers : [1]
        $r$, ranks or stages that prefill different prompts at the same time.

    Returns
    -------
    time : [s]
        $t$, time per prompt.

    References
    ----------
    @agrawal2024, section 4.2, on decode steps in the passes of a long prompt
    """
    return (step + prefill * minimum(per_pass, 1)) / (readers * per_pass)


@formula
def steps_with_backlog(backlog: Value, load: Value, decodes: Value) -> Value:
    r"""Share of a request's decode steps that are shared with a prompt from behind its own.

    In a steady state, a prompt leaves as many prompts waiting as it met on arrival. The request's
    first decode steps share their passes with this backlog, one prompt or a pass's part of one in
    each. While $b$ passes prefill it, more prompts arrive, so it takes $b / (1 - \rho)$ of them. A
    request with few steps does not meet all of it: there is a backlog with probability $\rho$.

    $$ s = \min\left(\frac{b}{k\,(1 - \rho)},\ \rho\right) $$

    Parameters
    ----------
    backlog : [1]
        $b$, passes that prefill the prompts which wait, on average.
    load : [1]
        $\rho$, share of time that prefill takes: arrival rate times the prefill of one prompt.
    decodes : [1]
        $k$, decode steps of a request after its first token.

    Returns
    -------
    share : [1]
        $s$, share of the decode steps.

    References
    ----------
    Kleinrock (1975), Queueing Systems, volume 1, section 5.3: departures leave behind the number
    that arrivals find

    Examples
    --------
    A backlog of two prompts and a half, at a load of one half, over 50 steps, then over 2:

    >>> from mlsysim.core.formulas import steps_with_backlog
    >>> steps_with_backlog(2.5, 0.5, 50.0)
    0.1
    >>> steps_with_backlog(2.5, 0.5, 2.0)
    0.5
    """
    return minimum(backlog / (decodes * (1 - load)), load)
