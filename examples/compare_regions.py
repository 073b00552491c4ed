"""A month of 256 H100 in four places: the same energy, very different carbon."""

from mlsysim import EconomicsSolver, Infra, SustainabilitySolver, Systems

fleet = Systems.Clusters.Research_256
print(f"{'region':<24} {'energy':>10} {'carbon':>10} {'water':>10} {'electricity':>12}")
for grid in Infra.Grids:
    month = SustainabilitySolver.solve(fleet=fleet, duration_days=30, datacenter=grid)
    cost = EconomicsSolver.solve(fleet=fleet, duration_days=30, grid=grid)
    print(
        f"{month.region_name:<24} {month.total_energy.to('MWh'):>10.0f} "
        f"{month.carbon_footprint.to('tonne'):>10.1f} {month.water_usage.to('m**3'):>10.0f} "
        f"{cost.opex_energy.to('kUSD'):>12.1f}"
    )
