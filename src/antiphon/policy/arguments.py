"""What common programs may be given under a `*`: harmless with any words, or only with the options listed here.

`Bash(find *)` means looking for files, not running what stands behind `-exec`; `Bash(sort *)` does not write `-o x`. A program
that is in none of these lists does what it does: a `*` covers all of its words.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final

from antiphon.policy.git_arguments import git_changes_files, git_levels, git_reads_data
from antiphon.policy.grammar import Grammar, RunContext, WordRisk, grammar
from antiphon.policy.paths import nothing_exists
from antiphon.policy.patterns import Words
from antiphon.policy.programs import (
    INTERPRETERS,
    MANAGERS,
    PACKAGE_RUNNERS,
    TAKE_COMMANDS,
    base_name,
    interprets,
    program_name,
    starts_others,
)
from antiphon.policy.text_tools import AWKS, awk_levels, sed_levels

__all__ = [
    "ANY_WORDS",
    "INTERPRETERS",
    "changes_places",
    "has_grammar",
    "interprets",
    "levels",
    "reads_data",
    "runs_input",
]

ANY_WORDS: Final = frozenset({
    ":", "arch", "b2sum", "base32", "base64", "basename", "cat", "cd", "cksum", "cmp", "column", "comm", "cut", "date", "df", "diff", "dirname", "du",
    "echo", "egrep", "expand", "expr", "factor", "false", "fgrep", "fmt", "fold", "free", "getconf", "grep", "groups", "head", "hexdump", "id", "join",
    "jq", "logname", "ls", "md5sum", "nl", "nproc", "numfmt", "od", "paste", "pathchk", "popd", "pr", "printenv", "ps", "pushd", "pwd", "readlink",
    "realpath", "rev", "seq", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "shasum", "sleep", "stat", "strings", "sum", "tac", "tail",
    "tr", "true", "tsort", "tty", "type", "uname", "unexpand", "uptime", "users", "wc", "which", "who", "whoami", "xsel", "pbcopy", "wl-copy",
    "chgrp", "chmod", "chown", "cp", "dd", "ln", "link", "mkdir", "mkfifo", "mktemp", "mv", "rm", "rmdir", "shred", "sync", "tee", "touch", "truncate",
    "unlink", "gzip", "gunzip", "zcat", "bzip2", "bunzip2", "bzcat", "xz", "unxz", "xzcat", "zstd", "zstdcat", "lz4", "exit", "return", "break",
    "continue", "umask", "kill", "times", "shift", "lsblk", "lscpu", "lsof", "pgrep", "sw_vers", "locale", "hostid", "colrm", "col", "uuencode",
})  # fmt: skip
"""Programs and builtins that start no other, whatever their words are. Some write files: that is what they are called for."""

_PLACING: Final = frozenset({"cp", "install", "link", "ln", "mv", "rsync", "scp", "sftp", "tar", "unzip"})
"""Programs that make links, or bring directories from elsewhere. `mkdir` and `rm` make no place that leads elsewhere."""

_FIND: Final = (
    "-H -L -P -amin -anewer -atime -cmin -cnewer -ctime -daystart -depth -empty -executable -false -follow -fstype -gid -group -ignore_readdir_race "
    "-ilname -iname -inum -ipath -iregex -iwholename -links -lname -ls -maxdepth -mindepth -mmin -mount -mtime -name -newer -newerBm -newerat -newermt "
    "-nogroup -noleaf -nouser -path -perm -print -print0 -printf -prune -quit -readable -regex -regextype -samefile -size -true -type -uid -used -user "
    "-wholename -writable -xdev -xtype -not -a -and -o -or -E -X -d -s -x -D -O1 -O2 -O3 --"
)

_TABLE: Final[dict[str, tuple[str, str]]] = {
    "csplit": ("-k -s -q -z -n: -f:p -b:e --prefix:p --suffix-format:e --keep-files --silent --quiet --digits:", "ft*"),
    "diff3": ("-a -A -e -E -i -m -T -x -X -3 -L: --text --merge --label: --ed --easy-only --overlap-only", "fff"),
    "fd": ("-H -I -u -s -i -g -F -a -l -L -p -0 -1 -q -t: -e: -E: -d: -S: -o: -c: -j: --hidden --no-ignore --unrestricted --case-sensitive --ignore-case "
           "--glob --fixed-strings --absolute-path --list-details --follow --full-path --print0 --quiet --type: --extension: --exclude: --max-depth: "
           "--min-depth: --exact-depth: --size: --changed-within: --changed-before: --color: --threads: --max-results: --no-ignore-vcs --prune", "tf*"),
    "file": ("-b -i -I -L -h -k -r -0 -s -F: -P: --brief --mime --mime-type --mime-encoding --dereference --no-dereference --keep-going", "f*"),
    "fdfind": ("", ""),
    "iconv": ("-f: -t: -c -s -l --from-code: --to-code: --list --silent >-o:p >--output:p", "f*"),
    "install": ("-b -c -C -d -D -p -T -v -g: -m: -o: -t:p -S: --backup= --compare --directory --group: --mode: --owner: --preserve-timestamps "
                "--target-directory:p --no-target-directory --verbose", "t*"),
    "less": ("-# -e -E -F -f -g -G -i -I -J -m -M -n -N -q -Q -r -R -s -S -u -U -w -W -X -x:n -h:n -y:n -z:n --quit-if-one-screen --RAW-CONTROL-CHARS "
             "--no-init --chop-long-lines --LINE-NUMBERS --ignore-case", "f*"),
    "man": ("-# -a -f -k -K -w -W -i -I -u -s: -S: -e: --all --whatis --apropos --where --path --sections: --ignore-case --match-case", "t*"),
    "rg": ("-i -v -w -x -n -N -c -l -o -q -s -S -u -F -P -U -H -I -L -0 -a -p -b -. -e: -f:f -g: -t: -T: -A: -B: -C: -m: -M: -j: -r: -d: -E: "
           "--ignore-case --smart-case --case-sensitive --invert-match --word-regexp --line-regexp --line-number --no-line-number --count "
           "--count-matches --files --files-with-matches --files-without-match --only-matching --quiet --hidden --no-hidden --no-ignore "
           "--no-ignore-vcs --no-ignore-parent --no-ignore-dot --unrestricted --fixed-strings --pcre2 --multiline --multiline-dotall --with-filename "
           "--no-filename --follow --null --text --pretty --json --stats --vimgrep --heading --no-heading --trim --type-list --column --no-column "
           "--passthru --no-messages --no-config --regexp: --file:f --glob: --iglob: --type: --type-not: --after-context: --before-context: --context: "
           "--max-count: --max-columns: --max-depth: --max-filesize: --threads: --replace: --encoding: --sort: --sortr: --color: --colors: "
           "--path-separator: --context-separator: --engine: --glob-case-insensitive --crlf --binary --block-buffered --line-buffered", "tf*"),
    "rsync": ("-v -q -c -a -r -R -b -u -l -L -k -K -H -p -E -A -X -o -g -t -O -J -n -W -x -m -z -C -0 -h -i -P -4 -6 -d -f: --verbose --quiet --checksum "
              "--archive --recursive --relative --no-relative --update --links --copy-links --hard-links --perms --executability --acls --xattrs "
              "--owner --group --times --omit-dir-times --dry-run --whole-file --one-file-system --existing --ignore-existing --delete "
              "--delete-before --delete-during --delete-after --delete-excluded --force --max-delete: --max-size: --min-size: --partial --prune-empty-dirs "
              "--compress --cvs-exclude --filter: --exclude: --include: --exclude-from:f --include-from:f --from0 --stats --human-readable --progress "
              "--itemize-changes --bwlimit: --ignore-times --size-only --timeout: --port: --no-perms --no-owner --no-group --no-times --chmod: --info: "
              "--mkpath --inplace --append --numeric-ids", "h*"),
    "scp": ("-3 -4 -6 -A -B -C -O -p -q -R -r -s -T -v -P: -l: -i:f -c:", "h*"),
    "sdiff": ("-i -E -Z -b -W -B -a -l -t -d -H -s -w: -I: --ignore-case --ignore-all-space --ignore-blank-lines --width: --left-column "
              "--suppress-common-lines --expand-tabs --minimal", "ff"),
    "sftp": ("-4 -6 -a -A -C -f -N -p -q -r -v -P: -l: -i:f -c: -B: -R:", "h"),
    "shuf": ("-e -r -z -i: -n: --echo --input-range: --head-count: --repeat --zero-terminated --random-source:f >-o:p >--output:p", "t*"),
    "sort": ("-b -d -f -g -h -i -M -n -R -r -V -c= -C -m -s -u -z -k: -t: --ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort "
             "--ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort --reverse --sort: --version-sort --check= --merge "
             "--stable --unique --zero-terminated --key: --field-separator: --parallel: --debug -S: --buffer-size: --batch-size: "
             ">-o:p >--output:p >-T:p >--temporary-directory:p", "f*"),
    "split": ("-a: -b: -C: -d -x -e -l: -n: -t: -u -# --suffix-length: --additional-suffix:e --bytes: --line-bytes: --numeric-suffixes= "
              "--hex-suffixes= --elide-empty-files --lines: --number: --separator: --unbuffered --verbose", "fp"),
    "ssh": ("-# -4 -6 -A -a -C -G -K -k -M -N -n -q -T -t -V -v -X -x -Y -f -g -s -y -c: -l: -m: -p: -i:f -b: -e:", "ht*"),
    "tree": ("-a -d -l -f -x -i -q -N -Q -p -u -g -s -h -D -F -v -t -c -r -U -A -S -n -C -X -J -L; -P; -I; --dirsfirst --filesfirst --gitignore "
             "--noreport --prune --matchdirs --ignore-case --si --du --inodes --device --filelimit: --charset: --timefmt: --sort: >-o:p", "f*"),
    "uniq": ("-# -c -d -D -i -u -z -f: -s: -w: --count --repeated --all-repeated= --group= --ignore-case --unique --zero-terminated --skip-fields: "
             "--skip-chars: --check-chars:", "f"),
    "unzip": ("-l -v -z -t -p -q -o -n -j -C -X -L -a -u -f -Z -1 -d:p -x", "t*"),
    "wget": ("-q -v -S -c -N -n -4 -6 -d -t: -T: -w: -U: -O:- -Q: --quiet --verbose --no-verbose --spider --server-response --continue "
             "--timestamping --tries: --timeout: --wait: --user-agent: --header: --method: --body-data: --no-check-certificate --max-redirect: "
             "--show-progress --progress: --no-config --no-hsts --content-on-error --output-document:- --https-only --limit-rate: --referer: "
             ">-P:p >--directory-prefix:p >-o:p >--output-file:p >-a:p >--append-output:p >--save-cookies:p >--warc-file:p >--hsts-file:p "
             ">--rejected-log:p", "t*"),
    "zip": ("-# -r -q -v -j -m -o -u -f -g -y -X -D -k -J -d -e -x -i -s; -n; -Z; --recurse-paths --quiet --junk-paths --symlinks", "t*"),
}  # fmt: skip
"""Options and operands, written as `grammar` describes. With any other word the program may start another or write elsewhere."""

_CURL: Final = grammar(
    "-# -0 -1 -2 -3 -4 -6 -f -g -G -I -i -j -k -L -l -N -n -p -q -R -S -s -v -V -Z -a -A: -b: -C: -e: -H: -m: -r: -u: -x: -X: -y: -Y: -z: -U: "
    "--fail --fail-with-body --globoff --get --head --include --insecure --location --no-buffer --netrc --silent --show-error --verbose --version "
    "--compressed --user-agent: --cookie: --referer: --cacert:f --capath:f --header: --max-time: --connect-timeout: --range: --user: "
    "--proxy: --request: --retry: --retry-delay: --retry-max-time: --retry-connrefused --retry-all-errors --http1.1 --http2 --http3 --tlsv1.2 "
    "--tlsv1.3 --ipv4 --ipv6 --max-redirs: --resolve: --connect-to: --interface: --url: --parallel --progress-bar --no-progress-meter --path-as-is "
    "--limit-rate: --proto: --oauth2-bearer: --json: --data: --data-raw: -d: -o:- --output:- --create-dirs --ssl-reqd --tcp-nodelay "
    ">-O >-J >-D:p >-c:p >--remote-name >--remote-name-all >--remote-header-name >--dump-header:p >--cookie-jar:p >--output-dir:p >--trace:p "
    ">-T: >-F: >--form: >--upload-file: >--data-binary: >--data-urlencode: >--trace-ascii:p >--stderr:p >--etag-save:p >--hsts:p >--alt-svc:p >--libcurl:p",
    "t*",
)
_CURL_TEXTS: Final = re.compile(r"(?:%\{[a-z_.]+\}|\\[nrt]|[A-Za-z0-9 :;,./=_-])*")
_TAR: Final = grammar(
    "-c -x -t -r -u -d -A -v -z -j -J -Z -a -k -p -m -h -l -O -S -U -w -R -o -B -i -n -G -f:p -C:p -X:f -b: -N: -K: -V: -H: "
    "--create --extract --get --list --append --update --diff --compare --verbose --gzip --gunzip --bzip2 --xz --zstd --lzma --lzip --compress "
    "--auto-compress --keep-old-files --keep-newer-files --preserve-permissions --same-permissions --no-same-owner --no-same-permissions --touch "
    "--dereference --to-stdout --exclude: --exclude-from:f --file:p --directory:p --strip-components: --wildcards --no-wildcards "
    "--anchored --no-anchored >--transform: >--xform: --sort: --mtime: --owner: --group: --numeric-owner --no-recursion --recursion --exclude-vcs "
    "--exclude-vcs-ignores --totals --show-transformed-names --format: --one-file-system --overwrite --skip-old-files --null --force-local",
    "t*",
)
_TAR_LETTERS: Final = re.compile(r"[cxtrudvzjJaZkpmhOSUwfC]+")
_XXD_OPTION: Final = re.compile(r"-(?:a|b|C|e|E|h|i|p|ps|r|u|v|[cglnos][0-9]*)")
_ONLY_DASHES: Final = re.compile(r"-[0-9].*")


def has_grammar(name: str) -> bool:
    """Whether the program's arguments are known, so that `levels` knows what each of its words does."""
    return name in _TABLE or name in _SPECIAL


