"""The chat in a terminal. Only this package imports prompt_toolkit and rich.

Plain functions of the transcript decide what to show; only `window` draws and only `chat` waits.

    chat.py         one chat: typed lines become turns, updates go to the screen
    commands.py     the commands of the chat itself, such as `/model` and `/diff`
    screen.py       the session as lines: final ones, and a few that still change
    blocks.py       finished and open blocks of Markdown, tool calls and diffs as lines
    start.py        the first screen of a chat, and signing in before the first prompt
    display/        colours, the first screen, notifications, the chat by lines
    painter.py      text, Markdown and code as lines of some width, safe to show
    output/         changes and links in colour, the pager
    window.py       the part of the terminal below the scrollback: drawing and layout
    input.py        key bindings
    line/           the input line: completion, pasted text, `!command`, pickers
    panels.py       questions answered by single keys, menus, pages
    form_panel.py   a form, field by field
    question/       permission, sign-in
    questions.py    the agent's questions: permission, forms, pages, sign-in
    status.py       mode, model and settings of the session, and the status line
    sessions.py     how the chat goes from one session to another
    undo.py         the way back to an earlier prompt, files and session, and forward again
    terminals.py    the end of what each terminal of the agent has written
"""
