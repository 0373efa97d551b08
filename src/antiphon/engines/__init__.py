"""What answers prompts: the interface, one ACP agent over any engine, and the engines. They do not know each other."""
