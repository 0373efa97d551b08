"""Lines that try to start `canary`, put together at random from a seed: options that programs report, scripts, wrappers, variables, globs.

The options of a program come from its own help text, the programs from the machine's PATH, and scripts are put together from the letters of
their language. Ways to run something are listed, and put around each other at random.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

from antiphon.policy.arguments import ANY_WORDS, has_grammar
from antiphon.policy.git_arguments import _COVERED, _NAMED
from antiphon.policy.patterns import quoted

WRITERS = frozenset({
    "bunzip2", "bzip2", "chgrp", "chmod", "chown", "cp", "csplit", "dd", "gunzip", "gzip", "install", "link", "ln", "lz4", "mkdir", "mkfifo", "mktemp",
    "mv", "rm", "rmdir", "rsync", "scp", "shred", "split", "tar", "tee", "touch", "truncate", "unlink", "unxz", "unzip", "uuencode", "wget", "xz", "zip",
    "zstd", "git", "sftp", "ssh",
})  # fmt: skip
"""Programs that are there to write files. All others write none under a `*`."""

LEFT_OUT = frozenset(
    {
        "kill",
        "sleep",
        "exit",
        "return",
        "ssh",
        "scp",
        "sftp",
        "curl",
        "wget",
        "less",
        "man",
        "shred",
        "dd",
        "chown",
        "chgrp",
        "sync",
    }
)
"""Programs that are not run here: they wait, use the network, or reach beyond the directory."""

WORDS = [
    "a", "b", "sub/c", "x/y", "y", "./y", "./evil.git", "evil.git", "evil", "other", "../outside/secret", "out/secret", "out", "OUT/secret", "canary",
    "./sub/canary", "x.sed", "x.awk", "x.list", "x.tar", "x.zip", "HEAD", "main", "side", "HEAD~1", "1", "z", "z2", "-", "docs", ".", "1e canary",
    "s/b/canary/e", "w z", '{print > "z"}', 'BEGIN{system("canary")}', "|canary", "!canary", "exec=canary", "ext::canary", "file://WORK/evil.git",
    "WORK/evil.git", "host:x", "%output{z}", "core.pager=canary", "@a", "+1", "--", "OUT", "refs/heads/main", "HEAD:z", "x=canary", "=",
]  # fmt: skip
_HELP = {"git": "-h", "zip": "-h2"}
"""How some programs are asked for all of their options."""

_OPTION = re.compile(r"(?<![\w/.-])(--?[A-Za-z0-9][\w-]*)")
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@cache
def listed_options(*program: str) -> tuple[str, ...]:
    """The options that a program reports."""
    asked = [*program, _HELP.get(program[0], "--help") if program[0] != "git" or len(program) > 1 else "--help"]
    try:
        done = subprocess.run(asked, capture_output=True, timeout=10, stdin=subprocess.DEVNULL, cwd="/")
    except (OSError, subprocess.TimeoutExpired):
        return ()
    text = (done.stdout + done.stderr).decode(errors="replace")[:60_000]
    return tuple(sorted({re.sub(r"\[no-\]", "", found) for found in _OPTION.findall(text)}))


def programs_here() -> list[str]:
    """Programs whose arguments are listed as known, and that are installed."""
    names = sorted({*ANY_WORDS, "awk", "find", "sed", "tar", "test", "[", "printf", "sort", "uniq", "split", "csplit", "install", "file", "tree", "xxd", "zip", "unzip", "rg",
                    "fd", "rsync", "shuf", "diff3", "sdiff", "iconv", "mawk"})  # fmt: skip
    return [
        name
        for name in names
        if name not in LEFT_OUT and shutil.which(name) and (name in ANY_WORDS or has_grammar(name))
    ]


def _option(random: Random, options: tuple[str, ...], words: list[str]) -> list[str]:
    option = random.choice(options) if options and random.random() < 0.7 else f"-{random.choice(_LETTERS)}"
    way = random.randrange(7)
    value = random.choice(words)
    if way == 6:  # letters joined as the program reads them: it may see an end of a value where we see none
        short = [each[1:] for each in options if not each.startswith("--") and len(each) <= 3] or [
            random.choice(_LETTERS)
        ]
        joined = "-" + "".join(random.choice([*short, "5"]) for _ in range(random.randint(2, 4)))
        return random.choice([[joined], [joined + value], [joined, value]])
    if way == 0:
        return [option]
    if way == 1:
        return [f"{option}={value}"]
    if way == 2 and option.startswith("--"):
        return [f"{option[: random.randint(3, len(option))]}={value}"]
    if way == 3 and not option.startswith("--"):
        return [f"{option}{value}"]
    if way == 4 and not option.startswith("--"):
        return [f"{option}{random.choice(_LETTERS)}", value]
    return [option, value]


def _given(random: Random, options: tuple[str, ...], words: list[str]) -> list[str]:
    found: list[str] = []
    for _ in range(random.randint(0, 4)):
        found += _option(random, options, words) if random.random() < 0.55 else [random.choice(words)]
    return found


def placed(words: list[str], work: Path) -> list[str]:
    """The words with the real paths of the place."""
    out = str(work.parent / "outside")
    return [word.replace("WORK", str(work)).replace("OUT", out) for word in words]


def option_lines(random: Random, work: Path) -> Iterator[str]:
    """Known programs with options that they report, any letters, and operands."""
    words = placed(WORDS, work)
    names = programs_here()
    listed = [name for name in names if name not in ANY_WORDS]
    while True:
        name = random.choice(listed if random.random() < 0.6 else names)
        yield " ".join([name, *map(quoted, _given(random, listed_options(name), words))])


def git_lines(random: Random, work: Path) -> Iterator[str]:
    """Subcommands of git with options that they report, remotes that are directories, strategies that are files."""
    words = placed(WORDS, work)
    names = [*_COVERED] * 3 + [
        *_NAMED,
        "submodule",
        "merge-tree",
        "difftool",
        "upload-pack",
        "bundle",
        "hook",
        "daemon",
    ]
    moves = [
        "",
        "",
        "",
        "",
        "cd sub && ",
        "cd docs && ",
        "cd out && ",
        "cd docs/objects; ",
        "cd evil && ",
        "(cd docs; ",
        "cd sub; cd ../docs && ", "cp -r docs q && cd q && ", "ln -s docs q; cd q && ", "mv docs sub/q; cd sub/q; ", "git checkout -q trap && cd t && ",
        "git checkout -q trap; ", "cp -r evil origin; ", "git merge -q trap; cd t; ", "ln -s ../outside q && cd q && ", "mkdir q && cd q && ",
    ]  # fmt: skip
    while True:
        name = random.choice(names)
        given = _given(random, listed_options("git", name), words)
        if random.random() < 0.1:
            given.insert(0, random.choice(["-v", "-q", "--all", "-f"]))
        before = random.choice(
            ["", "", "", "", "", "--no-pager", "-P", "-p", "-C docs", "-c core.fsmonitor=canary", "--git-dir=docs"]
        )
        move = random.choice(moves)
        end = ")" if move.startswith("(") else ""
        yield f"{move}git {before} {name} {' '.join(map(quoted, given))}{end}".replace("  ", " ").rstrip()


_SED = [
    *"s/|,;{}!=$\\[]^e.wpdgqnNDGHhxyabcIM0123 \n", "s/", "/e", "/w z", "e canary", "canary", "/X/", "[/]", "[]", "[^]", "]/", "[[:a:]]", "s|", "|e", "1,$", "/x/I", "\\/", "\\n",
    "s/b/canary/", "s,b,canary,", "w z", "r a", "R b", "W z", "a\\", "i ", "c x", ":a", "ba", "$!N", "#n", "~2", "+1", "y/ab/cd/", "{p;", "}", "\\c", "\\cX",
]  # fmt: skip
_SED_SHAPES = [
    "s{d}{r}{d}{t}{d}{f}", "{n}s{d}{r}{d}{t}{d}{f}", "/{r}/{c}", "{n}{c}", "{n},{n}{c}", "/{r}/,/{r}/{c}", "{n}{{{c};{c}}}", "y{d}ab{d}cd{d}", "{n}~{n}{c}", ":a;N;$!ba;{c}", "\\{d}{r}{d}{c}", "s{d}[{d}]{q}{d}{g};s{d}{f};{d}{q}{d}{g}", "s{d}[{d}]{q}{d}{g};s{d}{f};{d}{q}{d}{g}", "s{d}[{d}]{q}{d}{g};s{d}{f};{d}{q}{d}{g}", "s{d}[{d}]{d}{t};s{d}{f};{d}{t}{d}{f}", "/[/]/{c};/{c}", "s{d}[]{d}]{d}{t}{d}{f}",
]  # fmt: skip
_REGEX = [
    "a",
    "b",
    ".",
    "[",
    "]",
    "[^",
    "\\",
    "/",
    "|",
    ",",
    "[a-z]",
    "[/]",
    "[[:alpha:]]",
    "canary",
    "X",
    "^",
    "$",
    "*",
    "\\/",
    "\\(",
    "\\)",
    "e;",
    ";s",
    "\\n",
    "\\[",
    "[]",
    "[]/]",
    "[\\]",
]


def sed_lines(random: Random, _: Path) -> Iterator[str]:
    """Scripts for sed: letters of its language in any order, and shapes that look right."""
    while True:
        parts = [_sed_part(random) for _ in range(random.randint(1, 4))]
        script = random.choice([";", "\n", " ; ", ""]).join(parts)
        options = random.choice(["", "", "", "-n ", "-E ", "-z ", "-s ", "-ne p ", "--posix ", "-e p ", "-nE "])
        if random.random() < 0.15:
            yield f"sed {options}-e {quoted(script)} -e {quoted(_sed_part(random))} a"
        else:
            yield f"sed {options}{quoted(script)} a"


def _sed_part(random: Random) -> str:
    if random.random() < 0.3:
        return "".join(random.choice(_SED) for _ in range(random.randint(1, 8)))

    def soup(count: int) -> str:
        return "".join(random.choice(_REGEX) for _ in range(random.randint(0, count)))

    return random.choice(_SED_SHAPES).format(
        d=random.choice("/////|,#@:~;e[{"), r=soup(3), t=random.choice(["", "canary", "x", "e", "w z", "&", "\\1", soup(2)]), n=random.choice(["1", "2", "$", "0", ""]), q=random.choice(["", "", "X", "a", "."]), g=random.choice(["", "g", "p", "I", "2"]),
        f=random.choice(["", "", "g", "p", "e", "e", "e", "w z", "gp", "I", "M", "2", "ge", "m", "pw z"]), c=random.choice([*"pdqnNDGHhxz=lF", "e", "e canary", "w z", "s/a/b/", "s/b/canary/e", "q1", "r a", "b", "ba", "T", "}", "a x", "i e"]),
    )  # fmt: skip


# What a deny has to find.

_NAMES = [
    "canary", "'canary'", "can\"a\"ry", "can\\ary", "can{a,}ry", "BIN/canary", "BIN/can?ry", "BIN/c*y", "BIN/can[a]ry", "$(echo canary)", "`echo canary`", "${x:-canary}", "$'can\\x61ry'",
    "$x", "${x}", "can$( )ary", "{canary,}", "~/../bin/canary", "\"canary\"", "can''ary x", "$(printf can)ary", "../bin/canary", "./sub/../../bin/canary", "$c", "can$y",
]  # fmt: skip
_WRAPS = [
    "env {}", "env -S'{}'", "env -S '{}'", "env --split-string='{}'", "env -i {}", "env -u X {}", "env X=1 {}", "env -vS '{}'", "nice {}", "nice -n 3 {}", "nice -5 {}", "nohup {}", "timeout 5 {}",
    "timeout -k 1 5 {}", "setsid {}", "setsid -w {}", "stdbuf -oL {}", "stdbuf -o L {}", "ionice -c 3 {}", "chrt -o 0 {}", "taskset 1 {}", "setarch {}", "setarch -R {}", "linux64 {}", "linux32 {}",
    "x86_64 {}", "i386 {}", "command {}", "command -p {}", "builtin {}", "exec {}", "eval {}", "eval '{}'", "time {}", "time -p {}", "sh -c '{}'", "bash -c '{}'", "dash -c '{}'", "bash -lc '{}'",
    "bash -ec '{}'", "sh -c '\"$@\"' _ {}", "sh -c '$0' {}", "bash -c 'eval \"$1\"' _ '{}'", "bash -O extglob -c '{}'", "bash --norc -c '{}'", "xargs {} <b", "echo {} | xargs", "echo x | xargs {}",
    "echo {} | xargs sh -c", "echo {} | xargs -I % %", "echo {} | xargs -n1 env", "echo {} | sh", "echo {} | bash -s", "printf '{}' | bash", "sh <<<'{}'", "sh <<E\n{}\nE", "echo '{}' >q; sh q", ". ./x.sh",
    "source x.sh", "bash x.sh", "sh < x.sh", "find . -maxdepth 0 -exec {} ';'", "find . -maxdepth 0 -execdir {} +", "find . -maxdepth 0 -ok {} ';'", "awk 'BEGIN{{system(\"{}\")}}'",
    "awk 'BEGIN{{\"{}\"|getline}}'", "awk 'BEGIN{{print|\"{}\"}}'", "awk -f x.awk", "sed '1e {}' a", "sed -n 's/b/{}/e' a", "sed 's/.*/{}/e' b", "sed -f x.sed a", "sed --file=x.sed a",
    "bash -c -- '{}'", "sh -c -x '{}'", "bash -c +x -e '{}'", "/proc/self/exe -c '{}'", "/proc/self/exe x.sh", "/proc/$$/exe x.sh", "echo '!{}' | git commit --allow-empty", "printf '!{}\\n' | git rebase -i HEAD~1",
    "echo '!{}' | git tag -a q", "npm_config_script_shell={} npm test", "npm_config_git={} npm install git+ssh://h/x", "export npm_config_script_shell; npm_config_script_shell={}; npm test", "zip -svT -svTT '{}' z.zip a",
    "less -x5kx.key a", "git -c alias.q='!{}' q", "git -c core.pager='{}' -p log", "git -c core.fsmonitor='{}' status", "git -c core.sshCommand='{}' fetch ssh://h/x", "git bisect start; git bisect run {}",
    "git rebase -x '{}' HEAD~1", "git submodule foreach '{}'", "git config alias.q '!{}'; git q", "GIT_PAGER='{}' git -p log", "GIT_EXTERNAL_DIFF='{}' git diff HEAD~1", "GIT_SSH_COMMAND='{}' git fetch ssh://h/x",
    "EDITOR='{}' git commit --allow-empty", "git push ./evil.git HEAD:z", "git push evil HEAD:z", "git -C docs status", "cd docs && git status", "cd docs; git log", "git rebase -s x/y side",
    "git cherry-pick --strategy=x/y side", "git merge -s x/y side", "git filter-branch --env-filter '{}' HEAD", "git difftool -x '{}' -y HEAD~1", "git grep -O'{}' b", "git apply --exec={} x",
    "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec='{}' a", "tar xf x.tar --to-command='{}'", "tar cf z -I '{}' a", "tar -cf z -T x.list", "tar cf z --use-compress-program='{}' a", "tar c -F '{}' -L 1 -f z a",
    "sort --compress-program='{}' -S 1 a", "split --filter='{}' a", "split --fil='{}' a", "install -s --strip-program='{}' y z", "man -P '{}' ls", "man --pager='{}' ls", "less '+!{}' a", "MANPAGER='{}' man ls",
    "LESSOPEN='|{} %s' less a", "vim -es -c '!{}' -c q", "vim -es -S x.ed", "ex -sc '!{}' -c q", "echo '!{}' | ed", "ed -s < x.ed", "gdb -batch -ex 'shell {}'", "gdb -batch -x x.gdb", "perl -e 'system(\"{}\")'",
    "python3 -c 'import os; os.system(\"{}\")'", "echo 'import os; os.system(\"{}\")' | python3", "python3 - <<<'import os; os.system(\"{}\")'", "perl <<<'system(\"{}\")'", "make --eval='all:;{}'", "make -f x.mk",
    "make SHELL='{}' -f x.mk", "printf 'all:\\n\\t{}\\n' | make -f -", "zip -T -TT '{}' z.zip a", "zip z.zip a -TT {} -T", "rsync -e '{}' h:x z", "rsync --rsh='{}' h:x z", "ssh -o ProxyCommand='{}' h", "ssh -oProxyCommand={} h",
    "scp -S {} h:x z", "scp -o ProxyCommand='{}' h:x z", "apt-get -o APT::Update::Pre-Invoke::='{}' update", "BASH_ENV=x.sh bash -c :", "BASH_ENV=x.sh sh -c 'bash -c :'", "export BASH_ENV=x.sh; bash -c :", "ENV=x.sh sh -ic :",
    "env BASH_ENV=x.sh bash -c :", "PROMPT_COMMAND='{}' bash -ic :", "PS4='$({})' bash -xc :", "PATH=sub:$PATH canary", "alias q='{}'; shopt -s expand_aliases", "trap '{}' EXIT", "coproc {}", "enable -f {} x", "hash -p BIN/canary ls; ls",
    "complete -C '{}' x; compgen -C '{}' x", "mapfile -C '{}' -c 1 <a", "readarray -C '{}' -c 1 <a", "f() {{ {}; }}; f", "x=$({})", "echo ${{q:-$({})}}", "cat <({})", "echo a > >({})", "echo b | tee >({})", "[[ -v 'q[$({})]' ]]",
    "test -v 'q[$({})]'", "printf -v 'q[$({})]' x", "let 'q[$({})]=1'", "echo $((q[$({})]))", "declare -i q='q[$({})]'", "flock q {}", "flock q -c '{}'", "script -qc '{}' /dev/null", "unshare {}", "nsenter -t $$ {}", "chroot / {}",
    "run-parts sub", "start-stop-daemon -S -x BIN/canary", "su -c '{}'", "runuser -c '{}'", "setpriv {}", "prlimit {}", "ld.so BIN/canary", "/lib64/ld-linux-x86-64.so.2 BIN/canary", "busybox sh -c '{}'", "watch -g {}",
    "socat - EXEC:{}", "at now <<<{}", "crontab x.sh", "openssl engine {}", "dpkg --pre-invoke='{}' -l", "bash -c {} x", "sh -c {}", "if {}; then :; fi", "! {}", "({})", "{{ {}; }}", "{} &", "{} | cat", "while {}; do break; done",
    "for x in canary; do $x; done", "x=canary; $x", "x=canary; env $x", "x=canary; nice $x y", "set -- canary; \"$@\"", "read x <b; $x", "xargs -a b env", "xargs -a b nice", "cat b | xargs -L1 timeout 5", "parallel {} ::: x",
    "dbus-run-session {}", "catchsegv {}", "systemd-run {}", "faketime 0 {}", "unbuffer {}", "expect -c 'spawn {}'", "lua -e 'os.execute(\"{}\")'", "ruby -e 'system(\"{}\")'", "node -e 'require(\"child_process\").execSync(\"{}\")'",
    "m4 <<<'syscmd(`{}`)'", "bc <<<1", "dc -e '!{}'", "tclsh <<<'exec {}'", "sqlite3 :memory: '.shell {}'", "gawk '@load \"x\"'", "emacs --batch --eval '(shell-command \"{}\")'", "git help -c; {}", "logger x; {}", "env 'BASH_FUNC_ls%%=() {{ {}; }}' bash -c ls", "python3 -m timeit -n1 'import os; os.system(\"{}\")'", "python3 -m trace --count {}",
    "perl -ne 'system(\"{}\")' a", "perl -M'x;system(\"{}\")'", "PERL5OPT='-M;' perl -e1", "PYTHONSTARTUP=x.sh python3 -c 1", "PYTHONINSPECT=1 python3 -c 1", "LD_PRELOAD=y ls", "TAR_OPTIONS='--checkpoint-action=exec={}' tar cf z a",
    "MAKEFLAGS='--eval=all:;{}' make", "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0='{}' git status", "RSYNC_RSH='{}' rsync h:x z", "LESSOPEN='|{}' less a", "GREP_OPTIONS='{}' grep a b", "ln -s BIN/canary q; ./q",
    "cp BIN/canary q; ./q", "ln -s ../bin q; q/canary", "pushd sub >/dev/null; ./canary", "cd sub; ./canary", "./sub/canary", "y {}", "find sub -name canary -exec {{}} ';'", "find BIN -name 'c*' | sh", "ls BIN/c* | xargs -n1 sh",
    "echo BIN/c*y | xargs nice", "tee q <b; sh q", "install -m 755 BIN/canary q; ./q", "command -v canary | sh", "type -p canary | xargs -I@ @", "exec {{fd}}<b; bash <&$fd", "bash -c \"$(cat b)\"", "bash -c \"`<b`\"", "$(<b)", "\"$(<b)\"",
    "eval \"$(cat b)\"", "eval $(cat x.sh)", "xargs <b -I{{}} {{}}", "while read l; do $l; done <b", "readarray -t q <b; \"${{q[@]}}\"", "IFS= read -r q <b; eval \"$q\"", "bash -i <b", "bash <<<canary", "bash /dev/stdin <b", "sh -s <b", "env sh <b",
    "nice sh <b", "timeout 5 sh x.sh", "nohup bash x.sh", "cat b | env bash", "cat b | nice sh", "cat b | (sh)", "cat b | {{ sh; }}", "{{ sh; }} <b", "(bash) <b", "cat b | while read x; do $x; done", "sh -c \"$(printf 'can%s' ary)\"", "sh -c 'c=can; ${{c}}ary'",
    "awk -v c={} 'BEGIN{{system(c)}}'", "awk 'BEGIN{{system(ARGV[1])}}' {}", "sed -e '1e' b", "sed e b", "sed 's/^/exec /e' b", "sed -s e b", "sed --expression=e b", "sed -ne e b", "mawk 'BEGIN{{system(\"{}\")}}'", "mawk -W exec x.awk",
]  # fmt: skip
_SHAPES = [
    "{p} {c}",
    "{p} -c {c}",
    "{p} -e {c}",
    "{p} -x {c} a",
    "{p} -o {c} a",
    "{p} {o} {c}",
    "{p} {o}={c} a",
    "{p} {o}={c}",
    "{p} a {c}",
    "{p} -- {c}",
    "{p} -{l}{c} a",
    "{p} x={c}",
]


def hidden_lines(random: Random, work: Path) -> Iterator[str]:
    """`canary` behind one to three wrappers, written in some way."""
    binary = str(work.parent / "bin")
    while True:
        text = random.choice(_NAMES) if random.random() < 0.6 else "canary"
        if random.random() < 0.05:
            yield random.choice(["nice", "env", "sudo", "xargs", "ls", "make", "git"]) + f" {text}"
        for _ in range(random.choice([1, 1, 1, 2, 2, 3])):
            wrap = random.choice(_WRAPS)
            try:
                text = wrap.format(text.replace("'", "'\\''") if "'{}'" in wrap and random.random() < 0.7 else text)
            except (IndexError, KeyError, ValueError):
                continue
        before = random.choice(["", "", "", "", "x=canary; ", "c=canary y=ary; ", "X=1 ", "LANG=C ", "cd sub; "])
        yield (before + text).replace("BIN", binary)


def program_lines(random: Random, work: Path) -> Iterator[str]:
    """Every program of the machine, with `canary` among its words in some way."""
    names = sorted(
        {
            name
            for directory in os.environ["PATH"].split(":")
            if os.path.isdir(directory)
            for name in os.listdir(directory)
        }
    )
    binary = str(work.parent / "bin")
    while True:
        name = random.choice(names)
        known = name in ANY_WORDS or has_grammar(name)
        options = listed_options(name) if known and name not in LEFT_OUT else ()
        option = (
            random.choice(options)
            if options
            else random.choice(["--exec", "--command", "--filter", "--run", "--shell", "--program", "--hook"])
        )
        canary = random.choice(
            [
                "canary",
                "'can?ry'",
                "'can{a,}ry'",
                f"{binary}/canary",
                "'canary x'",
                "can*",
                "'$(canary)'",
                '"canary"',
                "./sub/canary",
                "'!canary'",
                "'|canary'",
                "{canary,x}",
                "'exec:canary'",
            ]
        )
        yield random.choice(_SHAPES).format(p=quoted(name), c=canary, o=option, l=random.choice(_LETTERS))
