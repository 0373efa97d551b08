"""What the engine for Codex must do, one sentence for each thing that can be right or wrong by itself.

The id is what a test says that it proves; the part before the dot is the chapter. The page about the engine shows all of it.
"""

from typing import Final

from tests.engines.codex.versions import PYPI
from tests.engines.proofs import ProofTable

__all__ = ["BOOK", "BULLETS", "CHAPTERS", "on_versions", "proves"]

CHAPTERS: Final = {
    "find": "Finding it",
    "server": "One server for all",
    "turn": "A turn",
    "approval": "Approvals and questions",
    "content": "What a prompt holds",
    "modes": "Modes, models, effort, summary",
    "cancel": "Cancelling",
    "stop": "How a turn ends",
    "auth": "Signing in",
    "sessions": "Sessions",
    "commands": "Commands",
    "mcp": "MCP servers",
    "trust": "Projects that are not trusted",
    "robust": "When things go wrong",
}
"""The part of an id before the dot → what it is about."""

BULLETS: Final = {
    # Finding it.
    "find.variable": "`$CODEX_EXECUTABLE` names the program",
    "find.config": "the configuration names the program",
    "find.path": "a `codex` on the PATH is used",
    "find.package": "the program inside the PyPI package is used, and the package is not imported for it",
    "find.order": "the variable wins over the configuration, that over the PATH, and the package comes last",
    "find.missing": "no Codex at all is a clear error with a hint",
    "find.too-old": "a Codex that is too old is a clear error with a hint",
    # One server for all.
    "server.one": "one process serves all sessions, also at the same time",
    "server.killed": "a server that dies is started again, and every thread is resumed",
    "server.rights": "a thread that is resumed has the same mode, model and directory as before",
    "server.mcp-again": "a thread that is resumed has its MCP servers again",
    "server.empty": "a session without a prompt keeps its id when its server dies; one that was deleted is not replaced",
    "server.apart": "what is cancelled or fails in one session does not disturb the others",
    "server.early": "a notification about no thread, also at the start, reaches every session, once",
    # A turn.
    "turn.text": "text streams as it comes",
    "turn.thinking": "reasoning streams as thoughts",
    "turn.once": "nothing is shown twice, though the program sends it in parts and then whole",
    "turn.retried": "a stream that breaks and is tried again repeats nothing that was shown",
    "turn.message-ids": "the parts of a message have its id, and another message another one",
    "turn.command": "a command is a call with its real command line, without the shell around it",
    "turn.kind": "a command that only reads or searches is called so",
    "turn.name": "a call's `name` is the one that the policy knows: `Bash`, `Edit`, `mcp__s__t`",
    "turn.live-output": "what a command prints is shown while it runs",
    "turn.whole-output": "in the end all of its output is shown, also what was never streamed",
    "turn.exit-code": "a command's exit code is shown, and one that is not 0 is a failure",
    "turn.command-meta": "a client that announces it gets a command's output by the `_meta` of terminals",
    "turn.command-mirror": "a client with terminals gets one that only prints what was captured; the command runs once",
    "turn.diff-add": "a file that is added shows its text, and that it is new",
    "turn.diff-update": "a file that is changed shows all of it before and after, and where it changed",
    "turn.diff-delete": "a file that is deleted shows what it was",
    "turn.diff-move": "a file that is moved shows from where to where, and what changed",
    "turn.mcp-call": "a call of an MCP tool has its server, tool, arguments and result",
    "turn.web-search": "a search of the web is shown with what was searched for",
    "turn.plan": "a plan is shown as a plan",
    "turn.usage": "the tokens used and the size of the context window are shown",
    "turn.images-out": "a picture that the model makes is shown",
    "turn.image-view": "a picture that the model looks at is shown",
    "turn.compaction": "compaction is shown from its beginning to its end",
    "turn.late": "a command that outlives its turn is shown to its end",
    "turn.closed": "what is open when a turn is interrupted is closed",
    "turn.script": "the calls of models that write scripts are shown like any others",
    "turn.notices": "what the program wants the user to know is shown as a notice",
    "turn.session-title": "the session gets a title",
    # Approvals and questions.
    "approval.command": "a command that needs approval is asked for, with the line and the reason",
    "approval.change": "changes that need approval are asked for, with the diff",
    "approval.accept": "allowed once: it runs, and the next one is asked for again",
    "approval.session": "allowed for the session: the same is not asked for again",
    "approval.amendment": "allowed for always: Codex keeps a rule, and another session is not asked either",
    "approval.decline": "rejected: it does not happen, and the turn goes on",
    "approval.cancel": "rejected and stopped: it does not happen, and the turn ends",
    "approval.parallel": "several requests at once each get their own answer, the first of them by the id 0",
    "approval.elsewhere": "a request that was settled elsewhere is cancelled at the client",
    "approval.sub-agent": "a question of a sub-agent is asked in the session that it belongs to, with the diff, and cancelled there",
    "approval.legacy": "the requests of the older protocol are asked and answered in its own words",
    "approval.permissions": "a request for more permissions is asked, for the turn or for the session",
    "approval.questions-form": "questions to the user are a form where the client shows forms",
    "approval.questions-choice": "questions to the user are choices where the client shows no forms",
    "approval.mcp-tool": "a tool of an MCP server is asked for, once or for the session",
    "approval.mcp-form": "a question of an MCP server is a form, and its answer reaches the server",
    # What a prompt holds.
    "content.image": "images reach the model as images",
    "content.image-file": "images that are files reach the model as images",
    "content.embedded": "embedded text reaches the model with where it is from",
    "content.link": "links are read through the client, as its editor has them",
    "content.range": "of a link with a range of lines, those lines are read",
    "content.refused": "svg, audio and blobs reach the model as their name, type and size",
    # Modes, models, effort, summary.
    "modes.table": "every mode sends its approval policy and its sandbox",
    "modes.default": "in `default` changes are asked for",
    "modes.accept-edits": "in `acceptEdits` changes in the workspace are not asked for",
    "modes.plan": "in `plan` the model plans and may ask questions",
    "modes.protected": "files that name programs to run are written in none of these modes unless the user allows it, by a patch or by a command",
    "modes.dont-ask": "in `dontAsk` nothing is asked, and what goes beyond the workspace fails",
    "modes.bypass": "in `bypassPermissions` nothing is asked, and nothing is in the way",
    "modes.again": "the mode is sent again when a thread is resumed; a session of an earlier agent shows the mode that is in force",
    "modes.meanwhile": "a mode that is chosen while a turn runs counts from the next turn on",
    "modes.reported": "a change of mode or model by Codex itself is shown",
    "modes.forked": "a fork has the mode of the session that it comes from",
    "modes.configured": "what the user's own configuration says is in force until another mode is chosen",
    "modes.own-workspace": "the user's own configuration of the workspace and of the summary counts in every mode",
    "modes.refusals": "what the read-only sandbox refuses is shown as a call that failed",
    "modes.refusals-resumed": "so it is in a session that was resumed",
    "modes.refusals-loaded": "and when a session is loaded, in their place",
    "modes.models": "models are a setting, and the next request goes to the chosen one",
    "modes.legacy-models": "models are also offered the older way",
    "modes.effort": "effort is a setting, and the next request has it",
    "modes.summary": "the summary of the reasoning is a setting, and the next request has it",
    # Cancelling.
    "cancel.speaking": "a turn that speaks is interrupted and ends as cancelled, once",
    "cancel.asking": "a question that waits for the user is cancelled",
    "cancel.command": "a command that runs is stopped",
    "cancel.background": "a command that an earlier turn left running is stopped too",
    "cancel.next": "the next prompt works",
    "cancel.hung": "a server that hangs is ended, and the session goes on in a new one",
    # How a turn ends.
    "stop.end-turn": "an answer ends with `end_turn`",
    "stop.max-tokens": "an answer that is too long ends with `max_tokens`",
    "stop.refusal": "an answer that a filter stops ends with `refusal`",
    "stop.server-error": "an error of the model's server is an error that says so, after a notice for each retry",
    "stop.overloaded": "overload is an error that says so",
    "stop.rate-limit": "too many requests are an error that says so",
    "stop.usage-limit": "a usage limit is an error that says so",
    "stop.model-not-found": "a model that does not exist is an error that says so",
    "stop.prompt-too-long": "a prompt that is too long is an error that says so",
    "stop.bad-request": "a request that the model refuses is an error with its words",
    "stop.connection": "a stream that keeps breaking is an error that says so",
    "stop.unreachable": "while Codex waits for a model that cannot be reached, that is shown, and the turn can be cancelled",
    "stop.expired-login": "a login that is refused is the error for signing in",
    # Signing in.
    "auth.ways": "signing in with ChatGPT in a terminal and with an API key are offered",
    "auth.required": "a user who is not signed in gets the error -32000 with the ways to do it",
    "auth.api-key": "an API key in the environment signs in, and the next session works",
    "auth.again": "signing in again while signed in disturbs no running turn",
    "auth.logout": "a user who logs out is not signed in any more",
    # Sessions.
    "sessions.new": "a new session works in its own directory, and in those that are added",
    "sessions.resume": "a session is resumed by another agent, with its history",
    "sessions.fork": "a fork knows the history, and leaves the first session alone",
    "sessions.load": "a loaded session replays its text, thoughts and calls with diffs and results",
    "sessions.list": "sessions are listed with title, time and directory, also those of a terminal",
    "sessions.paging": "a long list comes in pages",
    "sessions.delete": "a deleted session is gone",
    "sessions.unknown": "a session that does not exist is an error that says so",
    "sessions.twice": "a session that is opened twice gets its updates where it was opened last, and the other gets a notice",
    "sessions.usage": "a session that is resumed or forked shows how full the context is",
    "sessions.steering": "a prompt while a turn runs is added to it",
    # Commands.
    "commands.compact": "`/compact` goes on with a summary",
    "commands.review": "`/review` reviews, and shows its findings",
    "commands.rename": "`/rename` gives the session another title",
    "commands.archive": "`/archive` takes the session off the list until it is gone on with or opened again",
    "commands.reports": "`/status`, `/mcp` and `/skills` say how things are",
    # MCP servers.
    "mcp.stdio": "a server that is a program is started with its arguments and environment",
    "mcp.http": "a server over HTTP is reached with its headers",
    "mcp.failed": "a server that fails is a notice, and the session works without it",
    # Projects that are not trusted.
    "trust.stranger": "a project of a stranger runs nothing and gets no key, and the user gets a notice of what was left out",
    "trust.command": "`/trust` makes it count in the same session",
    "trust.changed": "what has changed since it was trusted does not count, and the user gets a notice",
    "trust.mode": "trusting the settings of a project does not change the mode",
    # When things go wrong.
    "robust.unknown": "unknown messages and fields are ignored and counted",
    "robust.bad-config": "a configuration that cannot be read is an error with the file and the key",
    "robust.long-line": "a line of 20 MB works",
    "robust.crash": "a server that dies in a turn is a clear error, and the session goes on in a new one",
    "robust.orphans": "nothing is left running",
}
"""Id → the sentence."""

BOOK: Final = ProofTable("codex", BULLETS, CHAPTERS, PYPI)

proves = BOOK.proves
on_versions = BOOK.on_versions
