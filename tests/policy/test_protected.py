"""Files that name programs to run: no mode of edits and no wildcard writes them, whatever they are called and however they are reached.

The judge here is the disk: a random tree with links, a random spelling or shell line that is really carried out, and then a look at
what every protected name in the tree leads to.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, event, example, given, settings
from hypothesis import strategies as st

from antiphon.policy import Action, PolicyMode, Rule, Rules, Verdict, decide, suggest
from antiphon.policy.protected import NAMES, protected
from antiphon.protocol import v1
from tests.policy.short import CWD, files, line, ruling, verdict
from tests.rows import each_row

ALLOW, ASK = Verdict.ALLOW, Verdict.ASK
EDITS = PolicyMode.ACCEPT_EDITS

# What has to be protected, listed here once more: what the list forgets is found by comparing.
PROTECTED = (
    ".git/config", ".git/hooks/post-checkout", ".antiphon/config.toml", ".claude/settings.json", ".claude/settings.local.json",
    ".claude/commands/x.md", ".mcp.json", ".codex/config.toml", ".vscode/tasks.json", ".idea/workspace.xml", ".husky/pre-commit", ".envrc",
    ".github/workflows/ci.yml", ".github/actions/x/action.yml", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile", ".bashrc",
    ".zshenv", ".profile", "docs.git/config", "docs.git/HEAD", "docs.git/hooks/pre-receive", ".devcontainer/devcontainer.json",
    ".devcontainer.json", ".pre-commit-config.yaml", ".gitattributes", ".gitmodules", ".gitconfig", ".ssh/config", ".vimrc", ".exrc",
    ".dir-locals.el", "app.code-workspace", ".npmrc", ".yarnrc.yml", ".cargo/config.toml", "lefthook.yml", ".config/fish/config.fish",
    ".claude/worktrees/a/.vscode/tasks.json", "venv/lib/evil.pth", ".gemini/settings.json", ".cursor/mcp.json", ".zed/tasks.json",
)  # fmt: skip

ORDINARY = (
    "src/main.py", "Makefile", "package.json", "conftest.py", "config/routes.rb", "src/hooks/useThing.ts", ".github/CODEOWNERS",
    ".github/ISSUE_TEMPLATE/bug.md", ".gitignore", ".editorconfig", "CLAUDE.md", "AGENTS.md", "git/x", "docs/vscode/x", "head/x", ".env.example",
    "heads", "config.py", "hooks/index.js", ".claude/worktrees/a/src/main.py", "pyproject.toml", ".dockerignore", "info/x",
)  # fmt: skip


@each_row("path", [*PROTECTED, *(f"deep/er/{path}" for path in PROTECTED), *NAMES])
def test_modes_and_rules_for_all_edits_stop_at_files_that_name_programs(path: str) -> None:
    action = files(path)
    assert ruling(action, mode=EDITS).verdict is ASK
    assert "can name programs" in ruling(action, mode=EDITS).why
    for rule in (
        "Edit",
        "Edit(**)",
        "kind:edit",
        "Edit(deep/**)",
        "Edit(*)",
        f"Edit({CWD}/**)",
        "Edit(*/*)",
        "Edit(**/*)",
    ):
        assert verdict(action, allow=[rule]) is ASK, rule
    assert verdict(action, allow=[f"Edit({path})"]) is ALLOW  # a rule that names it
    (always,) = suggest(action)
    assert decide(action, Rules(allow=(always,))).verdict is ALLOW
    assert ruling(action, mode=PolicyMode.BYPASS).verdict is ALLOW


@each_row("path", ORDINARY)
def test_other_files_are_edited_as_before(path: str) -> None:
    assert ruling(files(path), mode=EDITS).verdict is ALLOW
    assert verdict(files(path), allow=["Edit(**)"]) is ALLOW


def test_a_rule_that_names_the_directory_covers_what_is_in_it() -> None:
    for rule in (
        "Edit(.github/workflows/**)",
        "Edit(.github/**)",
        "Edit(**/workflows/.github/**)",
        f"Edit({CWD}/.github/**)",
    ):
        assert verdict(files(".github/workflows/ci.yml"), allow=[rule]) is (
            ASK if "workflows/.github" in rule else ALLOW
        )
    assert verdict(files(".github/.vscode/x"), allow=["Edit(.github/**)"]) is ASK


def test_a_patch_of_many_files_is_as_protected_as_its_worst(tmp_path: Path) -> None:
    call = v1.ToolCallPatch(
        "t", kind=v1.ToolKind.EDIT, name="apply_patch",
        content=[v1.Diff(f"{CWD}/src/a", "x"), v1.Diff(f"{CWD}/.envrc", "x")], raw_input={"changes": {}},
    )  # fmt: skip
    action = Action.of_tool_call(call, CWD, [CWD])
    assert decide(action, Rules(), EDITS).verdict is ASK
    assert verdict(action, allow=["Edit(**)"]) is ASK
    assert verdict(action, allow=["Edit(src/**)", "Edit(.envrc)"]) is ALLOW


@each_row(
    ("text", "rules", "expected"),
    [
        ("cat .github/workflows/ci.yml", ["Bash(cat *)"], ALLOW),
        ("git add .github/workflows/ci.yml && git commit -m x", ["Bash(git *)"], ALLOW),
        ("git diff HEAD -- .vscode", ["Bash(git *)"], ALLOW),
        ("git checkout HEAD", ["Bash(git *)"], ALLOW),
        ("npm config get registry", ["Bash(npm *)"], ALLOW),
        ("cp a b", ["Bash(cp *)"], ALLOW),
        ("cp *.txt out", ["Bash(cp *)"], ALLOW),
        ("mkdir -p src/config", [], ALLOW),
        ("rm -rf src/hooks", [], ALLOW),
        ("mv a .claude/settings.json", [], ASK),
        ("mv settings.json .claude", [], ASK),
        ("mv pre-commit hooks", [], ASK),
        ("mv h hooks", [], ASK),
        ("mv HEAD docs", [], ASK),
        ("cp a .claude/settings.json", ["Bash(cp *)"], ASK),
        ("cp a $TARGET", ["Bash(cp *)"], ASK),
        ("cp -t .claude a", ["Bash(cp *)"], ASK),
        ("cp a .claude/settings.json", ["Bash(cp a *)"], ASK),
        ("cp a .claude/settings.json", ["Bash(cp * .claude/settings.json)"], ALLOW),
        ("git mv a .github/workflows/ci.yml", ["Bash(git *)", "Bash(git mv *)"], ASK),
        ("npm run x -- .vscode/tasks.json", ["Bash(npm *)"], ASK),
        ("cd hooks && cp ../a pre-commit", ["Bash(cd *)", "Bash(cp *)"], ASK),
    ],
)  # fmt: skip
def test_a_command_that_moves_or_copies_a_file_there_writes_it(text: str, rules: list[str], expected: Verdict) -> None:
    assert ruling(line(text), allow=rules, mode=EDITS).verdict is expected


# The disk as the judge.

TREE = (
    "a/x", "b/x", "conf/settings.json", ".vscode/settings.json", ".github/workflows/ci.yml", ".envrc", "docs.git/HEAD", "docs.git/config",
    "docs.git/hooks/pre-receive", "src/x",
)  # fmt: skip
PLACES = ("a", "b", "conf", ".vscode", ".github", ".github/workflows", "docs.git", "docs.git/hooks", "src")
LEAVES = (
    "x",
    "settings.json",
    "ci.yml",
    ".envrc",
    "config",
    "HEAD",
    "pre-receive",
    "new",
    "tasks.json",
    "workflows",
    "hooks",
    ".vscode",
)
SOURCES = ("a/x", "src/x", "b", "conf/settings.json", "a", "missing")

link_names = st.sampled_from(["l1", "l2", "a/l3", "conf/l4", "workflows", ".idea", ".husky", "hooks"])
links = st.dictionaries(link_names, st.sampled_from([*PLACES, "l1", "l2"]), max_size=3)


@st.composite
def spelled(draw: st.DrawFn) -> str:
    """A path, as a user may write it."""
    steps = st.sampled_from([*PLACES, "l1", "l2", "l3", "l4", "..", ".", "", "a/..", "workflows", "hooks", ".idea"])
    path = "/".join([*draw(st.lists(steps, max_size=3)), draw(st.sampled_from(LEAVES))])
    return f".{path}" if path.startswith("/") else path  # the tests write there


def build(root: Path, made: dict[str, str]) -> None:
    shutil.rmtree(root, ignore_errors=True)
    for name in TREE:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"old {name}", encoding="utf-8")
    (root / "docs.git" / "objects").mkdir()
    (root / "docs.git" / "refs").mkdir()
    for name, target in made.items():
        link = root / name
        if not link.exists() and not link.is_symlink():
            link.symlink_to(os.path.relpath(root / target, link.parent))


def _walk(top: Path, seen: frozenset[str] = frozenset()) -> Iterator[Path]:
    real = os.path.realpath(top)
    if real in seen:
        return
    for entry in sorted(os.scandir(top), key=lambda entry: entry.name):
        path = top / entry.name
        yield path
        if path.is_dir():
            yield from _walk(path, seen | {real})


def what_names_lead_to(root: Path) -> dict[str, str]:
    """The content behind every protected name of the tree, links followed. The names are those of this test."""
    found = {}
    for path in _walk(root):
        name = str(path.relative_to(root))
        parts = name.split("/")
        is_repository = len(parts) > 1 and parts[-1] in ("HEAD", "config") and (path.parent / "HEAD").exists()
        counts = (
            {".vscode", ".envrc", ".idea", ".husky"} & set(parts)
            or ".github/workflows/" in f"/{name}"
            or any(part == "hooks" and after == "pre-receive" for part, after in pairwise(parts))
            or is_repository
        )
        if counts and path.is_file():
            found[name] = path.read_text(encoding="utf-8", errors="replace")
    return found


def added_or_changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name, text in after.items() if before.get(name) != text}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory so deep that the `..` of a line do not lead out of what belongs to the tests."""
    return Path(os.path.realpath(tmp_path_factory.mktemp("tree")), *map(str, range(12)), "work")


