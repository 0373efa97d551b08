"""Moving frames from here to there. Knows bytes, file descriptors and processes; knows no protocol."""
