"""Our engines beside the official bridges: two bridges to one CLI, which talks to one model of ours."""
