"""Modes, models and options that a client of version 1 sets in sessions of an agent of version 2, which has options alone."""

from collections.abc import Callable

from antiphon.errors import RequestError
from antiphon.protocol import v1, v2
from antiphon.protocol.exchange import Id
from antiphon.protocol.translate.base import Translator
from antiphon.protocol.translate.v1_session import V1ClientSession
from antiphon.protocol.v2 import methods as m2

__all__ = ["V1Settings"]


class V1Settings:
    """Sets the options of sessions. `session_of` returns a session, which the agent knows of even if it was not opened here."""

    def __init__(self, translator: Translator, session_of: Callable[[str], V1ClientSession]) -> None:
        self._translator = translator
        self._session_of = session_of

    def set_mode(self, id: Id, asked: v1.SetMode) -> None:
        mode = self._session_of(asked.session_id).updates.mode
        if mode is None:
            raise RequestError.invalid_params("the agent has no modes in this session")
        params = v2.SetValue(
            session_id=asked.session_id, config_id=mode.config_id, value=asked.mode_id, meta=asked.meta
        )

        def changed(result: v2.SetConfigOptionResult) -> None:
            self._changed(asked.session_id, result)
            self._translator.answer_client(id, v1.SetModeResult(meta=result.meta))

        self._translator.ask_agent(id, m2.SET_CONFIG_OPTION, params, changed)

    def set_model(self, id: Id, asked: v1.SetModel) -> None:
        found = [
            option
            for option in self._session_of(asked.session_id).updates.options
            if isinstance(option, v2.SelectConfig) and option.category is v2.ConfigCategory.MODEL
        ]
        if not found:
            raise RequestError.invalid_params("the agent has no models in this session")
        params = v2.SetValue(
            session_id=asked.session_id, config_id=found[0].config_id, value=asked.model_id, meta=asked.meta
        )

        def changed(result: v2.SetConfigOptionResult) -> None:
            self._changed(asked.session_id, result)
            self._translator.answer_client(id, v1.SetModelResult(meta=result.meta))

        self._translator.ask_agent(id, m2.SET_CONFIG_OPTION, params, changed)

    def set_option(self, id: Id, asked: v1.SetConfigOption) -> None:
        params: v2.SetConfigOption
        if isinstance(asked.value, bool):
            params = v2.SetBoolean(
                session_id=asked.session_id, config_id=asked.config_id, value=asked.value, meta=asked.meta
            )
        else:
            params = v2.SetValue(
                session_id=asked.session_id, config_id=asked.config_id, value=asked.value, meta=asked.meta
            )

        def changed(result: v2.SetConfigOptionResult) -> None:
            session = self._changed(asked.session_id, result)
            options = session.updates.options_to_v1()
            self._translator.answer_client(id, v1.SetConfigOptionResult(config_options=options, meta=result.meta))

        self._translator.ask_agent(id, m2.SET_CONFIG_OPTION, params, changed)

    def _changed(self, session_id: str, result: v2.SetConfigOptionResult) -> V1ClientSession:
        """Keep the options as they are now. A mode that is another one is shown, whatever has changed it."""
        session = self._session_of(session_id)
        if session.updates.set_options(result.config_options) and (mode := session.updates.mode) is not None:
            session.updates.send(v1.CurrentModeUpdate(current_mode_id=mode.current_value))
        return session
