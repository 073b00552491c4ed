"""Scenarios to start from: one for each kind of place where models run.

The limits belong to the exercise, not to a product. Rates and bandwidths are those of datasheets,
and arithmetic reaches half of the peak rate, the textbook value, unless a row states otherwise.
Times exclude sensors, pre- and postprocessing, and the network.
"""

from mlsysim.core.catalog import Catalog
from mlsysim.core.units import Q_
from mlsysim.registry import Hardware, Infra, Models, Systems
from mlsysim.scenario.scenario import Limit, Scenario
from mlsysim.scenario.systems import without_facility


class Scenarios(Catalog):
    """Scenarios to start from; create variants with `dataclasses.replace`."""

    Smart_Doorbell = Scenario(
        name="Smart doorbell",
        description="A doorbell camera detects people on a microcontroller.",
        task="inference",
        workload=Models.WakeVision,
        system=Hardware.ESP32_S3,
        arguments={"precision": "int8", "efficiency": 0.017},
        limits=(Limit(metric="latency", at_most=Q_(200, "ms")),),
        duration_days=365,
        region=without_facility(Infra.US_Avg),
        macro_limits=(Limit(metric="total_energy", at_most=Q_(5, "kWh")),),
    )
    """Misses its limit. Microcontrollers reach only a small share of their peak: Espressif's own
    kernels take 54 ms (https://github.com/espressif/esp-tflite-micro) for a person detector with
    7.16 million multiply-accumulates (counted from its layers), which is 1.7% of the peak. At the
    same share, the 35.9 million of this network take 275 ms. At 160 x 160 pixels the network has
    18.3 million and meets the limit."""

    Autonomous_Vehicle = Scenario(
        name="Autonomous vehicle",
        description="A module in the car detects objects in each frame of one camera.",
        task="inference",
        workload=Models.YOLOv8_Nano,
        system=Hardware.Jetson_Orin_NX,
        arguments={"precision": "fp16"},
        limits=(
            Limit(metric="latency", at_most=Q_(10, "ms")),
            Limit(metric="throughput", at_least=Q_(30, "sample/s")),
        ),
        duration_days=365,
        region=without_facility(Infra.US_Avg),
        macro_limits=(Limit(metric="total_energy", at_most=Q_(250, "kWh")),),
    )
    """Meets its limit with room to spare, on paper: a batch of one reaches less than half of a
    GPU's peak, and a roofline does not count the time to launch kernels."""

    Local_Training = Scenario(
        name="Local training",
        description="One laptop trains BERT Base over a weekend.",
        task="training",
        workload=Models.BERT_Base,
        system=Hardware.MacBook_M3_Max,
        arguments={"batch_size": 32, "precision": "bf16"},
        limits=(
            Limit(metric="step_latency_total", at_most=Q_(3, "s")),
            Limit(metric="memory", at_most=Q_(64, "GB")),
        ),
        duration_days=2,
        region=without_facility(Infra.Quebec),
        kwh_price=Q_(0.08, "USD/kWh"),
        macro_limits=(Limit(metric="opex_energy", at_most=Q_(1, "USD")),),
    )
    """Fits easily but trains slowly: a laptop has plenty of memory, but not much compute."""

    Frontier_Training = Scenario(
        name="Frontier training",
        description="8,192 H100 train Llama 3 70B on 15 trillion tokens within a month.",
        task="training",
        workload=Models.Llama3_70B,
        system=Systems.Clusters.Frontier_8K,
        arguments={
            "batch_size": 2048,
            "precision": "bf16",
            "tp_size": 8,
            "pp_size": 4,
            "zero_stage": 1,
            "microbatch_count": 8,
            "virtual_stages": 5,
            "sequence_parallel": True,
        },
        limits=(
            Limit(metric="token_throughput", at_least=Q_(15 / 30, "Ttoken/day")),
            Limit(metric="mfu", at_least=0.35),
        ),
        duration_days=30,
        region=Infra.Hyperscale_US,
        kwh_price=Q_(0.0806, "USD/kWh"),
        macro_limits=(
            Limit(metric="carbon_footprint", at_most=Q_(3500, "tonne")),
            Limit(metric="period_cost", at_most=Q_(10, "MUSD")),
        ),
    )
    """The interleaved pipeline is needed to meet the limit. Without it, filling and draining would
    add three eighths to the work of a stage instead of three fortieths, and the utilization would
    miss its limit. With sharded optimizer states, most of the gradient reduction overlaps with the
    passes."""
