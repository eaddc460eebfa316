"""What people wrote: settings files, their layers, and how they merge."""
