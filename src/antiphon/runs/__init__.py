"""What a run without a person needs around its prompt: for `antiphon run`, for `antiphon compare`, and for other programs.

events.py         the events of a run, and their JSON schema
budget.py         the limits of a run: what it has used, and when it has to stop
answer_schema.py  an answer as JSON that matches a schema: the prompt for it, the check, the prompt to try again
worktrees.py      git worktrees, each on a branch of its own
patches.py        all changes in a directory as one git patch
github.py         annotations, step summary and step outputs of GitHub Actions
junit.py          a run as JUnit XML
comparison.py     one prompt for several agents, side by side in worktrees
compared_page.py  a comparison as a table and as a page
"""
