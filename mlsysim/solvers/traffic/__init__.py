"""How long do requests wait that arrive at random?"""
