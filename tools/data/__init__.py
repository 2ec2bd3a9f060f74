"""What makes the data that the package brings."""
