"""Images in sequences: the vision tower of Gemma 3 in training, serving and single passes."""

import dataclasses

import pytest

from mlsysim import (
    Calibrations,
    ConfigError,
    DistributedSolver,
    Hardware,
    Models,
    ServingSolver,
    SingleNodeSolver,
    Systems,
)
from mlsysim.core.types import FixedShapeModel
from mlsysim.registry.calibration.serving import pass_calibration_for, serving_calibration_for
from tests.samples import seconds

GEMMA = Models.Gemma3_27B
BLIND = dataclasses.replace(
    GEMMA, vision=None, parameters=GEMMA.parameters - GEMMA.vision.network.parameters
)
# SigLIP of Gemma 3: 27 layers, 1,152 wide, with a block of 4,304; images of 896 x 896 in patches of
# 14 x 14 are 64 x 64 of them, of which 256 tokens become elements of the residual stream, 5,376
# wide. Attention is not causal: each patch has two products with all patches.
PATCHES, WIDTH, INNER, LAYERS = 64 * 64, 1152, 4304, 27
MATRICES = 3 * 14 * 14 * WIDTH + LAYERS * (4 * WIDTH**2 + 2 * WIDTH * INNER)
PRODUCTS = PATCHES * MATRICES + 256 * WIDTH * 5376
IMAGE = 2 * (PRODUCTS + 2 * LAYERS * PATCHES**2 * WIDTH)
WRITTEN = PATCHES * (WIDTH + LAYERS * (5 * WIDTH + INNER)) + 256 * 5376
PEAK = 989.4e12
PASS = {"model": GEMMA, "hardware": Hardware.H100, "seq_len": 4096, "precision": "bf16"}
STEP = {
    "model": GEMMA,
    "fleet": Systems.Clusters.Research_256,
    "batch_size": 256,
    "precision": "bf16",
    "zero_stage": 3,
}


def test_an_image_is_a_forward_pass_of_the_tower():
    one, four = (SingleNodeSolver.solve(**PASS, images=n, batch_size=2) for n in (1, 4))
    assert (four.flops - one.flops).to("flop").magnitude == pytest.approx(2 * 3 * IMAGE)
    rate = pass_calibration_for(Hardware.H100).gemm("bf16") * PEAK
    assert seconds(four.latency - one.latency) == pytest.approx(2 * 3 * IMAGE / rate)
    one, four = (SingleNodeSolver.solve(**PASS, images=n, efficiency=0.5) for n in (1, 4))
    assert seconds(four.latency - one.latency) == pytest.approx(3 * IMAGE / (0.5 * PEAK))


@pytest.mark.parametrize("solver", [SingleNodeSolver, ServingSolver])
def test_without_images_the_tower_does_nothing(solver):
    for efficiency in (None, 0.5):
        plan = PASS | {"efficiency": efficiency}
        one, other = (solver.solve(**plan | {"model": model}) for model in (GEMMA, BLIND))
        times = [name for name in dict(one) if name.endswith(("latency", "ttft", "itl"))]
        assert [one[name] for name in times] == [other[name] for name in times]


def test_a_server_passes_images_in_prefill_only():
    plan = PASS | {"output_len": 128, "hardware": Systems.Nodes.DGX_H100, "tp_size": 2}
    text, two = (ServingSolver.solve(**plan, images=n) for n in (0, 2))
    rate = serving_calibration_for(Hardware.H100).gemm("bf16") * PEAK
    more = seconds(two.prefill_latency - text.prefill_latency)
    assert more == pytest.approx(2 * IMAGE / 2 / rate)
    assert two.decode_latency == text.decode_latency
    assert two.total_memory_required == text.total_memory_required
    assert two.ttft > text.ttft
    text, two = (ServingSolver.solve(**plan, images=n, efficiency=0.5) for n in (0, 2))
    assert seconds(two.ttft - text.ttft) == pytest.approx(2 * IMAGE / 2 / (0.5 * PEAK))
    assert two.itl == text.itl


