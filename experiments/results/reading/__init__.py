"""What is on disk: run directories, logs and other files of them, and recorded configurations."""
