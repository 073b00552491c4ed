"""The best split of a training job, the reasons, and the flaws of other splits."""
