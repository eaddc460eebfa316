"""One running sandbox: its walls, its commands, what they may use, and how they ended."""
