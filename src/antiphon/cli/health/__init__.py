"""What the doctor looks at: checks as data, each a small function that finds something out and changes nothing."""
