"""Power from work: what a device draws follows from what it computes and moves."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum, minimum

__all__ = [
    "bandwidth_utilization",
    "devices_energy",
    "energy_band_edge",
    "energy_per_token",
    "format_flops_utilization",
    "power_utilization",
    "served_batch_energy_per_token",
    "workload_power",
]


@formula
def bandwidth_utilization(traffic: Value, time: Value, bandwidth: Value) -> Value:
    r"""Share of a device's memory bandwidth that a computation uses (MBU).

    $$ u_b = \frac{Q}{B\,t} $$

    Parameters
    ----------
    traffic : [byte]
        $Q$, bytes that one device reads and writes.
    time : [s]
        $t$, time taken.
    bandwidth : [byte/s]
        $B$, memory bandwidth of the device.

    Returns
    -------
    utilization : [1]
        $u_b$, mean bandwidth over the bandwidth there is.

    References
    ----------
    Definition; the name is that of Databricks (2023), LLM Inference Performance Engineering: Best
    Practices, https://www.databricks.com/blog/llm-inference-performance-engineering-best-practices
    """
    return traffic / (bandwidth * time)


@formula
def format_flops_utilization(
    flops: Value,
    wide_flops: Value,
    time: Value,
    peak_rate: Value,
    wide_peak_rate: Value,
    devices: Value,
) -> Value:
    r"""Share of the peak rates that a computation in two number formats uses (MFU or HFU).

    Attention and logits stay in a wider format when the matrix products run in a narrow one. Each
    operation counts against the peak rate of the format that it runs in, so the share is at most
    one on devices whose wide format is the faster one, too.

    $$ u = \frac{1}{n\,t}\left(\frac{F - F_h}{P} + \frac{F_h}{P_h}\right) $$

    Parameters
    ----------
    flops : [flop]
        $F$, operations done by all devices together.
    wide_flops : [flop]
        $F_h$, those of them in the wide format.
    time : [s]
        $t$, time taken.
    peak_rate : [flop/s]
        $P$, dense peak rate of one device in the format of the products.
    wide_peak_rate : [flop/s]
        $P_h$, dense peak rate of one device in the wide format.
    devices : [1]
        $n$, devices.

    Returns
    -------
    utilization : [1]
        $u$, share of the peak rates.

    References
    ----------
    Chowdhery et al. (2022), PaLM: Scaling Language Modeling with Pathways, section 4.1,
    https://arxiv.org/abs/2204.02311, with the peak rate of each format.
    """
    return ((flops - wide_flops) / peak_rate + wide_flops / wide_peak_rate) / (devices * time)


@formula
def workload_power(
    design_power: Value,
    constant_share: Value,
    compute_share: Value,
    memory_share: Value,
    hfu: Value,
    mbu: Value,
) -> Value:
    r"""Mean power of a device from the work that it does: the energy roofline.

    Each operation and each byte costs an energy of its own, on top of a constant power. All three
    are given in shares of the design power: $\kappa$ is the energy of an operation times the peak
    rate, $\mu$ the energy of a byte times the bandwidth. The power limit of the board holds the
    sum at the design power.

    $$ W = W_d\,\min\left(1,\; \pi_0 + \kappa\,u_f + \mu\,u_b\right) $$

    Parameters
    ----------
    design_power : [W]
        $W_d$, design power, at which the board limits itself.
    constant_share : [1]
        $\pi_0$, power of a device that a program holds and that does nothing, over $W_d$.
    compute_share : [1]
        $\kappa$, power that arithmetic at the peak rate would add, over $W_d$.
    memory_share : [1]
        $\mu$, power that traffic at the full bandwidth would add, over $W_d$.
    hfu : [1]
        $u_f$, executed operations over what the peak rate allows.
    mbu : [1]
        $u_b$, memory traffic over what the bandwidth allows.

    Returns
    -------
    power : [W]
        $W$, mean power.

    References
    ----------
    Choi, Bedard, Fowler and Vuduc (2013), A Roofline Model of Energy,
    https://doi.org/10.1109/IPDPS.2013.77
    """
    share = constant_share + compute_share * hfu + memory_share * mbu
    return design_power * minimum(1, share)


@formula
def power_utilization(power: Value, design_power: Value, idle_share: Value) -> Value:
    r"""Place of a device's power between idle and design power: the inverse of `device_power`.

    $$ u = \frac{W / W_d - \iota}{1 - \iota} $$

    Parameters
    ----------
    power : [W]
        $W$, mean power.
    design_power : [W]
        $W_d$, design power.
    idle_share : [1]
        $\iota$, power of the idle device over its design power.

    Returns
    -------
    utilization : [1]
        $u$, 0 at idle and 1 at the design power.

    References
    ----------
    Definition: the inverse of `device_power`.
    """
    return (power / design_power - idle_share) / (1 - idle_share)


@formula
def devices_energy(devices: Value, power: Value, time: Value) -> Value:
    r"""Energy of several devices at constant power.

    $$ E = n\,W\,t $$

    Parameters
    ----------
    devices : [1]
        $n$, devices.
    power : [W]
        $W$, mean power of one.
    time : [s]
        $t$, time.

    Returns
    -------
    energy : [J]
        $E$, energy of all.

    References
    ----------
    Definition of power.
    """
    return devices * power * time


@formula
def energy_per_token(energy: Value, tokens: Value) -> Value:
    r"""Energy that one token costs.

    $$ E_1 = \frac{E}{T} $$

    Parameters
    ----------
    energy : [J]
        $E$, energy of all tokens.
    tokens : [token]
        $T$, tokens.

    Returns
    -------
    energy : [J]
        $E_1$, energy per token.

    References
    ----------
    Definition.
    """
    return energy / tokens


@formula
def energy_band_edge(prediction: Value, ratio: Value) -> Value:
    r"""Edge of the band in which a measured energy is expected to lie.

    $$ E_\pm = \rho\,E $$

    Parameters
    ----------
    prediction : [J]
        $E$, predicted energy.
    ratio : [1]
        $\rho$, measured over predicted energy at a percentile of runs that were not fitted on.

    Returns
    -------
    energy : [J]
        $E_\pm$, edge of the band.

    References
    ----------
    Counting of residuals: the tenth and ninetieth percentile hold four runs of five.
    """
    return ratio * prediction


@formula
def served_batch_energy_per_token(energy: Value, sequences: Value, output_len: Value) -> Value:
    r"""Energy per generated token of a batch of requests, their prompts included.

    A prefill makes a token even where none is decoded after it.

    $$ E_1 = \frac{E}{b\,\max(o, 1)} $$

    Parameters
    ----------
    energy : [J]
        $E$, energy of the batch from prompt to last token.
    sequences : [1]
        $b$, requests.
    output_len : [token]
        $o$, tokens generated for each.

    Returns
    -------
    energy : [J]
        $E_1$, energy per generated token.

    References
    ----------
    Counting.
    """
    return energy / (sequences * maximum(output_len, 1))
