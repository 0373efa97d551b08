"""`antiphon run`: send one prompt and print the answer."""
