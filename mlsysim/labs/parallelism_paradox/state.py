"""Everything a student can set in this lab."""

from __future__ import annotations

from mlsysim.labs.controls import Choice, Controls, Question, Slider, Switch
from mlsysim.labs.parallelism_paradox import design, scaling

__all__ = [
    "CONTROLS",
    "DERIVATION_1",
    "DERIVATION_2",
    "DESIGN",
    "EXPLORER",
    "PREDICTION_1",
    "PREDICTION_2",
    "REFLECTION_1",
    "REFLECTION_2",
]

PREDICTION_1 = Question(
    id="act1_prediction",
    label="Your prediction: why does the MFU fall as GPUs are added?",
    options={
        "software": "The communication library needs time for every member of the ring, and the "
        "ring gets longer.",
        "ratio": "Each GPU has less arithmetic to do between two exchanges of gradients, and an "
        "exchange takes as long as before or longer.",
        "memory": "The GPUs themselves slow down: caches and memory bandwidth are under more "
        "pressure.",
        "volume": "Every GPU that joins adds its gradients to what all others must receive, so "
        "the bytes to send grow with the cluster.",
    },
    right="ratio",
    locks=True,
)
REFLECTION_1 = Question(
    id="act1_reflection",
    label="Reflection: which change hides the exchange behind arithmetic, and leaves every number "
    "of the training as it is?",
    options={
        "faster": "GPUs that compute faster, so that a step is shorter.",
        "overlap": "Start to sum the gradients of the last layers while the backward pass still "
        "works on earlier ones.",
        "batch": "Fewer sequences per GPU, so that there are fewer gradients to exchange.",
        "quantize": "Send gradients in 8 bits instead of 16.",
    },
    right="overlap",
)
PREDICTION_2 = Question(
    id="act2_prediction",
    label="Your prediction: which way to split GPT-3 over 1,024 GPUs is best?",
    options={name: option.label for name, option in design.OPTIONS.items()},
    right="balanced",
    locks=True,
)
REFLECTION_2 = Question(
    id="act2_reflection",
    label="Reflection: why does tensor parallelism stay within one server?",
    options={
        "software": "The frameworks cannot run it over several servers.",
        "every_layer": "Every layer waits for its all-reduces, and between servers they are "
        "slower and nothing hides them.",
        "shared_memory": "It needs memory that all GPUs of a group share, which only a server has.",
        "numerics": "Sums that cross the network are rounded differently, and training becomes "
        "unstable.",
    },
    right="every_layer",
)
DERIVATION_1 = Switch(
    id="show_derivation_1", label="How this MFU follows from the numbers put in, step by step"
)
DERIVATION_2 = Switch(
    id="show_derivation_2", label="How bubble, memory and MFU follow from the numbers put in"
)

EXPLORER = (
    Choice(
        id="model",
        label="Model",
        options={name: row.name for name, row in scaling.MODELS.items()},
        first=scaling.MAIL.model,
    ),
    Slider(id="gpus", label="GPUs", values=scaling.GPUS, first=scaling.GPUS[0]),
    Choice(
        id="held",
        label="What stays the same as GPUs are added",
        options={"global": "the global batch", "each": "the batch of each GPU"},
        first="global",
    ),
    Slider(
        id="global_batch",
        label="Global batch",
        values=(256, 512, 1024, 2048, 4096),
        first=scaling.MAIL.batch,
        unit="sequences",
    ),
    Slider(
        id="gpu_batch",
        label="Batch of each GPU",
        values=(1, 2, 4, 8, 16, 32, 64),
        first=8,
        unit="sequences",
    ),
    Choice(
        id="fabric",
        label="Between servers",
        options={
            name: f"{row.name}, {row.bandwidth.to('GB/s').magnitude:g} GB/s per GPU"
            + (" (no such network exists)" if name == "nvlink4" else "")
            for name, row in scaling.FABRICS.items()
        },
        first=scaling.MAIL.fabric,
    ),
    Choice(
        id="exchange",
        label="Gradients are exchanged",
        options={"after": "after the backward pass", "during": "during the backward pass"},
        first="after",
    ),
)
DESIGN = (
    Slider(
        id="tp",
        label="Tensor parallelism: GPUs that share each layer",
        values=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128),
        first=8,
        unit="GPUs",
    ),
    Slider(
        id="pp",
        label="Pipeline parallelism: stages",
        values=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128),
        first=1,
        unit="stages",
    ),
    Slider(
        id="microbatches",
        label="Microbatches of each replica",
        values=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192),
        first=1,
    ),
    Choice(
        id="zero",
        label="The optimizer's state",
        options={
            "replicated": "every replica holds all of it",
            "sharded": "replicas share it out (ZeRO-1)",
        },
        first="replicated",
    ),
)

CONTROLS = Controls(
    (
        PREDICTION_1,
        *EXPLORER,
        DERIVATION_1,
        REFLECTION_1,
        PREDICTION_2,
        *DESIGN,
        DERIVATION_2,
        REFLECTION_2,
    )
)