def levels(words: Words, context: RunContext) -> dict[int, WordRisk]:
    """The words of a command that are not fine under a `*`; empty too for a program of which nothing is known."""
    name = program_name(words[0] or "") if words else ""
    if name in ANY_WORDS or not words:
        return {}
    special = _SPECIAL.get(name)
    if special is not None:
        return special(words, context)
    known = _grammar(name)
    return {} if known is None else known.check(words, 1, context)


def changes_places(words: Words) -> bool:
    """Whether a command is known to make files, directories or links, so that a path may lead elsewhere after it."""
    name = program_name(words[0] or "") if words else ""
    return name in _PLACING or (name == "git" and git_changes_files(words))


@cache
def _grammar(name: str) -> Grammar | None:
    name = "fd" if name == "fdfind" else name
    return grammar(*_TABLE[name]) if name in _TABLE else None


@cache
def _find_words() -> frozenset[str]:
    return frozenset(_FIND.split())


def _find(words: Words, _: RunContext) -> dict[int, WordRisk]:
    """Every word with a dash has to be a test or an action that only looks; `-7` and its like are values."""
    fine = _find_words()
    return {
        at: WordRisk.RUNS
        for at, word in enumerate(words)
        if at and (word is None or (word.startswith("-") and word not in fine and not _ONLY_DASHES.fullmatch(word)))
    }


