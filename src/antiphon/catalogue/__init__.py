"""The agents there are: known ones, the user's own, and those of a registry; how each is found and started. Starts none."""
