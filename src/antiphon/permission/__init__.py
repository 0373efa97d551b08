"""Whether an agent may do something: policy, remembered decisions and grants, and a person who is asked. Knows neither SDK.

Files in reading order:

    gate.py            the gate: decides each permission request, read, write and command
    actions.py         what a request is about, in the terms of the policy
    grants.py          what a decision about one call allows besides it
    memory.py          remembered decisions ("always" answers), recalled and stored
    settings.py        rules and mode from the config files
    project_trust.py   whether the user trusts a project, and `trust_project`, which stores it
"""
