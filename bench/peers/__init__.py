"""The rivals' side. `peers.worker` is one process per workload; one module per rival."""
