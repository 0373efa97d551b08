"""What a `git` command may be given under a `*`: subcommands, their options, and the kinds of their operands.

A `*` covers the subcommands of `_COVERED` with what the table lists, as long as it keeps to the repository. Those of `_NAMED`
have to be named by a rule (`Bash(git clone *)`), and then the same holds. Every other subcommand, an alias for instance, needs
a rule for the whole command. Nothing is known here of a repository's own settings.
"""

import posixpath
import re
from functools import cache
from typing import Final

from antiphon.policy.grammar import Grammar, RunContext, WordRisk, grammar
from antiphon.policy.patterns import Words

__all__ = ["git_changes_files", "git_levels", "git_reads_data"]

_FIRST: Final = frozenset({"--help", "--no-pager", "--no-optional-locks", "--version", "-P", "-h", "-v"})
"""What may stand before the subcommand. The others (`-c`, `-C`, `--git-dir` …) choose other settings, and settings name programs."""

_WITH_VALUE: Final = frozenset({
    "--attr-source", "--config-env", "--git-dir", "--namespace", "--super-prefix", "--work-tree", "-C", "-c",
})  # fmt: skip

_DIFF: Final = (
    "-p -u -s --patch --no-patch -U= --unified= --raw --patch-with-raw --patch-with-stat --minimal --patience --histogram --diff-algorithm: "
    "--anchored: --stat= --compact-summary --numstat --shortstat --dirstat= --summary --name-only --name-status --color= --no-color "
    "--color-moved= --no-color-moved --color-words= --word-diff= --word-diff-regex: --check --full-index --binary --abbrev= --no-abbrev -B= "
    "--break-rewrites= -M= --find-renames= -C= --find-copies= --find-copies-harder -D --irreversible-delete --no-renames -R -a --text -b -w -z "
    "--ignore-space-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-cr-at-eol --inter-hunk-context: -W "
    "--function-context --exit-code --quiet --no-ext-diff --no-textconv --no-prefix --src-prefix: --dst-prefix: --line-prefix: --submodule= "
    "--ignore-submodules= -S: -G: --pickaxe-all --pickaxe-regex --diff-filter: --relative= --no-relative --merge-base --cached --staged -1 -2 -3 "
    "--base --ours --theirs -0 -c --cc -m -l: --indent-heuristic --no-indent-heuristic "
)
_WALK: Final = (
    "-# -n: --max-count: --skip: --oneline --graph --decorate= --no-decorate --decorate-refs: --decorate-refs-exclude: --source --all --branches= "
    "--tags= --remotes= --glob: --exclude: --since: --after: --until: --before: --author: --committer: --grep: --all-match --invert-grep -i "
    "--regexp-ignore-case -E --extended-regexp -F --fixed-strings -P --perl-regexp --format: --pretty= --abbrev-commit --no-abbrev-commit "
    "--date: --relative-date --reverse --merges --no-merges --min-parents: --max-parents: --first-parent --follow -L: -g --walk-reflogs "
    "--left-right --left-only --right-only --cherry --cherry-mark --cherry-pick --boundary --ancestry-path= --simplify-by-decoration --full-history "
    "--simplify-merges --dense --sparse --topo-order --date-order --author-date-order --not --parents --children --count --log-size --mailmap "
    "--use-mailmap --no-notes --notes= --full-diff -t -r --root --encoding: --objects --no-walk= --do-walk --bisect --timestamp --header "
    "--end-of-options "
)
_MERGING: Final = (
    "--strategy-option: -X: --ff --no-ff --ff-only --squash --no-squash --commit --no-commit --stat -n --no-stat --verify --no-verify "
    "--allow-unrelated-histories --autostash --no-autostash --abort --continue --quit --skip -q --quiet -v --verbose --no-edit --signoff "
    "--no-signoff --log= --no-log --no-gpg-sign --rerere-autoupdate --no-rerere-autoupdate --progress --no-progress --cleanup: "
)
_FETCHING: Final = (
    "-a --append --atomic --depth: --deepen: --shallow-since: --unshallow --dry-run -f --force -k --keep -p --prune -P --prune-tags -n --no-tags "
    "-t --tags --set-upstream -q --quiet -v --verbose --progress --no-recurse-submodules -4 -6 --ipv4 --ipv6 --all "
    "--update-shallow --filter: --no-write-fetch-head "
)
_REFS: Final = "--sort: --format: --points-at= --contains= --no-contains= --merged= --no-merged= --count: -i --ignore-case --color= --no-color "

