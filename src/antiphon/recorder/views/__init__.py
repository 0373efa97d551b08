"""What `antiphon inspect` shows of a recording, as lines for people. Pure, but for the file that is followed."""
