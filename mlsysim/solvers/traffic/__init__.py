"""How long do requests wait if they arrive at random?"""
