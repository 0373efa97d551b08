"""The doctor: looks at this machine, the engines, the agents and the editors, and says what is wrong and what to do."""