_COVERED: Final[dict[str, tuple[str, str]]] = {
    "add": ("-n -v -f -i -p -e -u -A -N --dry-run --verbose --force --patch --interactive --update --all --no-all --intent-to-add --refresh "
            "--ignore-errors --ignore-missing --renormalize --chmod: --sparse --edit", "p*"),
    "apply": ("--stat --numstat --summary --check --index --cached --intent-to-add -3 --3way -R --reverse --reject -z -p: -C: -N --recount "
              "--unidiff-zero --apply --no-add --binary --exclude: --include: --ignore-space-change --ignore-whitespace --whitespace: "
              "--inaccurate-eof -v --verbose -q --quiet --allow-empty", "p*"),
    "blame": ("-# -b -c -l -t -f -n -p -s -e -w -h -L: -M= -C= --root --show-stats --score-debug --show-name --show-number --porcelain "
              "--line-porcelain --incremental --show-email --date: --first-parent --reverse --since: --color-lines --color-by-age --abbrev: "
              "--ignore-rev: --no-progress --progress", "p*"),
    "branch": ("-a -r -v -q -d -D -m -M -c -C -f -l -t -u: -i --all --remotes --verbose --quiet --delete --move --copy --force --list --track= "
               "--no-track --set-upstream-to: --unset-upstream --show-current --create-reflog --abbrev= --no-abbrev --column= --no-column " + _REFS, "t*"),
    "cat-file": ("-t -s -e -p --batch= --batch-check= --batch-all-objects --unordered --follow-symlinks --buffer -z", "t*"),
    "check-ignore": ("-q -v -n -z --quiet --verbose --non-matching --no-index --stdin", "p*"),
    "checkout": ("-q -f -b: -B: -t -l -d -m -p -2 -3 --quiet --progress --no-progress --force --ours --theirs --track= --no-track --guess --no-guess "
                 "--detach --orphan: --merge --conflict: --patch --overlay --no-overlay --no-recurse-submodules --overwrite-ignore "
                 "--no-overwrite-ignore --ignore-skip-worktree-bits", "p*"),
    "cherry": ("-v --abbrev=", "t*"),
    "cherry-pick": ("-e -n -m: -x -r -s --edit --cleanup: --mainline: --allow-empty --allow-empty-message --keep-redundant-commits --ff "
                    "--strategy-option: -X: --continue --skip --abort --quit --signoff --no-commit --no-gpg-sign --rerere-autoupdate", "t*"),
    "clean": ("-d -f -i -n -q -x -X -e: --force --interactive --dry-run --quiet --exclude:", "p*"),
    "commit": ("-a -p -q -v -s -n -e -i -o -z -m: -F:p -C: -c: -t:p -u= --all --patch --reuse-message: --reedit-message: --fixup: --squash: "
               "--reset-author --short --branch --porcelain --long --null --file:p --author: --date: --message: --template:p --signoff --no-signoff "
               "--trailer: --no-verify --verify --allow-empty --allow-empty-message --cleanup: --edit --no-edit --amend --no-post-rewrite "
               "--include --only --untracked-files= --verbose --quiet --dry-run --status --no-status --no-gpg-sign", "p*"),
    "count-objects": ("-v -H --verbose --human-readable", ""),
    "describe": ("--dirty= --broken= --all --tags --contains --abbrev= --candidates: --exact-match --debug --long --match: --exclude: --always "
                 "--first-parent", "t*"),
    "diff": (_DIFF, "p*"),
    "diff-index": (_DIFF + "-r -t --root", "p*"),
    "diff-tree": (_DIFF + "-r -t -v --root --pretty= --format: --no-commit-id --stdin --always --combined-all-paths", "p*"),
    "fetch": (_FETCHING, "rt*"),
    "for-each-ref": (_REFS + "-s -p --shell --perl --python --tcl --omit-empty --exclude:", "t*"),
    "grep": ("-i -v -w -E -G -F -P -n -l -L -h -H -o -c -p -W -q -z -I -a -r -A: -B: -C: -e: -m: -# --cached --untracked --text --ignore-case "
             "--word-regexp --invert-match --extended-regexp --basic-regexp --perl-regexp --fixed-strings --line-number --column --files-with-matches "
             "--name-only --files-without-match --null --only-matching --count --color= --no-color --break --heading --show-function --context: "
             "--after-context: --before-context: --function-context --max-depth: --max-count: --threads: --recursive --no-recursive --and --or --not "
             "--all-match --quiet --full-name --exclude-standard --no-exclude-standard --no-textconv", "tp*"),
    "init": ("-q --quiet -b: --initial-branch: --object-format:", "p"),
    "log": (_WALK + _DIFF + "--show-signature --clear-decorations --diff-merges: --remerge-diff --no-diff-merges", "p*"),
    "ls-files": ("-c -d -m -o -i -s -u -k -z -t -v -f -x: --cached --deleted --modified --others --ignored --stage --unmerged --killed --directory "
                 "--no-empty-directory --exclude: --exclude-standard --error-unmatch --with-tree: --full-name --abbrev= --debug --eol --deduplicate "
                 "--format:", "p*"),
    "ls-remote": ("-h -t -q --heads --tags --refs --quiet --exit-code --get-url --sort: --symref --branches", "rt*"),
    "ls-tree": ("-d -r -t -l -z --name-only --name-status --object-only --full-name --full-tree --abbrev= --long --format:", "p*"),
    "merge": (_MERGING + "-m: -F:p --file:p --into-name: -e --edit --overwrite-ignore --no-overwrite-ignore", "t*"),
    "merge-base": ("-a --all --octopus --independent --is-ancestor --fork-point", "t*"),
    "mv": ("-f -k -n -v --force --dry-run --verbose --sparse", "p*"),
    "name-rev": ("--tags --refs: --exclude: --all --name-only --no-undefined --always --annotate-stdin", "t*"),
    "pull": (_MERGING + _FETCHING + "-r= --rebase= --no-rebase -e --edit", "rt*"),
    "push": ("-u -f -d -n -q -v -4 -6 -o: --all --branches --prune --mirror --dry-run --porcelain --delete --tags --follow-tags --atomic --no-atomic "
             "--force-with-lease= --no-force-with-lease --force-if-includes --force --set-upstream --thin --no-thin --quiet --verbose --progress "
             "--no-verify --verify --push-option: --no-signed --ipv4 --ipv6 --no-recurse-submodules", "rt*"),
    "range-diff": (_DIFF + "--no-dual-color --creation-factor: --no-notes --notes=", "t*"),
    "rebase": (_MERGING + "-i -r= -m -f -k --interactive --onto: --keep-base --root --rebase-merges= --no-rebase-merges --fork-point "
               "--no-fork-point --autosquash --no-autosquash --update-refs --no-update-refs --empty: --keep-empty --no-keep-empty "
               "--reapply-cherry-picks --no-reapply-cherry-picks --force-rebase --no-force-rebase --ignore-whitespace --whitespace: -C: "
               "--committer-date-is-author-date --reset-author-date --ignore-date --edit-todo --show-current-patch --merge --apply", "t*"),
    "reflog": (_WALK + _DIFF + "--expire: --expire-unreachable: --updateref --rewrite --stale-fix --dry-run", "t*"),
    "remote": ("-v --verbose -n", "tr"),
    "reset": ("-q -p -N --quiet --no-quiet --soft --mixed --hard --merge --keep --patch --intent-to-add --refresh --no-refresh "
              "--no-recurse-submodules", "p*"),
    "restore": ("-s: -p -W -S -q -m --source: --patch --worktree --staged --quiet --progress --no-progress --ours --theirs --merge --conflict: "
                "--ignore-unmerged --ignore-skip-worktree-bits --overlay --no-overlay --no-recurse-submodules", "p*"),
    "rev-list": (_WALK + "--disk-usage= --use-bitmap-index --in-commit-order --no-commit-header --commit-header --missing: --quiet", "p*"),
    "rev-parse": ("-q --verify --quiet --short= --abbrev-ref= --symbolic --symbolic-full-name --all --branches= --tags= --remotes= --glob: "
                  "--show-toplevel --show-prefix --show-cdup --git-dir --git-common-dir --absolute-git-dir --is-inside-git-dir "
                  "--is-inside-work-tree --is-bare-repository --is-shallow-repository --show-superproject-working-tree --git-path: --sq "
                  "--revs-only --no-revs --flags --no-flags --default: --not --since: --until: --show-object-format= --local-env-vars "
                  "--end-of-options --path-format:", "t*"),
    "revert": ("-e -n -m: -s --edit --no-edit --cleanup: --mainline: --no-commit --signoff --strategy-option: -X: --continue --skip --abort --quit "
               "--no-gpg-sign --rerere-autoupdate --reference", "t*"),
    "rm": ("-f -n -r -q --force --dry-run --cached --ignore-unmatch --quiet --sparse", "p*"),
    "shortlog": (_WALK + "-s -e -c -w= --numbered --summary --email --group: --committer", "t*"),
    "show": (_WALK + _DIFF + "--show-signature --diff-merges: --remerge-diff", "p*"),
    "show-branch": ("-a -r -g= --all --remotes --current --topo-order --date-order --sparse --more: --list --merge-base --independent --no-name "
                    "--sha1-name --topics --color= --no-color --reflog=", "t*"),
    "show-ref": ("-h -d -s= -q --head --heads --branches --tags --dereference --hash= --verify --exists --abbrev= --quiet", "t*"),
    "stash": ("-p -S -k -u -a -q -m: --patch --staged --keep-index --no-keep-index --include-untracked --only-untracked --all --quiet --message: "
              "--index --stat --name-only --name-status --oneline", "tp*"),
    "status": ("-s -b -v -z -u= --short --branch --show-stash --porcelain= --long --verbose --untracked-files= --ignore-submodules= --ignored= "
               "--column= --no-column --ahead-behind --no-ahead-behind --renames --no-renames --find-renames=", "p*"),
    "switch": ("-c: -C: -d -f -m -q -t --create: --force-create: --detach --guess --no-guess --discard-changes --force --merge --conflict: --quiet "
               "--progress --no-progress --track= --no-track --orphan: --no-recurse-submodules --overwrite-ignore --no-overwrite-ignore", "t*"),
    "tag": ("-a -s -f -d -v -l -n= -m: -F:p --annotate --no-sign --sign --force --delete --verify --list= --message: --file:p --cleanup: "
            "--create-reflog --column= --no-column " + _REFS, "t*"),
    "version": ("--build-options", ""),
    "whatchanged": (_WALK + _DIFF, "p*"),
}  # fmt: skip
"""Subcommands that work in the repository they are run in: the options and operands that a `*` covers."""

