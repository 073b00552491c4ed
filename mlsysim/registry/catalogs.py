"""Catalogs whose rows are in the files of `mlsysim/registry/data`.

`catalogs.pyi` names the rows for editors and type checkers: `python -m tools.stubs` writes it.
"""

from collections.abc import Mapping
from typing import Any

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import (
    Calibration,
    Datacenter,
    DeploymentTier,
    FixedShapeModel,
    Fleet,
    GridProfile,
    LinkCalibration,
    Machine,
    MoETransformerModel,
    NetworkCalibration,
    NetworkFabric,
    Node,
    PowerCalibration,
    ProductCalibration,
    Rack,
    RentalOffer,
    ServingCalibration,
    Software,
    TransformerModel,
    Workload,
)
from mlsysim.registry.hardware import Hardware
from mlsysim.registry.tables import Sections, constants, record_of, table

__all__ = [
    "MPT",
    "Calibrations",
    "Clusters",
    "Countries",
    "Datacenters",
    "Fabrics",
    "Frameworks",
    "Gemma",
    "Grids",
    "Infra",
    "Language",
    "LinkCalibrations",
    "Links",
    "Llama",
    "Machines",
    "Megatron",
    "Mistral",
    "MoE",
    "Nemotron",
    "NetworkCalibrations",
    "Nodes",
    "Offers",
    "OpenModels",
    "PowerCalibrations",
    "ProductCalibrations",
    "Qwen",
    "Racks",
    "Recommendation",
    "Regions",
    "ServingCalibrations",
    "Systems",
    "Tiers",
    "Tiny",
    "Vision",
]


class Fabrics(Catalog, rows=table("fabrics.csv", NetworkFabric)):
    """Networks between nodes.

    Bandwidths are per port and direction. Latencies are end to end, for an empty message.
    """


class Links(Catalog, rows=table("links.csv", NetworkFabric)):
    """Links between the devices of one node: all links of a device together, per direction."""


class Nodes(Catalog, rows=table("nodes.csv", Node, accelerator=Hardware, scale_up=Links)):
    """Servers, racks with one domain of fast links, and pods."""


class Clusters(
    Catalog, rows=table("clusters.csv", Fleet, note="about", node=Nodes, fabric=Fabrics)
):
    """Fleets for the tutorials, and published systems."""


class Tiers(Catalog, rows=table("tiers.csv", DeploymentTier)):
    """Classes of places where models run, with the budgets of one deployment."""


class Offers(Catalog, rows=table("offers.csv", RentalOffer, accelerator=Hardware)):
    """Rental prices of devices on given days, by provider, commitment and date.

    Offers for one device differ by a factor of up to 4 and change every month, so each price is a
    row with a date. `EconomicsSolver` accepts any of them, or your own. We found no public price of
    the others, such as Rubin, Trainium3 and Gaudi: state theirs as `rental_price`.
    """


class Systems(Fabrics, Links, Nodes, Clusters, Tiers, Offers):
    """All systems, by name and by kind."""

    Fabrics = Fabrics
    Links = Links
    Nodes = Nodes
    Clusters = Clusters
    Tiers = Tiers
    Offers = Offers


class Countries(Catalog, rows=table("countries.csv", GridProfile)):
    """Electricity of countries, from one edition of the data, and of Québec.

    Carbon intensities cover the life cycle, so hydropower is not free of emissions: reservoirs and
    dams count. Countries are comparable with each other: all figures are of 2024, except those of
    Iceland, Indonesia and Israel, of 2023. That of Québec is from another year. The price is that
    of a large industrial consumer without taxes; it is an estimate if it was compiled from tariffs.
    PUE is the world average, and WUE that of the United States, because no survey covers other
    countries.
    """


class Regions(Catalog, rows=table("regions.csv", GridProfile)):
    """Regions of the United States with hourly profiles, at the national price.

    A profile has the carbon intensity of each hour of a day, in g/kWh.
    """


class Grids(Countries, Regions):
    """Electricity by region."""

    Countries = Countries
    Regions = Regions


class Racks(Catalog, rows=table("racks.csv", Rack)):
    """Racks by cooling."""


class Datacenters(Catalog, rows=table("datacenters.csv", Datacenter, grid=Grids)):
    """Facilities on their grids."""


class Infra(Grids, Racks, Datacenters):
    """All infrastructure, by name and by kind."""

    Grids = Grids
    Racks = Racks
    Datacenters = Datacenters


class Machines(Catalog, rows=constants("machines.toml", Machine)):
    """Constants per device: the share of its datasheet that it reaches in training.

    ``python -m research.fits.training`` fits the constants of all machines and all software at
    once, to the rows marked ``calibrate`` in ``research/measurements``. Machines appear with
    several frameworks, and frameworks on several machines, so the fit can separate the two.
    Constants that the runs of a machine cannot identify stay near those of other machines, and are
    marked as estimates. Estimated 16-bit products are at most those of a measured sibling.
    """


