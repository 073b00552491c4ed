"""What does a fleet cost, bought or rented, and what does a token cost on it?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from mlsysim.core.errors import ConfigError
from mlsysim.core.types import Datacenter, Fleet, GridProfile
from mlsysim.core.units import Quantity, format_number
from mlsysim.registry.infrastructure import Infra
from mlsysim.registry.operations import OWNERSHIP, POWER_DRAW
from mlsysim.solvers.amounts import Amount
from mlsysim.solvers.arguments import Argument, Noun
from mlsysim.solvers.base import Plan, Solver
from mlsysim.solvers.facility import ORIGINS, POWER_ARGUMENTS, as_datacenter, check_power
from mlsysim.solvers.kernels.operation import fleet_cost
from mlsysim.solvers.results.economics import EconomicsResult

__all__ = ["EconomicsSolver"]

_PLAN = Plan(
    fleet_cost,
    {
        **ORIGINS,
        "unit_price": ("unit_price", "fleet.node.unit_price"),
        "kwh_price": ("kwh_price", "ownership.kwh_price"),
        "maintenance_rate": ("maintenance_rate", "ownership.maintenance_rate"),
        "service_life": ("service_life", "ownership.service_life"),
        "rental_price": ("rental_price", "unknown"),
        "token_throughput": ("token_throughput", "unknown"),
        "training_tokens": ("training_tokens", "unknown"),
    },
)


class EconomicsSolver(Solver[EconomicsResult]):
    """What does a fleet cost, bought or rented, and what does a token cost on it?

    Bought: servers, electricity and maintenance. Rented: a price per device and hour. Network,
    building, staff, capital and resale are not counted.
    """

    parameters: ClassVar[Mapping[str, Argument]] = {
        **POWER_ARGUMENTS,
        "kwh_price": Amount(unit="USD/kWh", plain=True, zero=True, optional=True),
        "datacenter": Noun(
            kinds=(Datacenter, GridProfile), hint="Infra.Hyperscale_US", optional=True
        ),
        "grid": Noun(kinds=(GridProfile,), hint="Infra.US_Avg", optional=True),
        "unit_price": Amount(unit="USD", plain=True, zero=True, optional=True),
        "maintenance_rate": Amount(unit="1/year", plain=True, zero=True, optional=True),
        "service_life": Amount(unit="year", optional=True),
        "rental_price": Amount(unit="USD/h", plain=True, zero=True, optional=True),
        "token_throughput": Amount(unit="1/s", plain=True, optional=True),
        "training_tokens": Amount(unit="token", plain=True, optional=True),
    }
    constants: ClassVar[Mapping[str, Any]] = {
        "power_draw": POWER_DRAW,
        "ownership": OWNERSHIP,
        "unknown": math.nan,
    }
    result = EconomicsResult

    @classmethod
    def solve(
        cls,
        *,
        fleet: Fleet,
        duration_days: float | Quantity,
        kwh_price: float | Quantity | None = None,
        datacenter: Datacenter | GridProfile | None = None,
        grid: GridProfile | None = None,
        utilization: float | None = None,
        host_power: Quantity | None = None,
        unit_price: float | Quantity | None = None,
        maintenance_rate: float | Quantity | None = None,
        service_life: Quantity | None = None,
        rental_price: float | Quantity | None = None,
        token_throughput: float | Quantity | None = None,
        training_tokens: float | None = None,
    ) -> EconomicsResult:
        """Sum up what the fleet costs over a time.

        Parameters
        ----------
        fleet
            The servers. The network between them is not counted.
        duration_days
            Time in days, or a quantity of time.
        kwh_price
            Price of electricity in USD per kWh. `None` takes what industry in the United States
            pays on average, wherever the fleet stands.
        datacenter
            The facility, for its PUE.
        grid
            Where no facility is given: the region whose typical PUE counts. `None` takes the
            United States.
        utilization
            Where the devices stand between idle (0) and their design power (1): a guess, or the
            `power_utilization` of a training step or a serving engine. `None` takes 1.
        host_power
            Power of one server apart from its devices. `None` takes a share of what the server's
            rated power leaves for it, as measured on one.
        unit_price
            Price of one server with its devices, in USD; `None` takes that of `fleet.node`.
        maintenance_rate
            Repair and support per year, as a share of the purchase price; `None` takes 5%.
        service_life
            Time over which the purchase price is spread; `None` takes five years.
        rental_price
            Rent of one device, in USD per hour.
        token_throughput
            Tokens that the whole fleet processes, per second.
        training_tokens
            Tokens of a training run that is to be priced; needs `token_throughput`.

        Returns
        -------
        EconomicsResult
            Costs; `None` where a price or a throughput was not given.

        Raises
        ------
        ConfigError
            If an argument is out of range, if neither a purchase price nor a rent is known, or
            if nothing tells the power of the servers.

        Notes
        -----
        `tco` holds the whole purchase price, however short the time. What the time itself costs,
        with the part of the price that falls to it, is `period_cost`; costs per hour and per
        token are shares of that.

        Examples
        --------
        >>> from mlsysim import EconomicsSolver, Systems
        >>> r = EconomicsSolver.solve(
        ...     fleet=Systems.Clusters.Research_256, duration_days=365, kwh_price=0.08
        ... )
        >>> print(f"{r.capex_usd:,.0f} {r.total_opex_usd:,.0f} {r.tco_usd:,.0f}")
        8,640,000 695,618 9,335,618
        >>> print(f"{r.cost_per_device_hour:.2f}")
        1.08 USD/h
        """
        return cls._run(
            fleet=fleet,
            duration_days=duration_days,
            kwh_price=kwh_price,
            datacenter=datacenter,
            grid=grid,
            utilization=utilization,
            host_power=host_power,
            unit_price=unit_price,
            maintenance_rate=maintenance_rate,
            service_life=service_life,
            rental_price=rental_price,
            token_throughput=token_throughput,
            training_tokens=training_tokens,
        )

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check every argument, and that there are prices enough for an answer."""
        arguments = super().admit(given)
        place = arguments["datacenter"] or arguments["grid"] or Infra.Grids.US_Avg
        arguments["datacenter"] = as_datacenter(place)
        check_power(arguments)
        _check_prices(arguments)
        if arguments["training_tokens"] is not None and arguments["token_throughput"] is None:
            raise ConfigError(
                "training_tokens needs the rate at which the fleet processes them: pass "
                "token_throughput=, such as token_throughput of DistributedSolver's result",
                argument="training_tokens",
            )
        return arguments

    @classmethod
    def plan(cls, arguments: Mapping[str, Any]) -> Plan:
        """There is one kernel for all."""
        return _PLAN


def _check_prices(arguments: Mapping[str, Any]) -> None:
    node = arguments["fleet"].node
    known = (node.unit_price, arguments["unit_price"], arguments["rental_price"])
    if any(price is not None for price in known):
        return
    device = node.accelerator.unit_price
    hint = (
        ""
        if device is None
        else f" (its {node.accelerators_per_node} devices alone cost "
        f"{format_number(device * node.accelerators_per_node)})"
    )
    raise ConfigError(
        f"unit_price is missing: the price of {node.name} is not known{hint}; pass "
        'unit_price=Q_(..., "USD") for one server with its devices, or rental_price='
        'Q_(..., "USD/h") for one device',
        argument="unit_price",
    )
