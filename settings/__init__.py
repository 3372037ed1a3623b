"""The settings: one module for each environment (dev, test, production), over one base."""