_NAMED: Final[dict[str, tuple[str, str]]] = {
    "am": ("-3 -s -k -q -u -b --3way --signoff --keep --quiet --abort --continue --skip --quit --show-current-patch= --no-verify "
           "--keep-non-patch --scissors --no-scissors -C: -p: --whitespace: --committer-date-is-author-date --ignore-date --reject", "p*"),
    "archive": ("-v -l -# --format: --list --verbose --worktree-attributes --mtime: --prefix: >-o:p >--output:p", "p*"),
    "bisect": ("--term-old --term-new --term-good --term-bad --no-checkout --first-parent", "t*"),
    "check-attr": ("-a -z --all --cached --stdin", "p*"),
    "clone": ("-q -v -n -b: -o: -j: --quiet --verbose --progress --no-checkout --branch: --depth: --shallow-since: --shallow-exclude: "
              "--single-branch --no-single-branch --no-tags --tags --filter: --sparse --origin: --no-local --no-hardlinks --jobs: "
              "--no-remote-submodules", "up"),
    "commit-tree": ("-p: -m: -F:p --no-gpg-sign", "t*"),
    "config": ("-l -z --list --get --get-all --get-regexp --get-urlmatch --name-only --show-origin --show-scope --local --global --system "
               "--worktree --null --type: --bool --int --path --default: --includes --no-includes", "t"),
    "format-patch": (_DIFF + "-k -# -N -n -v: --stdout --numbered --no-numbered --keep-subject --signoff -s --cover-letter --subject-prefix: --rfc "
                     "--no-cover-letter --thread= --no-thread --in-reply-to: --from= --base: --root --zero-commit --start-number: "
                     ">-o:p >--output-directory:p", "p*"),
    "fsck": ("-v --full --strict --lost-found --unreachable --dangling --no-dangling --root --tags --cache --no-reflogs --connectivity-only "
             "--verbose --progress --no-progress --name-objects", "t*"),
    "gc": ("-q --aggressive --auto --prune= --no-prune --quiet --force --keep-largest-pack --cruft", ""),
    "hash-object": ("-t: --stdin --no-filters --literally", "p*"),
    "help": ("-a -g --all --guides", "t"),
    "notes": ("-f -m: -F:p -C: --force --message: --file:p --ref: --allow-empty -q -v --quiet --verbose --abort --commit", "t*"),
    "prune": ("-n -v --dry-run --verbose --expire: --progress", "t*"),
    "sparse-checkout": ("--cone --no-cone --sparse-index --no-sparse-index --stdin --skip-checks", "t*"),
    "submodule": ("-q --quiet --cached --recursive", "tp*"),
    "symbolic-ref": ("-q -d --quiet --delete --short --recurse --no-recurse", "t*"),
    "update-index": ("-q --refresh --really-refresh --assume-unchanged --no-assume-unchanged --skip-worktree --no-skip-worktree --add --remove "
                     "--force-remove --chmod: --again -g", "p*"),
    "var": ("-l", "t"),
    "verify-commit": ("-v --raw --verbose", "t*"),
    "verify-tag": ("-v --raw --verbose --format:", "t*"),
    "worktree": ("-f -b: -B: -d -q -n -v --force --detach --checkout --no-checkout --lock --reason: --quiet --track --no-track --guess-remote "
                 "--orphan --dry-run --verbose --expire: --porcelain -z", "tp*"),
}  # fmt: skip
"""Subcommands that a rule has to name: they make things elsewhere, or change more than the work tree."""

