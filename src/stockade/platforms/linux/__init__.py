"""The walls of Linux: namespaces, mounts, and filtered system calls."""
