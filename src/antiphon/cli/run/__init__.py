"""`antiphon run`: send one prompt and print the answer. `antiphon compare`: send it to several agents.

command.py    the command: reads the prompt, catches signals, starts the run
arguments.py  the options
runner.py     one run from start to end, and its exit status
session.py    opens the session that the options name, and sets its mode, model and options
person.py     asks the person at the terminal for permission and answers
printers.py   prints a run as text, quietly, or as JSON
compare.py    `antiphon compare`
reports.py    the files that a run writes: the last message, JUnit XML, what GitHub Actions reads
result.py     the last message, the changed files, the denials, and the exit status of a turn that ended
"""
