"""What is at hand after an installation: the shipped configurations, a new one, the reports, completion."""
