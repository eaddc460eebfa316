"""What the settings mean: hosts, paths, commands, and the verdict on each."""