@pytest.mark.slow
@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
@example({"l1": ".vscode"}, "l1/tasks.json")
@example({".idea": "conf"}, "conf/settings.json")
@example({"hooks": "a"}, "a/pre-receive")
@example({}, "a/../.vscode/../.vscode/new")
@example({"workflows": ".github/workflows"}, "workflows/ci.yml")
@given(links, spelled())
def test_no_spelling_of_a_path_writes_a_protected_file_unasked(root: Path, made: dict[str, str], path: str) -> None:
    build(root, made)
    where = root / path
    write = v1.WriteTextFile("s", str(where), "new")
    action = Action.of_write(write, str(root), [str(root)], home=str(root.parent), resolve=os.path.realpath)
    verdicts = {decide(action, Rules(), EDITS).verdict, decide(action, Rules.parse(allow=["Write(**)"])).verdict}
    before = what_names_lead_to(root)
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text("new", encoding="utf-8")
    except OSError:
        assume(False)
    changed = added_or_changed(before, what_names_lead_to(root))
    event(f"{'protected' if changed else 'ordinary'}, {sorted(verdicts)}")
    assert not changed or verdicts == {ASK}, changed


WRITERS = (
    "mv {0} {1}", "mv -f {0} {1}", "mv -- {0} {1}", "cp {0} {1}", "cp -r {0} {1}", "cp -t {1} {0}", "ln {0} {1}", "ln -s {0} {1}",
    "install {0} {1}", "tee {1}", "touch {1}", "dd if={0} of={1}", "echo new > {1}", "cat {0} >> {1}", "git mv {0} {1}", "truncate -s 0 {1}",
    "cd a && cp x ../{1}", "cd .github && cp ../{0} {1}", "mkdir -p {1}", "mv {0} n1 && mv n1 {1}", "mkdir -p d1 && mv {0} d1 && mv d1 {1}",
    "cp {0} n2 && cp n2 {1}", "cp {0} \"{1}\"", "mv {0} {1}/", "T={1}; cp {0} $T", "cp {0} ./{1}/../{1}", "sed -i s/old/new/ {1}",
    "cp --target-directory={1} {0}", "cp {0} {1} {1}", "rsync {0} {1}", "chmod +x {1} && cp {0} {1}", "mv -t{1} {0}", "mv -v -n {0} {1}",
    "cp --parents {0} {1}", "install -D {0} {1}", "cp -rT {0} {1}", "ln -sf {0} {1}", "cp -a {0}/. {1}", "cp {0} {1}*", "mv -T {0} {1}",
    "cp -r a b && cp {0} b/{1}", "ln -s {1} n3 && cp {0} n3", "cp -vt{1} {0}", "install -Dvt{1} {0}", "mv -ft{1} {0}", "ln -vft{1} {0}", "gzip -kf {0} && mv {0}.gz {1}.gz && gunzip -f {1}.gz",
    "xz -kf {0}; mv {0}.xz {1}.xz; unxz -f {1}.xz", "bzip2 -kf {0}; cp {0}.bz2 {1}q; bunzip2 -fS q {1}q", "gzip -kf {0}; mv {0}.gz {1}q; gzip -dfS q {1}q", "split -a1 -b1 {0} {2}",
    "split -a1 --additional-suffix={3} {0} {2}", "csplit -f {2} -b %.0d{3} {0} 1", "cp {0} {2}; cp --backup=simple -S {3} {0} {2}", "cp {0} {2}; install -bS{3} {0} {2}",
    "ln {2}? n5 && cp {0} n5", "ln -s {2}? n6; cp {0} n6", "cp -l {2}? n7; tee n7", "cp -sf $PWD/{2}? n8; tee n8", "ln -s {2}? n9 && cp {0} n9/new", "tar cf n.tar {0}; tar xf n.tar --transform s~{0}~{1}~",
    "cp {0} {2}{{{3},}}", "tee {2}[{3}]", "ln -s .vscode n4 && cp {0} n4/new", "cp -t. {1}", "mv -t . {1}", "cp -S.vscode {0} {1}",
)  # fmt: skip
ALLOWED = (
    "cp",
    "mv",
    "ln",
    "install",
    "tee",
    "touch",
    "dd",
    "git",
    "truncate",
    "cd",
    "mkdir",
    "sed",
    "rsync",
    "chmod",
    "cat",
    "echo",
    "gzip",
    "gunzip",
    "xz",
    "unxz",
    "bzip2",
    "bunzip2",
    "split",
    "csplit",
    "tar",
)


