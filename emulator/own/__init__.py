"""Code of one's own: what is defined outside of our packages, and how it is held to what we promise."""
