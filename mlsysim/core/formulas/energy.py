"""Energy: power over time."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = [
    "device_energy",
    "facility_energy",
    "operational_carbon",
]


@formula
def device_energy(power: Value, time: Value) -> Value:
    r"""Energy of a device at constant power.

    $$ E = W\,t $$

    Parameters
    ----------
    power : [W]
        $W$, power.
    time : [s]
        $t$, time.

    Returns
    -------
    energy : [J]
        $E$, energy.

    References
    ----------
    Definition of power.
    """
    return power * time


@formula
def facility_energy(it_energy: Value, pue: Value) -> Value:
    r"""Energy of the whole facility for the energy of its computers.

    $$ E_f = \epsilon\,E $$

    Parameters
    ----------
    it_energy : [J]
        $E$, energy of the computers.
    pue : [1]
        $\epsilon$, power usage effectiveness.

    Returns
    -------
    energy : [J]
        $E_f$, energy of the facility.

    References
    ----------
    Patterson et al. (2021), Carbon Emissions and Large Neural Network Training, section 2.5,
    https://arxiv.org/abs/2104.10350
    """
    return it_energy * pue


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
