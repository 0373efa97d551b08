"""A stored session as a file for people and programs: Markdown, JSON, or one HTML page."""