def _curl(words: Words, context: RunContext) -> dict[int, WordRisk]:
    plain: list[str | None] = list(words)
    for at, word in enumerate(words):
        # A format can write files in new versions of curl: `-w '%output{x}'`.
        if word in ("-w", "--write-out") and at + 1 < len(words) and _CURL_TEXTS.fullmatch(words[at + 1] or "%"):
            plain[at], plain[at + 1] = "-A", "x"
    found = _CURL.check(tuple(plain), 1, context)
    for at, word in enumerate(words):
        if word is not None and at and (word.startswith("@") or re.match(r"(?:-d|--data=|--json=)@", word)):
            found.setdefault(at, WordRisk.REACHES)  # a file that is sent
    return found


def _tar(words: Words, context: RunContext) -> dict[int, WordRisk]:
    first = words[1] if len(words) > 1 else None
    if first is not None and not first.startswith("-"):  # `tar xIf …` has no dash, and the values follow in its order
        if not _TAR_LETTERS.fullmatch(first):
            return dict.fromkeys(range(1, len(words)), WordRisk.RUNS)
        values = sum(first.count(letter) for letter in "fC")
        named = {at: _tar_path(words[at], context) for at in range(2, min(2 + values, len(words)))}
        found = _TAR.check(words, 2 + values, context) | {at: level for at, level in named.items() if level}
    else:
        found = _TAR.check(words, 1, context)
    # `host:file` is fetched by a remote shell.
    return found | {at: WordRisk.RUNS for at, word in enumerate(words) if at and word is not None and ":" in word}


