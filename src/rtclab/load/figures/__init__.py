"""The figures of a load: tallies, totals, thresholds, the course of a run, and marked media."""
