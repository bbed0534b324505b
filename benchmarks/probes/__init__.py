"""Programs that workloads start as processes of their own."""
