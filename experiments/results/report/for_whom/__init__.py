"""The report's answer to "For whom?": accuracies of clients, alone and in groups."""
