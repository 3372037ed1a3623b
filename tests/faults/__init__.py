"""Real processes, killed at named points. Every test ends by checking that K1 to K5 hold."""
