"""The methods of the extension, for pages and other clients that show a whole gateway.

Files in reading order:

    base.py        what the methods about a whole gateway need of it
    extension.py   the methods by their names: who may use each, and what answers it
    overview.py    the gateway as a whole: agents, links for other devices, admins
    rows.py        the list of sessions, and its rows as they change
    search.py      the text of messages, stored for the search and looked through
    history.py     the history of a session in pieces
    documents.py   a whole session: its changes, and exports
    files.py       names of files in a session, and of directories for a new one
    control.py     the title of a session, its prompts that wait, links to it
    permission.py  what is shown beside a permission request, and what an answer has the gateway remember
"""
