"""Runs workers, keeps their samples, and turns them into tables."""