_FIRST_OPERANDS: Final = {
    "bisect": "start bad good new old skip reset log next terms",
    "notes": "list add copy append show merge remove prune get-ref",
    "remote": "show get-url",
    "sparse-checkout": "list set add reapply disable init",
    "stash": "push pop apply drop list show save clear branch create store",
    "submodule": "status summary",
    "worktree": "list add remove prune lock unlock move repair",
}
"""The words that may follow these subcommands. `git bisect run`, `git submodule foreach` and `git remote add` are not among them."""

_QUIET: Final = frozenset({
    "", "add", "blame", "branch", "cat-file", "check-ignore", "cherry", "commit", "count-objects", "describe", "diff", "diff-index", "diff-tree", "fetch",
    "for-each-ref", "grep", "log", "ls-files", "ls-remote", "ls-tree", "merge-base", "name-rev", "push", "range-diff", "reflog", "remote", "rev-list",
    "rev-parse", "shortlog", "show", "show-branch", "show-ref", "status", "tag", "version", "whatchanged",
})  # fmt: skip
"""Subcommands that leave the files of the work tree as they are."""

_FED: Final = _QUIET - {"", "add", "branch", "commit", "push", "tag"} | {"apply", "check-attr", "hash-object"}
"""Subcommands that start no editor and put no questions."""

