"""An agent as a class: it keeps notes per session, asks before it saves them, and can load a session again.

Every prompt is a note; `/save FILE` writes the notes to a file.
"""

from antiphon import Agent, AgentSession, AgentTurn, Code, RequestError, v1

ASK_FIRST = v1.ModeState("ask", [v1.Mode("ask", "Ask before saving"), v1.Mode("trust", "Just save")])


class Notes(Agent):
    """The hooks that are implemented here are advertised to the client: prompts, loading, listing, modes."""

    def __init__(self) -> None:
        super().__init__("notes", "1.0", title="Notes")
        self.kept: dict[str, list[tuple[str, str]]] = {}
        self.directories: dict[str, str] = {}

    async def new_session(self, session: AgentSession) -> None:
        """Begin without notes. The commands are sent after the response, because the client does not know the session yet."""
        self.kept[session.id], self.directories[session.id] = [], session.cwd
        session.modes = ASK_FIRST
        await session.offer(v1.Command("save", "Write the notes to a file", v1.CommandInput("FILE")))

    async def load_session(self, session: AgentSession) -> None:
        """Replay the whole history, then go on."""
        if session.id not in self.kept:
            raise RequestError(Code.RESOURCE_NOT_FOUND, "Resource not found", f"no notes called `{session.id}`")
        session.modes = ASK_FIRST
        for number, (note, reply) in enumerate(
            self.kept[session.id]
        ):  # with ids, chunks of different messages are not joined
            await session.update(v1.UserMessageChunk(v1.TextBlock(note), message_id=f"note-{number}"))
            await session.update(v1.AgentMessageChunk(v1.TextBlock(reply), message_id=f"reply-{number}"))

    def list_sessions(self, query: v1.ListSessions) -> list[v1.SessionInfo]:
        """Return all sessions, newest first; the SDK sends those that the client asked for."""
        return [v1.SessionInfo(id, self.directories[id]) for id in reversed(self.kept)]

    async def prompt(self, turn: AgentTurn) -> v1.StopReason | None:
        """Add a note, or save the notes."""
        notes = self.kept[turn.session.id]
        match turn.command:
            case ("save", file) if file:
                return await self.save(turn, file, "".join(f"{note}\n" for note, _ in notes))
            case ("save", _):
                await turn.say("Where to? Type `/save FILE`.")
            case _:
                reply = f"Noted, that makes {len(notes) + 1}."
                notes.append((turn.text, reply))
                await turn.say(reply)
        return None

    async def save(self, turn: AgentTurn, file: str, text: str) -> v1.StopReason | None:
        """Show the change, ask, write. A tool call ends as completed or failed, whatever happens in its block."""
        async with turn.tool(f"Save {file}", v1.ToolKind.EDIT, at=[file]) as call:
            await call.preview(v1.Diff(turn.path(file), text))
            trusted = turn.session.modes is not None and turn.session.modes.current_mode_id == "trust"
            if not trusted and not await call.permitted():
                return v1.StopReason.REFUSAL
            await turn.write(file, text)
        await turn.say("Saved.")
        return None


if __name__ == "__main__":
    Notes().run()
