"""The chat in a terminal. Only this package imports prompt_toolkit and rich.

Plain functions of the transcript decide what to show; only `window` draws and only `chat` waits.

    chat.py         one chat: typed lines become turns, updates go to the screen
    commands.py     the commands of the chat itself, such as `/model` and `/diff`
    screen.py       the session as lines: final ones, and a few that still change
    blocks.py       finished and open blocks of Markdown, tool calls and diffs as lines
    painter.py      text, Markdown and code as lines of some width, safe to show
    window.py       the part of the terminal below the scrollback: drawing and layout
    input.py        key bindings and completion
    panels.py       questions answered by single keys, menus, pages
    form_panel.py   a form, field by field
    questions.py    the agent's questions: permission, forms, pages, sign-in
    status.py       mode, model and settings of the session, and the status line
    terminals.py    the end of what each terminal of the agent has written
"""
