"""This library beside its peers, in one run, in turns: `python -m benchmarks`. The rules stand in README.md."""
