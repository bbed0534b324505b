"""The workloads of visits that go on: their ends alone, and the server steps that absorb them."""
