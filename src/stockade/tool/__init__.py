"""The shell tool: everything between "the model wants to run this" and "here is the output"."""
