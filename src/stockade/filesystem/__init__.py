"""Which paths, and how: rules and a disk become a plan that the walls of each platform carry out."""