@pytest.mark.parametrize(("frozen", "passes"), [(None, 3), (16, 1)])
def test_training_passes_the_tower_forward_and_backward(frozen, passes):
    plan = STEP | {"lora_rank": frozen}
    text, two = (DistributedSolver.solve(**plan, images=n) for n in (0, 2))
    c = Calibrations.H100_Megatron
    assert text.calibration == c.name
    rate = c.software.gemm_speed * c.machine.gemm("bf16") * PEAK
    # One sequence per device
    more = passes * 2 * IMAGE
    assert seconds(two.compute_latency - text.compute_latency) == pytest.approx(more / rate)
    assert (two.device_flops - text.device_flops).to("flop").magnitude == pytest.approx(more)
    kept = (two.activation_memory - text.activation_memory).to("byte").magnitude
    assert kept == pytest.approx(0 if frozen else 2 * 2 * WRITTEN)
    text, two = (DistributedSolver.solve(**plan, images=n, efficiency=0.5) for n in (0, 2))
    more = seconds(two.compute_latency - text.compute_latency)
    assert more == pytest.approx(passes * 2 * IMAGE / (0.5 * PEAK))


def test_the_first_stage_has_the_tower():
    plan = STEP | {"pp_size": 4, "zero_stage": 1, "microbatch_count": 4, "tp_size": 2}

    def compute(images, **more):
        r = DistributedSolver.solve(**plan | more, images=images)
        return seconds(r.compute_latency)

    # Eight sequences of each replica, two at a time; the first stage is behind the last one with
    # the head until it has several images.
    c = Calibrations.H100_Megatron
    rate = c.software.gemm_speed * c.machine.gemm("bf16") * PEAK
    image = 8 * 3 * IMAGE / 2 / rate
    assert compute(1, first_stage_layers=8) == compute(0, first_stage_layers=8)
    assert compute(12) - compute(11) == pytest.approx(image)
    # DualPipe: a device has half of the first stage and half of the last.
    both = {"schedule": "dualpipe", "microbatch_count": 8, "last_stage_layers": 20}
    both["first_stage_layers"] = 20
    assert compute(2, **both) - compute(1, **both) == pytest.approx(image / 2)


@pytest.mark.parametrize("images", [0, 4])
def test_the_last_stage_has_neither_tower_nor_images(images):
    plan = STEP | {"pp_size": 2, "zero_stage": 0, "seq_len": 8192, "tp_size": 8}
    plan |= {"first_stage_layers": 12}
    seeing = DistributedSolver.solve(**plan, images=images)
    blind = DistributedSolver.solve(**plan | {"model": BLIND})
    assert seeing.memory.to("byte").magnitude == pytest.approx(blind.memory.to("byte").magnitude)
    # Weights, gradients, master weights and moments of the tower, an eighth on each device
    plan |= {"first_stage_layers": 50}
    seeing, blind = (
        DistributedSolver.solve(**plan | {"model": model, "images": n}).memory.to("byte").magnitude
        for model, n in ((GEMMA, images), (BLIND, 0))
    )
    tower = GEMMA.vision.network.si("parameters")
    kept = 2 * images * plan["batch_size"] / 16 * WRITTEN
    assert seeing - blind == pytest.approx((16 * tower + kept) / 8)


@pytest.mark.parametrize("solver", [SingleNodeSolver, ServingSolver, DistributedSolver])
@pytest.mark.parametrize("change", [{"model": Models.Llama3_8B}, {"images": 17, "seq_len": 4096}])
def test_images_that_cannot_be_seen_are_refused(solver, change):
    plan = (STEP if solver is DistributedSolver else PASS) | {"images": 1} | change
    with pytest.raises(ConfigError) as fault:
        solver.solve(**plan)
    assert fault.value.argument == "images"


def test_a_network_of_fixed_shape_sees_no_images():
    assert isinstance(Models.ResNet50, FixedShapeModel)
    with pytest.raises(ConfigError) as fault:
        SingleNodeSolver.solve(model=Models.ResNet50, hardware=Hardware.H100, images=1)
    assert fault.value.argument == "images"
