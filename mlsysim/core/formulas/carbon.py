"""Carbon and water: what electricity and the making of hardware leave behind."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = [
    "amortized_carbon",
    "carbon_sum",
    "embodied_carbon",
    "operational_carbon",
    "site_water",
]


@formula
def operational_carbon(energy: Value, carbon_intensity: Value) -> Value:
    r"""Greenhouse gas of electricity from a grid.

    $$ C = \gamma\,E $$

    Parameters
    ----------
    energy : [J]
        $E$, electricity drawn.
    carbon_intensity : [kg/J]
        $\gamma$, CO2 equivalent per unit of electricity.

    Returns
    -------
    carbon : [kg]
        $C$, CO2 equivalent.

    References
    ----------
    Patterson et al. (2021), Carbon Emissions and Large Neural Network Training, section 2.5,
    https://arxiv.org/abs/2104.10350
    """
    return energy * carbon_intensity


@formula
def embodied_carbon(
    nodes: Value, devices_per_node: Value, device_carbon: Value, host_carbon: Value
) -> Value:
    r"""Greenhouse gas of making a fleet's servers.

    $$ C_m = n\,(d\,c_d + c_h) $$

    Parameters
    ----------
    nodes : [1]
        $n$, servers.
    devices_per_node : [1]
        $d$, devices of a server.
    device_carbon : [kg]
        $c_d$, CO2 equivalent of making a device.
    host_carbon : [kg]
        $c_h$, CO2 equivalent of making a server without its devices.

    Returns
    -------
    carbon : [kg]
        $C_m$, CO2 equivalent.

    References
    ----------
    EcoLogits (2024), Environmental Impacts of LLM Inference, server embodied impacts,
    https://github.com/genai-impact/ecologits/blob/main/docs/methodology/llm_inference.md
    """
    return nodes * (devices_per_node * device_carbon + host_carbon)


@formula
def amortized_carbon(carbon: Value, time: Value, service_life: Value) -> Value:
    r"""Part of the embodied carbon that falls to a time of use.

    $$ C_t = C_m\,\frac{t}{\Lambda} $$

    Parameters
    ----------
    carbon : [kg]
        $C_m$, CO2 equivalent of making the hardware.
    time : [s]
        $t$, time of use.
    service_life : [s]
        $\Lambda$, time that the hardware serves in all.

    Returns
    -------
    carbon : [kg]
        $C_t$, CO2 equivalent of that time.

    References
    ----------
    EcoLogits (2024), Environmental Impacts of LLM Inference, request embodied impacts,
    https://github.com/genai-impact/ecologits/blob/main/docs/methodology/llm_inference.md
    """
    return carbon * time / service_life


@formula
def carbon_sum(operational: Value, embodied: Value) -> Value:
    r"""Greenhouse gas of electricity and of making the hardware.

    $$ C_s = C + C_t $$

    Parameters
    ----------
    operational : [kg]
        $C$, CO2 equivalent of the electricity.
    embodied : [kg]
        $C_t$, CO2 equivalent of making the hardware, as far as it is amortized.

    Returns
    -------
    carbon : [kg]
        $C_s$, CO2 equivalent of both.

    References
    ----------
    Luccioni et al. (2022), Estimating the Carbon Footprint of BLOOM, abstract,
    https://arxiv.org/abs/2211.02001
    """
    return operational + embodied


@formula
def site_water(it_energy: Value, wue: Value) -> Value:
    r"""Water that a facility consumes on its site; that of the power plants is not counted.

    $$ V = \omega\,E $$

    Parameters
    ----------
    it_energy : [J]
        $E$, energy of the computers.
    wue : [m**3/J]
        $\omega$, water usage effectiveness.

    Returns
    -------
    water : [m**3]
        $V$, water.

    References
    ----------
    The Green Grid (2011), Water Usage Effectiveness (WUE), as in
    https://www.techtarget.com/searchdatacenter/definition/WUE-water-usage-effectiveness
    """
    return it_energy * wue
