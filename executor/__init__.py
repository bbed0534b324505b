"""Local training and evaluation: the one package that imports torch.

Of the other packages it imports only the kernel, `emulator`. It knows no clusters, rounds in progress or
virtual time: a task goes in with its model, samples and settings, an update comes out. `executor.executor`
implements `emulator.ports.Executor`. Importing this package does not load torch.
"""
