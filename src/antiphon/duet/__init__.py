"""The agent that people install: one ACP agent with every engine behind it, and one joint session for each session of a client.

Files in reading order:

    agent.py             the hooks of the agent, and the engines it is made over
    preferences.py       routes, limits and reviews
    commands.py          our own slash commands, and the short names of engines
    opener.py            how a joint session is opened: new, loaded, forked, continued
    session.py           the joint session itself
    engine_sessions.py   the engines' sessions inside of it, and how their updates are labelled
    settings.py          route, mode and options of a joint session (the one place that has them), which engines answer, what the client sees
    prompt.py            a prompt: a command of ours, or passed on to the engines of its route
    routes.py            how the engines of a route answer: alone, side by side, with a review
    review.py            what changed in the directories, and the prompts of a review
    permission.py        the policy first, then the user
    limits.py            the budget of a prompt, and going on after a limit
    status.py            what `/status`, `/help`, `/sessions` and `/version` answer
    session_list.py      the list of sessions, ours and the engines' own
    history/             the events of a joint session, and what is made of them
"""