def _tar_path(word: str | None, context: RunContext) -> WordRisk:
    if word is None or word.startswith("-"):
        return WordRisk.FINE if word == "-" else WordRisk.RUNS
    return WordRisk.FINE if context.holds(word) else WordRisk.REACHES


def _printf(words: Words, _: RunContext) -> dict[int, WordRisk]:
    """Check the words of `printf`. Only the first can be an option: `-v` sets a variable, and its index may be code."""
    first = words[1] if len(words) > 1 else ""
    if first is None or (first.startswith("-") and first != "--"):
        return {1: WordRisk.RUNS} | ({2: WordRisk.RUNS} if len(words) > 2 else {})
    return {}


def _test(words: Words, _: RunContext) -> dict[int, WordRisk]:
    """`test -v 'a[$(rm x)]'` runs code, and to some shells so does an index beside `-eq`."""
    return {
        at: WordRisk.RUNS
        for at, word in enumerate(words)
        if at
        and (word is None or word in ("-v", "-R") or ("[" in word and word != "[" and ("$" in word or "`" in word)))
    }


def _xxd(words: Words, _: RunContext) -> dict[int, WordRisk]:
    """What stands behind the first file is written to, whatever it looks like."""
    found: dict[int, WordRisk] = {}
    at, files = 1, 0
    while at < len(words):
        word = words[at]
        if word is None:
            found[at] = WordRisk.RUNS
        elif files:
            found[at] = WordRisk.REACHES
        elif word == "-" or not word.startswith("-"):
            files += 1
        elif not _XXD_OPTION.fullmatch(word):
            found[at] = WordRisk.RUNS
        elif len(word) == 2 and word[1] in "cglnos":
            at += 1 if at + 1 < len(words) and re.fullmatch(r"[0-9]+", words[at + 1] or "") else 0
        at += 1
    return found


