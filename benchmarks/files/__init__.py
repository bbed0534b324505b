"""The workloads of files that are read: logs, and folders of traces."""
