"""A scenario from a file, compared with its limits; then one that comes with the package."""

from pathlib import Path

from mlsysim import Scenarios, SimulationConfig, SLAViolation, evaluate

config = SimulationConfig.from_file(Path(__file__).with_name("chat_service.yaml"))
card = evaluate(config.scenario())
print(card)

print()
try:
    evaluate(Scenarios.Smart_Doorbell).require()
except SLAViolation as fault:
    print(fault)
