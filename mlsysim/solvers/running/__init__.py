"""What do a fleet's energy, carbon, water and money come to?"""
