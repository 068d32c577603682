"""Workloads, their sides, and targets."""
