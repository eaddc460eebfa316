"""How macOS enforces it: a Seatbelt profile, given to ``sandbox-exec``."""
