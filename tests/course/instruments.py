"""What the tests of labs share: a design that is accepted, and what an instrument shows."""

from mlsysim_course.labs.catalog import explorer

DESIGNS = {
    "roofline": {"plan_device": "h100", "plan_precision": "int8", "plan_batch": 256},
    "serving_slo": {"plan_gpus": 9, "plan_prompt_gpus": 4, "plan_precision": "fp8"},
    "pipeline_builder": {"plan_stages": 8, "plan_schedule": "zb-h1", "plan_microbatches": 64},
    "parallelism_paradox": {"tp": 8, "pp": 4, "microbatches": 48, "zero": "sharded"},
    "checkpointing": {"plan_bandwidth": 200, "plan_interval": 12},
}
"""A design for each lab that meets its requirements."""


def shown(name, state):
    return explorer(name).view(state)


def readings(name, state):
    return {item["label"]: item["value"] for item in shown(name, state)["readings"]}


def alerts(name, state):
    return {alert["name"]: alert["text"] for alert in shown(name, state)["alerts"]}
