"""The same without `async`, for scripts and notebooks."""

import sys

from antiphon import sync

with sync.connect("demo") as agent:
    session = agent.new_session()
    print(session.prompt(" ".join(sys.argv[1:]) or "What is this place?").text())
