"""A whole agent in sixty lines, with nothing but the standard library: what the check is tried on, whole and broken."""
# mypy: ignore-errors
import json, os, sys, threading, uuid

sessions, waiting, lock = {}, {}, threading.Lock()

def send(**message):
    with lock:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def refuse(id, code, text):
    send(id=id, error={"code": code, "message": text})

def update(session, what, **fields):
    send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": what, **fields}})

def ask(method, params):
    waiting[id := str(uuid.uuid4())] = [threading.Event(), {}]
    send(id=id, method=method, params=params)
    return waiting[id][0].wait() and waiting.pop(id)[1].get("result", {})

def turn(id, session, text, cancelled):
    if text.startswith("ask"):
        call = {"toolCallId": str(uuid.uuid4()), "title": "Something", "kind": "other", "status": "pending"}
        update(session, "tool_call", **call)
        options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}, {"optionId": "no", "name": "No", "kind": "reject_once"}]
        answer = ask("session/request_permission", {"sessionId": session, "toolCall": call, "options": options})
        allowed = answer.get("outcome", {}).get("optionId") == "yes"
        update(session, "tool_call_update", toolCallId=call["toolCallId"], status="completed" if allowed else "failed")
    while not (over := cancelled.is_set()):
        update(session, "agent_message_chunk", content={"type": "text", "text": f"You said: {text[:99]}. "})
        if not text.startswith("long") or (over := cancelled.wait(0.01)):
            break
    sessions[session][1] = None
    send(id=id, result={"stopReason": "cancelled" if over else "end_turn"})

def request(id, method, params):
    if method == "initialize" and type(params.get("protocolVersion")) is int:
        send(id=id, result={"protocolVersion": 1, "agentCapabilities": {}, "authMethods": [], "agentInfo": {"name": "sixty", "version": "1.0"}})
    elif method == "session/new" and os.path.isabs(str(params.get("cwd"))) and isinstance(params.get("mcpServers"), list):
        sessions[session := str(uuid.uuid4())] = [threading.Event(), None]
        send(id=id, result={"sessionId": session})
    elif method == "session/prompt" and params.get("sessionId") in sessions and isinstance(params.get("prompt"), list):
        cancelled, running = sessions[params["sessionId"]]
        if running: return refuse(id, -32600, "One turn at a time")
        cancelled.clear()
        text = "".join(str(block.get("text", "")) for block in params["prompt"])
        sessions[params["sessionId"]][1] = thread = threading.Thread(target=turn, args=(id, params["sessionId"], text, cancelled), daemon=True)
        thread.start()
    else:
        known = method in ("initialize", "session/new", "session/prompt")
        refuse(id, -32602 if known else -32601, f"{'Bad params' if known else 'Unknown method'}: {method}"[:200])

for line in filter(str.strip, sys.stdin):
    try:
        match json.loads(line):
            case {"id": id, "method": str(method), **rest}:
                request(id, method, rest["params"] if isinstance(rest.get("params"), dict) else {})
            case {"method": "session/cancel", "params": {"sessionId": str(session)}} if session in sessions:
                sessions[session][0].set()
            case {"id": str(id), **answer} if id in waiting:
                waiting[id][1].update(answer)
                waiting[id][0].set()
            case {"method": str()} | {"id": _, "result": _} | {"id": _, "error": _}:
                pass  # sent something that we do not know, or answered what we did not ask
            case _:
                refuse(None, -32600, "That is not a request")
    except ValueError:
        refuse(None, -32700, "That is not JSON")