def _man(words: Words, context: RunContext) -> dict[int, WordRisk]:
    known = _grammar("man")
    assert known is not None  # noqa: S101 - it is in the table
    found = known.check(words, 1, context)
    return found | {at: WordRisk.RUNS for at, word in enumerate(words) if at and word is not None and "/" in word}


_SPECIAL: Final[dict[str, Callable[[Words, RunContext], dict[int, WordRisk]]]] = {
    "[": _test, "curl": _curl, "find": _find, "git": git_levels, "man": _man, "printf": _printf, "sed": sed_levels, "tar": _tar, "test": _test,
    "xxd": _xxd,
    **dict.fromkeys(AWKS, awk_levels),
}  # fmt: skip


# --- input: programs that run what they read, and programs that take it for data
# Two lists with opposite care. `runs_input` names programs that are known to run what they are fed; no "always" is offered for
# them. `reads_data` names programs that are known to take their standard input for data; every other program behind a pipe may
# take it for commands.

_NOWHERE: Final = RunContext(("/",), ("/",), lambda path: path, nothing_exists)
_CLOSED: Final = TAKE_COMMANDS - {"make"}

_MODULES: Final = frozenset({
    "black", "build", "compileall", "flake8", "isort", "json.tool", "mypy", "pip", "pylint", "pyright", "pytest", "ruff", "unittest",
})  # fmt: skip
"""Modules for `python -m` that do work of their own."""

