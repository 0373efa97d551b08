"""The Claude Code engine: the real `claude` CLI behind ACP. The front is `engine`; nothing is imported here, so that it stays cheap."""
