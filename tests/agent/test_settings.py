"""Modes, models and settings: only what is on offer, and two views of one choice stay one choice."""

from typing import Any

import pytest

from antiphon.agent.agent import Agent
from antiphon.agent.session import AgentSession, send_model
from antiphon.errors import Code, RequestError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, Editor, playing


def select(id: str, category: v1.ConfigCategory | None, *values: str) -> v1.SelectConfig:
    options = [v1.SelectOption(value, value.upper()) for value in values]
    return v1.SelectConfig(id=id, name=id, category=category, current_value=values[0], options=[*options])


class Choosy(Agent):
    """An agent with modes, models and settings that mean the same."""

    def __init__(self) -> None:
        super().__init__("choosy")
        self.log: list[tuple[object, ...]] = []
        self.session: AgentSession | None = None

    def new_session(self, session: AgentSession) -> None:
        session.modes = v1.ModeState("ask", [v1.Mode("ask", "Ask"), v1.Mode("code", "Code"), v1.Mode("odd", "Odd")])
        session.models = v1.ModelState([v1.SessionModel("small", "S"), v1.SessionModel("big", "B")], "small")
        grouped = v1.SelectConfig(
            id="style",
            name="Style",
            current_value="x",
            options=[v1.SelectGroup("g", "G", [v1.SelectOption("x", "X"), v1.SelectOption("y", "Y")])],
        )
        session.config_options = [
            select("mode", v1.ConfigCategory.MODE, "ask", "code", "secret"),
            select("model", v1.ConfigCategory.MODEL, "small", "big"),
            grouped,
            v1.BooleanConfig(id="loud", name="Loud", current_value=False),
        ]
        self.session = session

    async def set_mode(self, session: AgentSession, mode_id: str) -> None:
        if mode_id == "code" and self.log:
            raise RequestError(-32050, "Not now")
        self.log.append(("mode", mode_id, session.modes and session.modes.current_mode_id))

    def set_model(self, session: AgentSession, model_id: str) -> None:
        self.log.append(("model", model_id))

    def set_config_option(self, session: AgentSession, config_id: str, value: bool | str) -> None:
        self.log.append((config_id, value))


def values(options: list[Any]) -> dict[str, object]:
    return {option["id"]: option["currentValue"] for option in options}


async def refused(editor: Editor, call: Any, asked: Any) -> str:
    with pytest.raises(RequestRefused) as refusal:
        await editor.connection.request(call, asked)
    assert refusal.value.code == Code.INVALID_PARAMS
    return str(refusal.value.data)


async def test_only_what_is_on_offer_can_be_chosen() -> None:
    agent = Choosy()
    async with playing(agent, FULL) as editor:
        s = await editor.open()
        assert await refused(editor, m.SET_MODE, v1.SetMode(s, "x")) == (
            "there is no mode `x`: one of `ask`, `code`, `odd`"
        )
        assert "no model `x`: one of `small`, `big`" in await refused(editor, m.SET_MODEL, v1.SetModel(s, "x"))
        ask = m.SET_CONFIG_OPTION
        assert "no setting `x`: one of `mode`" in await refused(editor, ask, v1.SetConfigOption(s, "x", "y"))
        assert "no value of `style` `z`: one of `x`, `y`" in await refused(
            editor, ask, v1.SetConfigOption(s, "style", "z")
        )
        assert "`loud` is on or off, not 'yes'" in await refused(editor, ask, v1.SetConfigOption(s, "loud", "yes"))
        assert "no value of `style` `True`" in await refused(editor, ask, v1.SetConfigOption(s, "style", True))
    assert agent.log == []


async def test_a_session_without_settings_refuses_a_change() -> None:
    async with playing(Agent("bare")) as editor:
        s = await editor.open()
        assert "no modes to choose from" in await refused(editor, m.SET_MODE, v1.SetMode(s, "x"))
        assert "no models to choose from" in await refused(editor, m.SET_MODEL, v1.SetModel(s, "x"))
        asked = v1.SetConfigOption(s, "x", "y")
        assert "no settings to choose from" in await refused(editor, m.SET_CONFIG_OPTION, asked)


async def test_a_mode_changes_the_setting_that_means_the_same_and_sends_it_after_the_response() -> None:
    agent = Choosy()
    async with playing(agent, FULL) as editor:
        s = await editor.open()
        await editor.connection.request(m.SET_MODE, v1.SetMode(s, "code"))
        await editor.until("config_option_update")
        assert editor.order[-2:] == ["answer:session/set_mode", "config_option_update"]
        assert values(editor.updates()[-1]["configOptions"])["mode"] == "code"
        assert agent.session is not None and agent.session.modes is not None
        assert agent.session.modes.current_mode_id == "code"
    assert agent.log == [("mode", "code", "ask")]


async def test_another_model_is_sent_in_the_old_way_only_to_clients_that_choose_in_the_old_way() -> None:
    agent = Choosy()
    async with playing(agent, FULL) as editor:
        s = await editor.open()
        assert agent.session is not None
        await send_model(agent.session, "big")
        assert editor.updates() == []  # no schema knows this update
        await editor.connection.request(m.SET_MODEL, v1.SetModel(s, "big"))
        await send_model(agent.session, "small")
        await editor.until("current_model_update")
        assert editor.updates()[-1]["currentModelId"] == "small"


