"""One file for each workload; it defines `WORKLOAD`."""
