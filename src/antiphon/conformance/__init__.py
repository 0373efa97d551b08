"""Whether an agent or a client is correct: requirements as data, scenarios that show them, and reports with evidence.

Nothing here uses our own message types, our agent or our client: what is checked is the wire.

    requirements.py     requirements, scenarios, suites, and verdicts on requirements
    wire.py             our end of a connection to a peer: requests to it, its responses, and requests of the peer
    results.py          from the verdicts of scenarios to one result for each requirement
    report.py           a report as JSON, as JUnit's XML and as a badge
    agent_check.py      all scenarios for agents run with an agent
    agent_run.py        one scenario with one agent
    standin_client.py   a correct client that handles the agent's requests
    prompts.py          prompts that make an agent do something
    client_check.py     all scenarios for clients run with a client
    client_run.py       one scenario with one client
    standin_agent.py    a correct agent that handles the client's requests
    client_process.py   clients that are commands
    shim_socket.py      the executable that a client starts as its agent, and our end of it
    shim.py             the program in that executable
    suites/             the scenarios, a module for each chapter of the specification
"""
