"""The commands on configurations: `configs` lists them, `new` writes one, `check` says what one would do, and `tune`
chooses its settings."""
