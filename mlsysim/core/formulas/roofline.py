"""The roofline: a device is bound by its arithmetic or by its memory."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum, minimum

__all__ = [
    "arithmetic_intensity",
    "attainable_rate",
    "bandwidth_utilization",
    "compute_time",
    "flops_utilization",
    "format_flops_utilization",
    "memory_time",
    "ridge_point",
    "roofline_time",
]


@formula
def arithmetic_intensity(flops: Value, bytes_moved: Value) -> Value:
    r"""Operations per byte that a computation moves through memory.

    $$ I = \frac{F}{Q} $$

    Parameters
    ----------
    flops : [flop]
        $F$, operations of the computation.
    bytes_moved : [byte]
        $Q$, bytes read from and written to memory.

    Returns
    -------
    intensity : [flop/byte]
        $I$, arithmetic intensity.

    References
    ----------
    @williams2009, "The Roofline Model" (there: operational intensity)
    """
    return flops / bytes_moved


@formula
def attainable_rate(intensity: Value, peak_rate: Value, bandwidth: Value) -> Value:
    r"""Arithmetic rate that a computation of a given intensity can reach.

    $$ R = \min(P,\; I\,B) $$

    Parameters
    ----------
    intensity : [flop/byte]
        $I$, arithmetic intensity.
    peak_rate : [flop/s]
        $P$, peak arithmetic rate.
    bandwidth : [byte/s]
        $B$, peak memory bandwidth.

    Returns
    -------
    rate : [flop/s]
        $R$, attainable rate.

    References
    ----------
    @williams2009, "The Roofline Model"
    """
    return minimum(peak_rate, intensity * bandwidth)


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
        $u_b$, mean bandwidth divided by the available bandwidth.

    References
    ----------
    Definition; the name is that of @databricks_inference
    """
    return traffic / (bandwidth * time)


@formula
def compute_time(flops: Value, peak_rate: Value, efficiency: Value) -> Value:
    r"""Time of the arithmetic alone, at a constant share of the peak rate.

    $$ t_c = \frac{F}{\eta\,P} $$

    Parameters
    ----------
    flops : [flop]
        $F$, operations of the computation.
    peak_rate : [flop/s]
        $P$, peak arithmetic rate.
    efficiency : [1]
        $\eta$, share of the peak rate that is reached, above 0 and at most 1.

    Returns
    -------
    time : [s]
        $t_c$, compute time.

    References
    ----------
    @williams2009; the constant efficiency is a ceiling below the roof, in the sense of "Adding
    Ceilings to the Model".
    """
    return flops / (efficiency * peak_rate)


@formula
def flops_utilization(flops: Value, time: Value, peak_rate: Value, devices: Value) -> Value:
    r"""Share of the devices' peak rate that a computation uses (MFU or HFU).

    With the model's own operations in $F$ this is the model FLOPs utilization; with recomputed
    operations counted too, the hardware FLOPs utilization. PaLM and Megatron-LM count attention in
    full even if it is causal, which gives a higher value than counting half.

    $$ u = \frac{F}{n\,P\,t} $$

    Parameters
    ----------
    flops : [flop]
        $F$, operations done by all devices together.
    time : [s]
        $t$, time taken.
    peak_rate : [flop/s]
        $P$, dense peak rate of one device.
    devices : [1]
        $n$, devices.

    Returns
    -------
    utilization : [1]
        $u$, share of peak.

    References
    ----------
    @chowdhery2022, section 4.1 and appendix B
    """
    return flops / (devices * peak_rate * time)


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
    operation counts at the peak rate of its own format, so the share is at most one even on devices
    with a faster wide format.

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
    @chowdhery2022, section 4.1, with the peak rate of each format.
    """
    return ((flops - wide_flops) / peak_rate + wide_flops / wide_peak_rate) / (devices * time)


@formula
def memory_time(bytes_moved: Value, bandwidth: Value) -> Value:
    r"""Time of the memory traffic alone.

    $$ t_m = \frac{Q}{B} $$

    Parameters
    ----------
    bytes_moved : [byte]
        $Q$, bytes read from and written to memory.
    bandwidth : [byte/s]
        $B$, memory bandwidth.

    Returns
    -------
    time : [s]
        $t_m$, memory time.

    References
    ----------
    @williams2009, "The Roofline Model"
    """
    return bytes_moved / bandwidth


@formula
def ridge_point(peak_rate: Value, bandwidth: Value) -> Value:
    r"""Intensity at which arithmetic and memory take equally long.

    $$ I^{*} = \frac{P}{B} $$

    Parameters
    ----------
    peak_rate : [flop/s]
        $P$, peak arithmetic rate.
    bandwidth : [byte/s]
        $B$, peak memory bandwidth.

    Returns
    -------
    intensity : [flop/byte]
        $I^{*}$, ridge point.

    References
    ----------
    @williams2009, "The Roofline Model"
    """
    return peak_rate / bandwidth


@formula
def roofline_time(compute: Value, memory: Value) -> Value:
    r"""Time of a computation with fully overlapping arithmetic and memory traffic.

    $$ t = \max(t_c,\; t_m) $$

    Parameters
    ----------
    compute : [s]
        $t_c$, compute time.
    memory : [s]
        $t_m$, memory time.

    Returns
    -------
    time : [s]
        $t$, time.

    References
    ----------
    @williams2009, "The Roofline Model"
    """
    return maximum(compute, memory)
