"""Every control of this lab."""

from __future__ import annotations

from mlsysim_course.controls import Question, Selector, Slider, Toggle
from mlsysim_course.labs.parallelism_paradox import design, scaling

__all__ = [
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
    label="Your prediction: why does MFU fall as GPUs are added?",
    options={
        "software": "The communication library needs time for every member of the ring, and the "
        "ring gets longer.",
        "ratio": "Each GPU has less compute to do between gradient exchanges, while an exchange "
        "takes as long as before or longer.",
        "memory": "The GPUs themselves slow down because caches and memory bandwidth are under "
        "more pressure.",
        "volume": "Every added GPU contributes gradients that all the others must receive, so the "
        "bytes to send grow with the cluster.",
    },
    right="ratio",
    locks=True,
)
REFLECTION_1 = Question(
    id="act1_reflection",
    label="Reflection: which change hides the gradient exchange behind compute without changing "
    "any number in the training run?",
    options={
        "faster": "Use GPUs that compute faster, so that a step is shorter.",
        "overlap": "Start summing the gradients of the last layers while the backward pass is "
        "still working on earlier ones.",
        "batch": "Give each GPU fewer sequences, so that there are fewer gradients to exchange.",
        "quantize": "Send gradients in 8 bits instead of 16.",
    },
    right="overlap",
)
PREDICTION_2 = Question(
    id="act2_prediction",
    label="Your prediction: what is the best way to split GPT-3 across 1,024 GPUs?",
    options={name: option.label for name, option in design.OPTIONS.items()},
    right="balanced",
    locks=True,
)
REFLECTION_2 = Question(
    id="act2_reflection",
    label="Reflection: why should tensor parallelism stay within one server?",
    options={
        "software": "Training frameworks cannot run it across servers.",
        "every_layer": "Every layer waits for its all-reduces, and between servers they are "
        "slower and cannot be hidden.",
        "shared_memory": "It needs memory shared by all GPUs of a group, which exists only inside "
        "a server.",
        "numerics": "Sums that cross the network are rounded differently, and training becomes "
        "unstable.",
    },
    right="every_layer",
)
DERIVATION_1 = Toggle(
    id="show_derivation_1", label="How this MFU follows from the inputs, step by step"
)
DERIVATION_2 = Toggle(
    id="show_derivation_2", label="How the bubble, memory and MFU follow from the inputs"
)

EXPLORER = (
    Selector(
        id="model",
        label="Model",
        options={name: row.name for name, row in scaling.MODELS.items()},
        first=scaling.MAIL.model,
    ),
    Slider(id="gpus", label="GPUs", values=scaling.GPUS, first=scaling.GPUS[0]),
    Selector(
        id="held",
        label="Held constant",
        options={"global": "global batch", "each": "batch per GPU"},
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
        label="Batch per GPU",
        values=(1, 2, 4, 8, 16, 32, 64),
        first=8,
        unit="sequences",
    ),
    Selector(
        id="fabric",
        label="Network bandwidth per GPU",
        options={
            name: f"{row.name}: {row.bandwidth.to('GB/s').magnitude:g} GB/s"
            + (" (hypothetical)" if name == "nvlink4" else "")
            for name, row in scaling.FABRICS.items()
        },
        first=scaling.MAIL.fabric,
    ),
    Selector(
        id="exchange",
        label="Gradient exchange",
        options={"after": "after the backward pass", "during": "overlaps the backward pass"},
        first="after",
    ),
)
DESIGN = (
    Slider(
        id="tp",
        label="GPUs per layer (TP)",
        values=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128),
        first=8,
    ),
    Slider(
        id="pp",
        label="Pipeline stages (PP)",
        values=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128),
        first=1,
    ),
    Slider(
        id="microbatches",
        label="Microbatches per replica",
        values=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192),
        first=1,
    ),
    Selector(
        id="zero",
        label="Optimizer state",
        options={
            "replicated": "replicated on every replica",
            "sharded": "sharded across replicas (ZeRO-1)",
        },
        first="replicated",
    ),
)
