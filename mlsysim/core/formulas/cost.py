"""Cost: what a fleet costs to buy and to run."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = [
    "amortized_cost",
    "electricity_cost",
    "maintenance_cost",
    "operating_cost",
    "ownership_cost",
    "purchase_cost",
]


@formula
def purchase_cost(nodes: Value, unit_price: Value) -> Value:
    r"""Price of a fleet's servers; the network between them is not counted.

    $$ K = n\,p_n $$

    Parameters
    ----------
    nodes : [1]
        $n$, servers.
    unit_price : [USD]
        $p_n$, price of a server with its devices.

    Returns
    -------
    cost : [USD]
        $K$, price of the fleet.

    References
    ----------
    Counting.
    """
    return nodes * unit_price


@formula
def electricity_cost(energy: Value, kwh_price: Value) -> Value:
    r"""Cost of electricity.

    $$ X_e = p_e\,E_f $$

    Parameters
    ----------
    energy : [J]
        $E_f$, electricity drawn.
    kwh_price : [USD/J]
        $p_e$, price of electricity.

    Returns
    -------
    cost : [USD]
        $X_e$, cost of electricity.

    References
    ----------
    Cui et al., a model of total cost of ownership (infrastructure, servers, power, network,
    maintenance), https://synapsesocial.com/papers/W2743999796
    """
    return energy * kwh_price


@formula
def maintenance_cost(capex: Value, maintenance_rate: Value, time: Value) -> Value:
    r"""Cost of repair and support, in proportion to the purchase price.

    $$ X_m = \mu\,K\,t $$

    Parameters
    ----------
    capex : [USD]
        $K$, purchase price.
    maintenance_rate : [1/s]
        $\mu$, yearly share of the price, per unit of time.
    time : [s]
        $t$, time.

    Returns
    -------
    cost : [USD]
        $X_m$, cost of maintenance.

    References
    ----------
    Definition. As a share of the purchase price a year: CTWatch Quarterly (May 2006), Designing and
    Supporting High-End Computational Facilities,
    https://icl.utk.edu/ctwatch/quarterly/articles/2006/05/designing-and-supporting-high-end-computational-facilities/2/index.html
    """
    return capex * maintenance_rate * time


@formula
def operating_cost(electricity: Value, maintenance: Value) -> Value:
    r"""Cost of running a fleet: electricity and maintenance, without staff and building.

    $$ X = X_e + X_m $$

    Parameters
    ----------
    electricity : [USD]
        $X_e$, cost of electricity.
    maintenance : [USD]
        $X_m$, cost of maintenance.

    Returns
    -------
    cost : [USD]
        $X$, operating cost.

    References
    ----------
    Cui et al., a model of total cost of ownership (infrastructure, servers, power, network,
    maintenance), https://synapsesocial.com/papers/W2743999796
    """
    return electricity + maintenance


@formula
def ownership_cost(capital: Value, operating: Value) -> Value:
    r"""Cost of owning a fleet.

    $$ O = K + X $$

    Parameters
    ----------
    capital : [USD]
        $K$, cost of capital: the whole purchase price, or its share of a time.
    operating : [USD]
        $X$, operating cost of the time.

    Returns
    -------
    cost : [USD]
        $O$, cost of owning.

    References
    ----------
    Koomey et al., A Simple Model for Determining True Total Cost of Ownership for Data Centers,
    Uptime Institute, https://studylib.net/doc/8930168/
    """
    return capital + operating


@formula
def amortized_cost(capex: Value, time: Value, service_life: Value) -> Value:
    r"""Part of a purchase price that falls to a time of use, the same for every hour of service.

    $$ K_t = K\,\frac{t}{\Lambda} $$

    Parameters
    ----------
    capex : [USD]
        $K$, purchase price.
    time : [s]
        $t$, time of use.
    service_life : [s]
        $\Lambda$, time that the hardware serves in all.

    Returns
    -------
    cost : [USD]
        $K_t$, share of that time.

    References
    ----------
    Microsoft, Alphabet, Amazon and Meta (2022), annual reports: cost of servers spread over their
    useful lives, https://shaulkoral.com/useful-life-of-servers-and-network-assets-at-tech-companies/
    """
    return capex * time / service_life
