"""Unit cost: per hour of a device, per token, per run; and rent, which is priced so."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = [
    "cost_per_token",
    "cost_rate",
    "device_time",
    "rental_cost",
    "run_cost",
    "run_time",
    "tokens_made",
]


@formula
def device_time(devices: Value, time: Value) -> Value:
    r"""Time of all devices together: the device-hours that clouds bill.

    $$ T = n\,t $$

    Parameters
    ----------
    devices : [1]
        $n$, devices.
    time : [s]
        $t$, time.

    Returns
    -------
    device_time : [s]
        $T$, device-time.

    References
    ----------
    Definition.
    """
    return devices * time


@formula
def cost_rate(cost: Value, device_time: Value) -> Value:
    r"""Cost of one device for a unit of time.

    $$ r = \frac{O}{T} $$

    Parameters
    ----------
    cost : [USD]
        $O$, cost.
    device_time : [s]
        $T$, device-time.

    Returns
    -------
    rate : [USD/s]
        $r$, cost per device and time.

    References
    ----------
    Definition.
    """
    return cost / device_time


@formula
def rental_cost(device_time: Value, rental_price: Value) -> Value:
    r"""Rent of a fleet.

    $$ R = p_r\,T $$

    Parameters
    ----------
    device_time : [s]
        $T$, device-time.
    rental_price : [USD/s]
        $p_r$, price of one device for a unit of time.

    Returns
    -------
    cost : [USD]
        $R$, rent.

    References
    ----------
    Definition.
    """
    return device_time * rental_price


@formula
def tokens_made(token_throughput: Value, time: Value) -> Value:
    r"""Tokens processed at a steady rate.

    $$ N_t = v\,t $$

    Parameters
    ----------
    token_throughput : [1/s]
        $v$, tokens per unit of time.
    time : [s]
        $t$, time.

    Returns
    -------
    tokens : [token]
        $N_t$, tokens.

    References
    ----------
    Definition.
    """
    return token_throughput * time


@formula
def cost_per_token(cost: Value, tokens: Value) -> Value:
    r"""Cost of one token.

    $$ o = \frac{O}{N_t} $$

    Parameters
    ----------
    cost : [USD]
        $O$, cost.
    tokens : [token]
        $N_t$, tokens processed for it.

    Returns
    -------
    cost : [USD]
        $o$, cost of a token.

    References
    ----------
    Definition.
    """
    return cost / tokens


@formula
def run_time(tokens: Value, token_throughput: Value) -> Value:
    r"""Time of a run over a number of tokens.

    $$ t_D = \frac{D}{v} $$

    Parameters
    ----------
    tokens : [token]
        $D$, tokens of the run.
    token_throughput : [1/s]
        $v$, tokens per unit of time.

    Returns
    -------
    time : [s]
        $t_D$, time of the run.

    References
    ----------
    Definition.
    """
    return tokens / token_throughput


@formula
def run_cost(tokens: Value, cost_per_token: Value) -> Value:
    r"""Cost of a run over a number of tokens.

    $$ O_D = o\,D $$

    Parameters
    ----------
    tokens : [token]
        $D$, tokens of the run.
    cost_per_token : [USD]
        $o$, cost of a token.

    Returns
    -------
    cost : [USD]
        $O_D$, cost of the run.

    References
    ----------
    Definition.
    """
    return tokens * cost_per_token
