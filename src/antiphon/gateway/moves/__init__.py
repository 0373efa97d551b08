"""Sessions that move between the workers of a fleet: taken from one that is gone, lost to another, handed over, continued by another agent.

Files in reading order:

    interruption.py   what a session needs whose process ended: the turn that ran and the requests that waited are recorded as over
    adoption.py       sessions that come to a hub from other workers, and those that go
    context.py        the transcript of a session as context for an agent that does not know it
"""
