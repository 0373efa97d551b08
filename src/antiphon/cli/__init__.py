"""The `antiphon` program: parses arguments, prints and exits. A command imports what it needs when it runs, not before.

main.py        the first words of the command line, and the table of commands
interrupts.py  what Ctrl-C does while a command is loaded, works and ends
outcome.py     what every command runs in: exit statuses, errors with hints, the standard streams, whether to use colours
arguments.py   the parser of every command, its errors, and the options of `run` and `chat`
terminal.py    printing to a terminal or a pipe, live lines, and yes-or-no questions
logs.py        the log file, without secrets
run/           `antiphon run`
chat.py        `antiphon chat`
sessions.py    `antiphon sessions`
agents.py      `antiphon agents`
policy.py      `antiphon policy`
doctor.py      `antiphon doctor`
serve/         `antiphon serve`, `worker` and `fleet`
agent.py       `antiphon agent`
setup.py       `antiphon setup`
debug/         `antiphon bridge`, `check`, `check-client`, `record`, `inspect` and `replay`
completion.py  `antiphon completion`
help.py        `antiphon help`
"""
