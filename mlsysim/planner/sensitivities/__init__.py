"""What a result depends on, what reaches a target, and which of two results is better."""