_HAS_MESSAGE: Final = re.compile(r"-[A-Za-z]*[mF]|--(?:message|file)(?:=|\Z)")
_ASKS: Final = re.compile(r"-[A-Za-z]*[ceipt]|--(?:edit|interactive|patch|reedit-message|template)")

_STRATEGIES: Final = frozenset({"octopus", "ort", "ours", "recursive", "resolve", "subtree"})
"""git's own. Another name is that of a program, which may be a file of the work tree: `./git-merge-x/y`."""


def git_levels(words: Words, context: RunContext) -> dict[int, WordRisk]:
    """The words of a git command that are not fine under a `*`, with what is known about them."""
    at = 1
    found: dict[int, WordRisk] = {}
    directories = context.directories
    while at < len(words) and (word := words[at]) is not None and word.startswith("-"):
        step = 2 if word in _WITH_VALUE else 1
        if word not in _FIRST:
            found |= dict.fromkeys(range(at, min(at + step, len(words))), WordRisk.RUNS)
        if word == "-C" and at + 1 < len(words):
            directories += tuple(posixpath.join(here, words[at + 1] or ".") for here in context.directories)
        at += step
    if at >= len(words):
        return found
    context = context.also_at(directories)
    if context.strays:
        return dict.fromkeys(range(len(words)), WordRisk.RUNS)
    name = words[at]
    known = None if name is None else _grammar(name)
    if known is None:
        return found | dict.fromkeys(range(at, len(words)), WordRisk.RUNS)
    inside = known.check(_without_strategy(name or "", words), at + 1, context)
    if name in _NAMED:
        found[at] = WordRisk.REACHES
    if name == "config":
        inside = dict.fromkeys(inside, WordRisk.RUNS)  # what is set may be a program, and a later git runs it
    return found | inside


