"""Local training and evaluation: the one package that imports torch.

It knows the kernel's messages and nothing of clusters, rounds in progress or virtual time: a task comes in
with its settings, samples and settings, an update goes out. Importing the package itself loads no torch;
`executor.executor` has the implementation of `emulator.ports.Executor`.
"""