_ALSO_DATA: Final = frozenset(
    {"aspell", "bat", "batcat", "clip", "colordiff", "delta", "gron", "more", "xclip", "xmllint"}
)
"""Programs beside those of `arguments` that take their standard input for data."""

_ELSEWHERE: Final = frozenset({"sftp", "ssh"})
"""Programs that take their standard input for commands on another machine."""

_WRITERS: Final = frozenset({
    "chgrp", "chmod", "chown", "cp", "dd", "kill", "ln", "link", "mkdir", "mkfifo", "mktemp", "mv", "rm", "rmdir", "shred", "tee", "touch", "truncate",
    "unlink",
})  # fmt: skip
"""Programs of `ANY_WORDS` that change files, so that it matters which words xargs adds."""

_XARGS_OPTIONS: Final = re.compile(r"-[0rt]+|-[nLP][0-9]+|--null|--no-run-if-empty|--max-args=[0-9]+")


def runs_input(command: Words) -> str:
    """Why an exact rule for this command does not determine what runs; empty if it does.

    `command` is the program with its arguments, None for a word that is not known.
    """
    first = command[0] if command else None
    if first is None:
        return "its program is not known"
    name, base = program_name(first), base_name(first)
    if starts_others(first):
        return f"`{first}` runs the commands that it is given"
    if interprets(first) and not (base in ("python", "pypy") and _is_module(command)):
        return f"`{first}` runs the code that it is given"
    if name in _CLOSED or base in _CLOSED:
        return f"`{first}` has commands of its own that start programs"
    if name == "make" and any((word or "-").startswith("-") for word in command[1:]):
        return "`make` with options may read its rules from anywhere"
    if name in PACKAGE_RUNNERS:
        return f"`{first}` runs programs from elsewhere"
    known = MANAGERS.get(name)
    if known is not None and len(command) > 1 and command[1] not in known:
        return f"`{first} {command[1] or ''}`".replace(" `", "`") + " may run what stands behind it"
    if _may_run(command) and any(word is None or _runs(word) for word in command[1:]):
        return f"`{first}` starts a program that runs what it is given"
    return ""


def reads_data(command: Words) -> bool:
    """Whether the command takes its standard input for data, or does not read it; never for commands."""
    first = command[0] if command else None
    if first is None or "/" in first:
        return False
    if first == "git" and not git_reads_data(command):
        return False
    if first == "xargs":
        return _adds_to_harmless(command)
    if base_name(first) == "python":
        return command[1:3] == ("-m", "json.tool")
    known = first in ANY_WORDS or first in _ALSO_DATA or (has_grammar(first) and first not in _ELSEWHERE)
    return known and not _may_run(command)


def _may_run(command: Words) -> bool:
    """Whether a word of the command may make its program start another."""
    return WordRisk.RUNS in levels(command, _NOWHERE).values()


def _adds_to_harmless(command: Words) -> bool:
    """Whether xargs runs a program that does no harm whatever words are added."""
    rest = list(command[1:])
    while rest and rest[0] is not None and _XARGS_OPTIONS.fullmatch(rest[0]):
        rest.pop(0)
    return not rest or rest[0] in ANY_WORDS - _WRITERS


def _is_module(command: Words) -> bool:
    return len(command) > 2 and command[1] == "-m" and command[2] in _MODULES


def _runs(word: str) -> bool:
    return starts_others(word) or interprets(word) or program_name(word) in _CLOSED
