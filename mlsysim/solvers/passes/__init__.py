"""How long does one device take for a forward pass?"""
