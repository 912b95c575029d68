"""Several processes that serve as one: `--workers`; see docs/7-decisions/0016."""
