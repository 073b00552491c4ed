"""How much energy, carbon, water and money does a fleet use?"""
