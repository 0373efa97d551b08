"""Whether an agent or a client is correct: requirements as data, scenarios that show them, and reports with evidence.

Nothing here uses our own message types, our agent or our client: what is checked is the wire.

    requirements.py     the types: requirement, scenario, suite, verdict (the requirements themselves are in suites/)
    wire.py             our end of a connection to a peer: requests to it, its responses, and requests of the peer
    results.py          from the verdicts of scenarios to one result for each requirement
    report.py           a report as JSON, as JUnit's XML and as a badge
    agent_check.py      plays the scenarios with an agent
    agent_run.py        what a scenario is given: requests to the agent, and what was seen
    standin_client.py   a correct client that handles the agent's requests
    prompts.py          prompts that make an agent do something
    client_check.py     plays the scenarios with a client
    client_run.py       what a scenario is given: the client's requests, and what was seen
    standin_agent.py    a correct agent that handles the client's requests
    client_process.py   clients that are commands
    shim_socket.py      the executable that a client starts as its agent, and our end of it
    shim.py             the program in that executable
    v2/                 runs of scenarios of version 2
    remote/             agents and clients on a network
    suites/             requirements and scenarios, a module for each chapter of the specification
"""
