"""Fault tests with real processes that are killed at named points. Every test ends with a check of K1 to K5."""