@pytest.mark.slow
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
@example({}, "mv {0} {1}", "a/x", ".vscode/settings.json")
@example({"l1": ".vscode"}, "cp {0} {1}", "a/x", "l1/tasks.json")
@example({".idea": "conf"}, "cp {0} {1}", "a/x", "conf/settings.json")
@example({}, "cd .github && cp ../{0} {1}", "a/x", "workflows/ci.yml")
@example({}, "cp -vt{1} {0}", "a/x", ".vscode")
@example({}, "gzip -kf {0} && mv {0}.gz {1}.gz && gunzip -f {1}.gz", "a/x", ".envrc")
@example({}, "split -a1 -b1 {0} {2}", "a/x", ".envrc")
@example({}, "ln {2}? n5 && cp {0} n5", "a/x", ".envrc")
@given(links, st.sampled_from(WRITERS), st.sampled_from(SOURCES), spelled())
def test_no_shell_line_writes_a_protected_file_unasked(
    root: Path, made: dict[str, str], shape: str, source: str, target: str
) -> None:
    """With a rule for every program in it, and in the mode of edits. Bash runs the line; the disk says what it wrote."""
    build(root, made)
    text = shape.format(source, target, target[:-1], target[-1])
    call = v1.ToolCallPatch("t", kind=v1.ToolKind.EXECUTE, name="Bash", raw_input={"command": text})
    action = Action.of_tool_call(call, str(root), [str(root)], home=str(root.parent), resolve=os.path.realpath)
    rules = Rules.parse(allow=[f"Bash({program} *)" for program in ALLOWED])
    verdicts = {
        decide(action, Rules(), EDITS).verdict,
        decide(action, rules).verdict,
        decide(action, rules, EDITS).verdict,
    }
    before = what_names_lead_to(root)
    subprocess.run(
        ["bash", "-c", text],
        cwd=root,
        input=b"new",
        capture_output=True,
        check=False,
        timeout=60,
        env={"PATH": os.environ["PATH"]},
    )
    changed = added_or_changed(before, what_names_lead_to(root))
    event(f"{'protected' if changed else 'ordinary'}, {sorted(verdicts)}")
    assert not changed or verdicts == {ASK}, (text, changed)


def test_names_are_compared_as_any_disk_may_read_them() -> None:
    for name in (
        ".GIT/config",
        ".git./hooks/x",
        ".gi\u200ct/config",
        "git~1/config",
        ".Vscode/x",
        ".ENVRC",
        ".VSCODE ",
        "\uff0evscode/x",
    ):
        assert protected(name), name
    assert Rule.parse("Edit(.Vscode/**)").path is not None
    assert verdict(files(".VSCODE/x"), allow=["Edit(**)"]) is ASK
