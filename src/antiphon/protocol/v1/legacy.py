"""Choosing the model as agents did before settings existed. No schema has it any more; many agents still do it."""

import msgspec

from antiphon.protocol.base import Items, Model
from antiphon.protocol.v1.ids import ModelId, SessionId
from antiphon.protocol.v1.updating import SettingsUpdate

__all__ = ["CurrentModelUpdate", "ModelChoice", "ModelState", "SessionModel", "SetModel", "SetModelResult"]


class SessionModel(Model, frozen=True):
    """A model the session can use."""

    model_id: ModelId
    name: str
    description: str | None = None


class ModelState(Model, frozen=True):
    """The models on offer and the one in use."""

    available_models: Items[SessionModel]
    current_model_id: ModelId


class ModelChoice(Model, frozen=True):
    """The model a client wants a new session to start with."""

    provider_id: str = msgspec.field(name="providerID")
    model_id: str = msgspec.field(name="modelID")


class SetModel(Model, frozen=True):
    """Use another model from now on."""

    session_id: SessionId
    model_id: ModelId


class SetModelResult(Model, frozen=True):
    """Done."""


class CurrentModelUpdate(SettingsUpdate, frozen=True, tag="current_model_update"):
    """The session changed its model."""

    current_model_id: ModelId
