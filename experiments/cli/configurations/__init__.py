"""The commands on configurations: `configs` lists, `new` writes, `check` tries and `tune` tunes them."""
