"""How long does a training step take on a fleet?"""
