"""What is measured of a round, free of charge: how well clients are served, adapted, or by themselves."""
