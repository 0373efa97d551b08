"""A comparison as the rows of a table, and as one HTML file: answers and diffs side by side, no script, nothing from elsewhere."""

from collections.abc import Iterator, Sequence
from typing import Final

from antiphon.export.html import document, html_of_diff, html_of_markdown, safe
from antiphon.runs.comparison import ComparedRun

__all__ = ["HEADER", "page", "rows"]

HEADER: Final = ("agent", "ended", "time", "tokens", "cost", "files", "lines", "branch")

STYLE: Final = """
body { max-width: 84rem; } table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
.wide { overflow-x: auto; } th, td { text-align: left; padding: .35rem .7rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
.side { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1rem; align-items: start; }
.side article { min-width: 0; } .prompt { white-space: pre-wrap; }
"""


ENDED: Final = {
    1: "failed", 2: "wrong arguments", 3: "refused", 4: "limit of the agent", 5: "denied", 6: "an engine failed", 7: "not signed in",
    8: "rate limit", 9: "over budget", 124: "timeout", 130: "cancelled",
}  # fmt: skip
"""Exit status of a run → a word for a column of a table."""


def rows(runs: Sequence[ComparedRun]) -> list[tuple[str, ...]]:
    """Return a row of the table for each run."""
    return [_row(each) for each in runs]


def _row(run: ComparedRun) -> tuple[str, ...]:
    result = run.result
    cost = result.usage.cost if result.usage is not None else None
    files = len(result.patch.files) if result.patch is not None else 0
    kept = result.worktree is not None and result.worktree.kept
    ended = "✓ done" if run.succeeded else f"✗ {ENDED.get(result.exit_code, 'failed')}"
    return (
        run.agent,
        ended,
        f"{result.seconds:.1f} s",
        "-" if result.tokens is None else f"{result.tokens.total:,}",
        "-" if cost is None else f"{cost.amount:.4f} {cost.currency}",
        str(files),
        f"+{run.added} -{run.removed}",
        result.worktree.branch if kept and result.worktree is not None else "-",
    )


def page(prompt: str, runs: Sequence[ComparedRun]) -> str:
    """Return the page of a comparison."""
    title = f"Comparison of {', '.join(each.agent for each in runs)}"
    return document(title, f'<p class="prompt">{safe(prompt)}</p>{_table(runs)}', _articles(runs), STYLE)


def _table(runs: Sequence[ComparedRun]) -> str:
    head = "".join(f"<th>{name}</th>" for name in HEADER)
    lines = ("<tr>" + "".join(f"<td>{safe(cell)}</td>" for cell in _row(each)) + "</tr>" for each in runs)
    rows_of_table = "".join(lines)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows_of_table}</tbody></table></div>'


def _articles(runs: Sequence[ComparedRun]) -> Iterator[str]:
    yield '<div class="side">'
    for number, run in enumerate(runs):
        yield f'<article class="agent e{number % 6}"><h2>{safe(run.agent)}</h2>{"".join(_body(run))}</article>'
    yield "</div>"


def _body(run: ComparedRun) -> Iterator[str]:
    result = run.result
    if result.error is not None:
        yield f'<aside class="error"><strong>{safe(result.error.message)}</strong><p>{safe(result.error.hint)}</p></aside>'
    if result.denied:
        first = result.denials[0].subject if result.denials else ""
        yield f'<aside class="warning">{result.denied} denied, the first: <code>{safe(first)}</code></aside>'
    for each in result.warnings:
        yield f'<aside class="warning">{safe(each.message)}</aside>'
    if result.text.strip():
        yield f'<div class="prose">{html_of_markdown(result.text)}</div>'
    diffs = [f"diff --git {part}" for part in f"\n{run.diff()}".split("\ndiff --git ")[1:]]
    if not diffs:
        yield '<p class="note">No file changed.</p>'
    yield from (html_of_diff(_shown(diff)) for diff in diffs)


def _shown(diff: str) -> str:
    """Return the diff of one file with its name as the first line, without what only git reads."""
    head, *lines = diff.rstrip("\n").split("\n")
    begin = next((number for number, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
    facts = [line for line in lines[:begin] if not line.startswith(("index ", "--- ", "+++ "))]
    return "\n".join([head.rpartition(" b/")[2], *facts, *lines[begin:]])
