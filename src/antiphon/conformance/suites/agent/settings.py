"""Modes and config options: those offered can be chosen, others cannot, and the response has the current value."""

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import Blocked, NotOffered, NotSeen, capability, must, should
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.suites.agent.turns import busy, early, is_refused
from antiphon.conformance.wire import PeerResponse, PendingRequest
from antiphon.traffic.entries import JsonObject, objects_in, texts_in

__all__ = ["choose", "options", "other_value"]

Option = JsonObject
NOTHING = "antiphon-no-such-thing"
MOST_SETTINGS = 50
"""More than these are not tried: an agent may have new ones in each response."""


def options(response: PeerResponse) -> list[Option]:
    """The settings in a response."""
    return objects_in(response.get("configOptions"))


def other_value(option: Option) -> str | bool | None:
    """A value that a setting does not have now; None where it has no other, or is of a kind that we do not know."""
    now = option.get("currentValue")
    if option.get("type") == "boolean" and isinstance(now, bool):
        return not now
    listed = option.get("options")
    if option.get("type") != "select" or not isinstance(listed, list):
        return None
    flat = [each for one in objects_in(listed) for each in objects_in(one.get("options", [one]))]
    return next((value for value in texts_in(flat, "value") if value != now), None)


async def _choosing(run: AgentRun, session: str, option: object, value: object) -> PendingRequest:
    params: dict[str, object] = {"sessionId": session, "configId": option, "value": value}
    if isinstance(value, bool):
        params["type"] = "boolean"
    return await run.send_request("session/set_config_option", params)


async def choose(run: AgentRun, session: str, option: object, value: object) -> PeerResponse:
    """Send `session/set_config_option`."""
    return await (await _choosing(run, session, option, value)).response()


def _value(response: PeerResponse, id: object) -> object:
    return next((one.get("currentValue") for one in options(response) if one.get("id") == id), None)


@SUITE.scenario(
    "modes",
    "a user switches the mode",
    provokes=True,
    shows=(
        capability(
            "mode.switches",
            "A mode that the session offers can be chosen.",
            link="session-modes#from-the-client",
            fix="Answer `session/set_mode` with a result for each of `availableModes`.",
        ),
        should(
            "mode.unknown",
            "A mode that the session does not offer is refused.",
            link="session-modes#from-the-client",
            fix="Answer with the error -32602 if `modeId` is not one of `availableModes`.",
        ),
        should(
            "mode.in-step",
            "An agent that offers its modes also as a setting keeps the two in step.",
            link="session-config-options#relationship-to-session-modes",
            fix="Change the setting of the category `mode` when the mode is switched, and the other way round.",
            needs=("mode.switches",),
        ),
    ),
)
async def modes(run: AgentRun) -> None:
    session, made = await run.opened()
    listed = made.get("modes", "availableModes")
    if not isinstance(listed, list):
        raise NotOffered("the session has no modes")
    unknown = await run.request("session/set_mode", {"sessionId": session, "modeId": NOTHING})
    run.holds("mode.unknown", is_refused(unknown), "it was accepted", unknown)
    now = made.get("modes", "currentModeId")
    other = next((one.get("id") for one in listed if isinstance(one, dict) and one.get("id") != now), None)
    if other is None:
        raise NotSeen("the session has no other mode")
    response = await run.request("session/set_mode", {"sessionId": session, "modeId": other})
    run.holds("mode.switches", not is_refused(response), "it was refused", response)
    twin = next((one for one in options(made) if one.get("category") == "mode"), None)
    if twin is None or is_refused(response):
        raise NotOffered("the modes are no setting too")
    chosen = await choose(run, session, *_something(options(made), twin))
    if is_refused(chosen):
        raise Blocked("`session/set_config_option` was answered with an error")
    seen = _value(chosen, twin.get("id"))
    run.holds("mode.in-step", seen == other, f"the mode is {other}, and the setting is {seen}", response, chosen)


def _something(listed: list[Option], twin: Option) -> tuple[object, object]:
    """A setting other than the mode and a value for it, so that the response shows the current mode.

    Raises:
        Unseen: there is no such option.
    """
    for option in listed:
        value = other_value(option)
        if option is not twin and value is not None:
            return option.get("id"), value
    raise NotSeen("the mode is the only setting")


@SUITE.scenario(
    "settings",
    "a user changes settings",
    provokes=True,
    shows=(
        must(
            "config.chosen",
            "A value that a setting offers can be chosen, and the answer shows it as chosen.",
            link="session-config-options#from-the-client",
            fix="Answer `session/set_config_option` with all settings as they stand after the change.",
        ),
        capability(
            "config.switched",
            "A setting that is on or off can be switched, and the answer shows it.",
            link="session-config-options#from-the-client",
            fix="Take `true` and `false` for settings of the type `boolean`.",
        ),
        should(
            "config.unknown",
            "A setting that does not exist is refused.",
            link="session-config-options#from-the-client",
            fix="Answer with the error -32602 if you do not know the `configId`.",
        ),
        should(
            "config.unknown-value",
            "A value that a setting does not offer is refused.",
            link="session-config-options#from-the-client",
            fix="Answer with the error -32602 if the value is not one of the setting's `options`.",
        ),
    ),
)
async def settings(run: AgentRun) -> None:
    session, made = await run.opened()
    listed = options(made)
    if not listed:
        raise NotOffered("the session has no settings")
    unknown = await choose(run, session, NOTHING, NOTHING)
    run.holds("config.unknown", is_refused(unknown), "it was accepted", unknown)
    tried: set[object] = set()
    while (found := _untried(listed, tried)) is not None and len(tried) < MOST_SETTINGS:
        id, value = found
        tried.add(id)
        requirement = "config.switched" if isinstance(value, bool) else "config.chosen"
        if requirement == "config.chosen" and "config.unknown-value" not in run.verdicts:
            wrong = await choose(run, session, id, NOTHING)
            run.holds("config.unknown-value", is_refused(wrong), f"`{id}` took it", wrong)
        response = await choose(run, session, id, value)
        seen = _value(response, id)
        run.holds(requirement, seen == value, f"`{id}` was set to {value!r}, and the response has {seen!r}", response)
        listed = options(response) or listed  # which others there are, and what they offer, may depend on it
    raise NotSeen("there is no such setting with another value")


def _untried(listed: list[Option], tried: set[object]) -> tuple[str, str | bool] | None:
    """The next setting to change, and to what."""
    for option in listed:
        id, value = option.get("id"), other_value(option)
        if isinstance(id, str) and id not in tried and value is not None:
            return id, value
    return None


@SUITE.scenario(
    "settings-busy",
    "a user changes a setting while the agent works",
    shows=(
        should(
            "config.busy",
            "A setting can be changed while a turn runs.",
            link="session-config-options#setting-a-config-option",
            fix="Answer `session/set_config_option` at once, also during a turn.",
        ),
    ),
)
async def while_busy(run: AgentRun) -> None:
    session, made = await run.opened()
    option = next((one for one in options(made) if other_value(one) is not None), None)
    if option is None:
        raise NotOffered("the session has no settings with another value")
    pending = await busy(run, session)
    choosing = await _choosing(run, session, option.get("id"), other_value(option))
    response = await early(choosing, run.options.limit)
    over = pending.peek()
    await run.cancel(session)
    await pending.response()
    if response is None:
        late = await choosing.response()
        run.holds("config.busy", False, "it was answered only after the turn", late)
    elif over is not None and not is_refused(response):
        raise NotSeen("the turn ended meanwhile")
    else:
        run.holds("config.busy", not is_refused(response), "it was refused", response)
