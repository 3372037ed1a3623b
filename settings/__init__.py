"""One module an environment: dev, test and production, over one base."""
