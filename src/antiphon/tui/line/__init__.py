"""The input line: completion, pasted text, images of the clipboard, commands of the shell.

prompt_toolkit edits the line and has its keys, vi's too; here is what it does not know.

    actions.py      what lines and keys do besides sending a prompt
    clipboard.py    the image in the clipboard
    completion.py   commands, their values and paths, by a few of their letters
    echo.py         a typed letter on the screen at once
    entry.py        the text on the line: labels, history, pickers
    files.py        the files of a directory, without those that git ignores
    fuzzy.py        which of many names a few letters mean
    keys.py         the keys of the line beyond those of every line editor
    pastes.py       labels that stand for long pasted text
    shell.py        `!command`
"""