def git_changes_files(words: Words) -> bool:
    """Whether a git command may make files or links in the work tree."""
    name = next((word for word in words[1:] if word is None or not word.startswith("-")), "")
    return name not in _QUIET


def git_reads_data(words: Words) -> bool:
    """Whether a git command takes its standard input for data. An editor that it starts gets the same input, and may run it."""
    name = next((word for word in words[1:] if word is None or not word.startswith("-")), None)
    if name not in ("commit", "tag"):
        return name in _FED
    options = [word for word in words[1:] if word is not None and word.startswith("-")]
    has_message = any(_HAS_MESSAGE.match(word) for word in options)
    return has_message and None not in words and not any(_ASKS.match(word) for word in options)


def _without_strategy(name: str, words: Words) -> Words:
    """The words with a strategy that is git's own written as a flag that every merging subcommand knows."""
    if name not in ("cherry-pick", "merge", "pull", "rebase", "revert"):
        return words
    short = name in ("merge", "pull", "rebase")  # elsewhere `-s` signs off
    plain: list[str | None] = list(words)
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else None
        if word is None:
            continue
        if word.startswith("--strategy=") and word[11:] in _STRATEGIES:
            plain[at] = "--no-gpg-sign"
        elif (word == "--strategy" or (short and word == "-s")) and following in _STRATEGIES:
            plain[at] = plain[at + 1] = "--no-gpg-sign"
    return tuple(plain)


@cache
def _grammar(name: str) -> Grammar | None:
    options, operands = _COVERED.get(name) or _NAMED.get(name) or (None, "")
    return None if options is None else grammar(options, operands, first=_FIRST_OPERANDS.get(name))
