"""What do a fleet's energy, carbon and water come to?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from mlsysim.core.types import Datacenter, Fleet, GridProfile
from mlsysim.core.units import Quantity
from mlsysim.registry.operations import EMBODIED_CARBON, OWNERSHIP, POWER_DRAW
from mlsysim.solvers.amounts import Amount
from mlsysim.solvers.arguments import Argument, Noun
from mlsysim.solvers.base import Plan, Solver
from mlsysim.solvers.facility import ORIGINS, POWER_ARGUMENTS, as_datacenter, check_power
from mlsysim.solvers.kernels.operation import fleet_footprint
from mlsysim.solvers.results.sustainability import SustainabilityResult

__all__ = ["SustainabilitySolver"]

_PLAN = Plan(
    fleet_footprint,
    {
        **ORIGINS,
        "carbon_intensity": "datacenter.grid.carbon_intensity",
        "wue": "datacenter.wue",
        "device_carbon": ("device_carbon", "embodied.device"),
        "host_carbon": ("host_carbon", "embodied.host"),
        "service_life": ("service_life", "ownership.service_life"),
    },
)
# A device that stands alone is no server: no figure for servers holds for it, and it has no host.
_ALONE = Plan(
    fleet_footprint,
    {
        **_PLAN.origins,
        "device_carbon": ("device_carbon", "unknown"),
        "host_carbon": ("host_carbon", "no_host"),
    },
)


class SustainabilitySolver(Solver[SustainabilityResult]):
    """What do a fleet's energy, carbon and water come to?

    Power between idle and design power in proportion to utilization, plus the rest of the server;
    PUE for the facility; the grid's carbon intensity for the electricity; WUE for water on site;
    and the share of the hardware's own carbon that falls to the time.
    """

    parameters: ClassVar[Mapping[str, Argument]] = {
        **POWER_ARGUMENTS,
        "datacenter": Noun(
            kinds=(Datacenter, GridProfile), hint="Infra.Hyperscale_US, or the grid Infra.US_Avg"
        ),
        "device_carbon": Amount(unit="kg", plain=True, zero=True, optional=True),
        "host_carbon": Amount(unit="kg", plain=True, zero=True, optional=True),
        "service_life": Amount(unit="year", optional=True),
    }
    constants: ClassVar[Mapping[str, Any]] = {
        "power_draw": POWER_DRAW,
        "embodied": EMBODIED_CARBON,
        "ownership": OWNERSHIP,
        "unknown": math.nan,
        "no_host": 0.0,
    }
    result = SustainabilityResult

    @classmethod
    def solve(
        cls,
        *,
        fleet: Fleet,
        duration_days: float | Quantity,
        datacenter: Datacenter | GridProfile,
        utilization: float | None = None,
        host_power: Quantity | None = None,
        device_carbon: float | Quantity | None = None,
        host_carbon: float | Quantity | None = None,
        service_life: Quantity | None = None,
    ) -> SustainabilityResult:
        """Sum up energy, carbon and water.

        Parameters
        ----------
        fleet
            The servers. The network between them is not counted.
        duration_days
            Time in days, or a quantity of time.
        datacenter
            The facility; or a grid, which stands for a typical facility of its region.
        utilization
            Where the devices stand between idle (0) and their design power (1): a guess, or the
            `power_utilization` of a training step or a serving engine, predicted from its work.
            `None` takes 1, as model cards do: an upper bound.
        host_power
            Power of one server apart from its devices. `None` takes a share of what the server's
            rated power leaves for it, as measured on one.
        device_carbon
            CO2 equivalent of making one device, in kg. `None` takes the H100's for the devices of
            a server. For a device that stands alone, such as a laptop or a microcontroller, nobody
            knows, and neither `embodied_carbon` nor `total_carbon` is known.
        host_carbon
            CO2 equivalent of making a server without its devices, in kg. `None` takes that of a
            server for eight GPUs, and nothing for a device that stands alone.
        service_life
            Time over which the carbon of making the hardware is spread; `None` takes five years.

        Returns
        -------
        SustainabilityResult
            Energy, carbon and water.

        Raises
        ------
        ConfigError
            If an argument is out of range, or nothing tells the power of the servers.

        Notes
        -----
        Carbon is location-based: contracts for green electricity change nothing. Water is what
        the site consumes; power plants are not counted.

        Examples
        --------
        >>> from mlsysim import Infra, SustainabilitySolver, Systems
        >>> r = SustainabilitySolver.solve(
        ...     fleet=Systems.Clusters.Research_256, duration_days=30, datacenter=Infra.Quebec
        ... )
        >>> print(f"{r.total_energy.to('MWh'):.0f}, {r.carbon_footprint.to('tonne'):.1f}")
        271 MWh, 7.3 t
        >>> r.region_name
        'Québec'
        """
        return cls._run(
            fleet=fleet,
            duration_days=duration_days,
            datacenter=datacenter,
            utilization=utilization,
            host_power=host_power,
            device_carbon=device_carbon,
            host_carbon=host_carbon,
            service_life=service_life,
        )

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check every argument, and that the power is known."""
        arguments = super().admit(given)
        arguments["datacenter"] = as_datacenter(arguments["datacenter"])
        check_power(arguments)
        return arguments

    @classmethod
    def plan(cls, arguments: Mapping[str, Any]) -> Plan:
        """There is one kernel for all; what a device that stands alone embodies is not known."""
        node = arguments["fleet"].node
        devices = node.accelerators_per_node * node.accelerator.si("tdp")
        return _ALONE if node.power is not None and node.si("power") <= devices else _PLAN

    @classmethod
    def rest(
        cls, values: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> dict[str, Callable[[], Any]]:
        """Name the region."""
        return {"region_name": lambda: arguments["datacenter"].grid.name}
