"""`antiphon run`: send one prompt and print the answer.

command.py    the command: reads the prompt, catches signals, starts the run
runner.py     one run from start to end, and its exit status
session.py    opens the session that the options name, and sets its mode, model and options
person.py     asks the person at the terminal for permission and answers
printers.py   prints a run as text, quietly, or as JSON
events.py     the events of `--json`
result.py     the last message, the changed files, the denials, and the exit status of a turn that ended
"""
