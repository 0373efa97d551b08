"""Where things are on this machine, and settings. Reads; does nothing else."""