class Frameworks(Catalog, rows=constants("frameworks.toml", Software)):
    """Constants of training software, per release, for any machine.

    They are fitted together with those of the machines. Constants that the runs of a release cannot
    identify stay near those of others, and are marked as estimates.
    """


class Calibrations(
    Catalog,
    rows=table("calibrations.csv", Calibration, machine=Machines, software=Frameworks),
):
    """Machines with software, with a band if there are eight or more published runs.

    ``python -m research.fits.training`` cross-validates them by leaving out one family of runs at a
    time. The band of a device without runs is wider: its lower edge comes from predicting each
    machine with the constants of the slowest other one (``--machines``), and its upper edge from
    AMD's MI300X in 2024, because a new stack is more often slower than faster.
    """


class ServingCalibrations(Catalog, rows=constants("serving.toml", ServingCalibration)):
    """Constants of serving engines, fitted to published runs, per generation of devices.

    ``python -m research.fits.serving`` fits the constants to the rows marked ``calibrate`` in
    ``research/measurements/serving.csv`` and ``serving_2.csv``. Constants that an engine's runs
    cannot determine are those of a similar engine or usual ones, and are marked as estimates. The
    two rows of libraries describe single passes, and ``python -m research.fits.passes`` fits them
    to ``research/measurements/passes.csv``. Constants of `Hopper_vLLM_Open` come from
    ``python -m research.fits.open_loop``.
    """


class PowerCalibrations(Catalog, rows=constants("power.toml", PowerCalibration)):
    """Energy of operations and bytes, per generation of devices.

    ``python -m research.fits.power`` fits the constants to the rows marked ``calibrate`` in
    ``research/measurements/energy.csv`` and ``energy_2.csv``.
    """


class NetworkCalibrations(Catalog, rows=table("networks.csv", NetworkCalibration)):
    """Constants of networks of fixed shape, per kind of device, engine and number format.

    ``python -m research.fits.networks`` fits them to the rows marked ``calibrate`` in
    ``research/measurements/tiny.csv`` (microcontrollers) and ``passes.csv`` (GPUs).
    """


class ProductCalibrations(Catalog, rows=constants("kernel_products.toml", ProductCalibration)):
    """Matrix products: one row per device and number format.

    ``python -m research.fits.kernels`` fits the constants to the rows marked ``calibrate`` in
    ``research/measurements/kernels.csv``. NVIDIA measured the times with cuBLAS and NCCL, one
    kernel after the other, on idle devices; training steps are slower and have their own constants.
    """


class LinkCalibrations(Catalog, rows=constants("kernel_links.toml", LinkCalibration)):
    """Collectives of NCCL within a server: one row per generation of NVLink.

    Fitted like the constants of products.
    """


class Llama(Catalog, rows=table("llama.csv", TransformerModel)):
    """Llama of three generations."""


class Megatron(Catalog, rows=table("megatron.csv", TransformerModel)):
    """GPT from 1.7 to 1,008 billion parameters; vocabulary of 51,200. None was fully trained."""


class MPT(Catalog, rows=table("mpt.csv", TransformerModel)):
    """MPT from 125 million to 70 billion parameters, with learned positions and biases.

    The published MPT-7B and MPT-30B have neither, so they are slightly smaller than these rows.
    """


class Vision(Catalog, rows=table("vision.csv", FixedShapeModel)):
    """Convolutional networks for images."""


class Tiny(Catalog, rows=table("tiny.csv", FixedShapeModel)):
    """Networks for microcontrollers."""


def _model(where: str, content: Mapping[str, Any]) -> Workload:
    """Create a model from its shape, or from the published configuration of its repository."""
    if "repository" in content:
        from mlsysim.registry.importer.published import PublishedModel

        published: PublishedModel = record_of(where, content, PublishedModel)
        return published.model()
    model: Workload = record_of(
        where, content, TransformerModel, MoETransformerModel, FixedShapeModel
    )
    return model


_models = Sections(["models.toml"], _model)


class Language(Llama, rows=_models("Language")):
    """Transformers for text."""


class MoE(Catalog, rows=_models("MoE")):
    """Transformers with experts: each token visits a few of a layer's many feed-forward blocks.

    `parameters` counts all experts, and includes routers, norms and biases; the experts that a
    token visits follow from the shape.
    """


class Qwen(Catalog, rows=_models("Qwen")):
    """Qwen 2 to 3.6, dense and with experts."""


class Gemma(Catalog, rows=_models("Gemma")):
    """Google's Gemma: layers with a window, and some that see everything."""


class Nemotron(Catalog, rows=_models("Nemotron")):
    """NVIDIA's hybrids: state-space layers, a few with attention, and experts."""


class Mistral(Catalog, rows=_models("Mistral")):
    """Models of Mistral AI beyond the first."""


class OpenModels(Catalog, rows=_models("OpenModels")):
    """Other models with published weights."""


class Recommendation(Catalog, rows=_models("Recommendation")):
    """Recommendation models. Most parameters are in tables, and a sample reads few of them."""
