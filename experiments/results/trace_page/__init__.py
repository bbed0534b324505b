"""The page that shows a trace before it is played."""
