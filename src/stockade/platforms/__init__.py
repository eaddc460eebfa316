"""How each operating system enforces the policy."""
