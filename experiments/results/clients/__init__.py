"""What each client gets: its accuracy at the horizon, alone, beside the reference arm, and in groups."""