async def test_a_mode_that_the_setting_does_not_have_leaves_the_setting_alone() -> None:
    agent = Choosy()
    async with playing(agent, FULL) as editor:
        s = await editor.open()
        await editor.connection.request(m.SET_MODE, v1.SetMode(s, "odd"))
        answer = await editor.connection.request(m.SET_CONFIG_OPTION, v1.SetConfigOption(s, "mode", "secret"))
        assert answer.config_options[0].current_value == "secret"  # type: ignore[union-attr]
        assert agent.session is not None and agent.session.modes is not None
        assert agent.session.modes.current_mode_id == "odd"
        assert editor.updates() == []


async def test_a_hook_that_refuses_changes_nothing() -> None:
    agent = Choosy()
    async with playing(agent, FULL) as editor:
        s = await editor.open()
        await editor.connection.request(m.SET_MODE, v1.SetMode(s, "ask"))
        with pytest.raises(RequestRefused, match="Not now"):
            await editor.connection.request(m.SET_MODE, v1.SetMode(s, "code"))
        assert agent.session is not None and agent.session.modes is not None
        assert agent.session.modes.current_mode_id == "ask"
        assert editor.updates() == []


async def test_a_setting_changes_the_mode_that_means_the_same() -> None:
    agent = Choosy()
    async with playing(agent, FULL) as editor:
        s = await editor.open()
        answer = await editor.connection.request(m.SET_CONFIG_OPTION, v1.SetConfigOption(s, "mode", "code"))
        assert [getattr(option, "current_value", None) for option in answer.config_options] == [
            "code",
            "small",
            "x",
            False,
        ]
        await editor.until("current_mode_update")
        assert editor.order[-2:] == ["answer:session/set_config_option", "current_mode_update"]
        assert editor.updates()[-1]["currentModeId"] == "code"
        await editor.connection.request(m.SET_CONFIG_OPTION, v1.SetConfigOption(s, "style", "y"))
        await editor.connection.request(m.SET_CONFIG_OPTION, v1.SetConfigOption(s, "loud", True))
        assert len(editor.updates()) == 1
    assert agent.log == [("mode", "code"), ("style", "y"), ("loud", True)]


async def test_a_model_and_its_setting_are_one_choice() -> None:
    agent = Choosy()
    async with playing(agent, FULL) as editor:
        s = await editor.open()
        await editor.connection.request(m.SET_MODEL, v1.SetModel(s, "big"))
        await editor.until("config_option_update")
        assert values(editor.updates()[-1]["configOptions"])["model"] == "big"
        await editor.connection.request(m.SET_CONFIG_OPTION, v1.SetConfigOption(s, "model", "small"))
        assert agent.session is not None and agent.session.models is not None
        assert agent.session.models.current_model_id == "small"


async def test_on_off_settings_are_hidden_from_clients_that_do_not_show_them() -> None:
    agent = Choosy()
    async with playing(agent) as editor:
        opened = await editor.connection.request(m.NEW_SESSION, v1.NewSession("/w", []))
        answer = await editor.connection.request(
            m.SET_CONFIG_OPTION, v1.SetConfigOption(opened.session_id, "mode", "code")
        )
        assert agent.session is not None
        await agent.session.change_option("loud", True)
        await editor.until("config_option_update")
        sent = editor.updates("config_option_update")[-1]["configOptions"]
        shown = [option.id for option in opened.config_options or () if not isinstance(option, v1.Unknown)]
        assert shown == ["mode", "model", "style"] == [option["id"] for option in sent]
        assert len(answer.config_options) == 3


async def test_the_agent_may_change_its_mind_itself() -> None:
    agent = Choosy()
    async with playing(agent, FULL) as editor:
        await editor.open()
        session = agent.session
        assert session is not None
        await session.switch_mode("code")
        await session.change_option("mode", "ask")
        await session.change_option("loud", True)
        await editor.until(lambda: len(editor.updates()) == 5)
        assert [each["sessionUpdate"] for each in editor.updates()] == [
            "current_mode_update",
            "config_option_update",
            "config_option_update",
            "current_mode_update",
            "config_option_update",
        ]
        with pytest.raises(RequestError, match="there is no mode"):
            await session.switch_mode("x")
        with pytest.raises(RequestError, match="there is no setting"):
            await session.change_option("x", True)
    assert agent.log == []


async def test_a_session_that_is_closed_while_its_mode_changes_sends_nothing() -> None:
    agent = Choosy()

    async def set_mode(session: AgentSession, mode_id: str) -> None:
        closing = editor.connection.request(m.CLOSE_SESSION, v1.CloseSession(session.id))
        await closing

    agent.on(set_mode)
    async with playing(agent, FULL) as editor:
        s = await editor.open()
        await editor.connection.request(m.SET_MODE, v1.SetMode(s, "code"))
        await editor.open()
        assert editor.updates() == []
