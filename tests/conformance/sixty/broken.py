"""Twenty ways to break the agent of sixty lines: a line of it, what stands there instead, and what the check has to find."""

from pathlib import Path
from typing import NamedTuple

AGENT = Path(__file__).with_name("agent.py")


class Break(NamedTuple):
    """`finds` is the requirement that has to fail."""

    name: str
    finds: str
    line: str
    instead: str

    def source(self) -> str:
        """The agent, broken."""
        text = AGENT.read_text(encoding="utf-8")
        assert text.count(self.line) == 1, f"{self.name}: {text.count(self.line)} places"
        return text.replace(self.line, self.instead)


BREAKS = (
    Break("forgets to say JSON-RPC 2.0", "rpc.version", '{"jsonrpc": "2.0", **message}', "message"),
    Break("prints what it hears", "wire.json", "    try:\n        match", "    print('heard', line)\n    try:\n        match"),
    Break("promises any version", "version.no-echo", '{"protocolVersion": 1,', '{"protocolVersion": params["protocolVersion"],'),
    Break("tells its version as a text", "schema.result", '{"protocolVersion": 1,', '{"protocolVersion": "1",'),
    Break("does not say who it is", "init.info", ', "agentInfo": {"name": "sixty", "version": "1.0"}', ""),
    Break("makes numbers of ids", "id.number-text", "request(id, method, rest", "request(int(id) if str(id).isdigit() else id, method, rest"),
    Break("answers twice", "rpc.answer-known", '        send(id=id, result={"sessionId": session})',
          '        send(id=id, result={"sessionId": session})\n        send(id=id, result={"sessionId": session})'),
    Break("has one session for all", "session.unique", "sessions[session := str(uuid.uuid4())]", 'sessions[session := "the session"]'),
    Break("takes any directory", "session.relative-directory", 'os.path.isabs(str(params.get("cwd")))', '"cwd" in params'),
    Break("has a stop reason of its own", "schema.result", 'else "end_turn"})', 'else "done"})'),
    Break("has an update of its own", "schema.update", 'update(session, "agent_message_chunk"', 'update(session, "agent_says"'),
    Break("says the rest after the end", "turn.answer-last", '    send(id=id, result={"stopReason":',
          '    send(id=id, result={"stopReason": "end_turn"} if not over else {"stopReason": "cancelled"})\n'
          '    update(session, "agent_message_chunk", content={"type": "text", "text": "One more thing"})\n'
          '    return\n    send(id=id, result={"stopReason":'),
    Break("does not hear a cancel", "cancel.talking", "                sessions[session][0].set()", "                pass"),
    Break("ends a cancelled turn as if it were done", "cancel.talking", '"cancelled" if over else "end_turn"', '"end_turn"'),
    Break("makes an error of a cancel", "cancel.talking", '    send(id=id, result={"stopReason":',
          '    if over: return refuse(id, -32603, "Aborted")\n    send(id=id, result={"stopReason":'),
    Break("does not answer what it does not know", "rpc.answered", "        refuse(id, -32602 if known else -32601",
          "        known and refuse(id, -32602 if known else -32601"),
    Break("answers what was only told", "notify.unknown", 'case {"method": str()} |',
          'case {"method": str(name)} if name != "session/cancel":\n                refuse(None, -32601, name)\n            case {"method": str()} |'),
    Break("dies of junk", "junk.survives", "    except ValueError:\n        refuse", "    except ValueError:\n        sys.exit(1)\n        refuse"),
    Break("dies of a batch", "batch.survives", "            case _:\n", "            case list():\n                sys.exit(1)\n            case _:\n"),
    Break("asks without an option", "permission.choice", '"toolCall": call, "options": options}', '"toolCall": call, "options": []}'),
    Break("asks about a call that nobody knows", "call.announced", '        update(session, "tool_call", **call)\n', ""),
    Break("does not leave", "process.ends", "for line in filter(str.strip, sys.stdin):",
          "import itertools, signal\nfor line in itertools.chain(filter(str.strip, sys.stdin), iter(signal.pause, 0)):"),
    Break("leaves a child behind", "process.children", "def turn(id, session, text, cancelled):\n",
          "def turn(id, session, text, cancelled):\n"
          "    import subprocess\n    subprocess.Popen(['sleep', '60'], stdin=-3, stdout=-3, stderr=-3, start_new_session=True)\n"),
)  # fmt: skip
