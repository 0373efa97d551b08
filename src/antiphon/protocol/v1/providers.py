"""Where the agent gets its model from, as far as the client may choose. All of it is unstable."""

from typing import ClassVar

import msgspec

from antiphon.protocol.base import Exact, Items, Model, unstable
from antiphon.protocol.v1.base import ProviderId, SecretModel
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "DisableProvider", "DisableProviderResult", "ListProviders", "ListProvidersResult", "LlmProtocol", "Provider",
    "ProviderConfig", "SetProvider", "SetProviderResult",
]  # fmt: skip


@unstable
@unknown_reads_as(None)
class LlmProtocol(Word):
    """The kind of interface a model is reached by."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    AZURE = "azure"
    VERTEX = "vertex"
    BEDROCK = "bedrock"


@unstable
class ProviderConfig(Model, frozen=True):
    """How a provider is reached now; headers are never sent back."""

    api_type: LlmProtocol
    base_url: str


@unstable
class Provider(Model, frozen=True):
    """A provider that can be set; without `current` it is switched off."""

    provider_id: ProviderId
    supported: Items[LlmProtocol]
    required: bool
    current: Exact[ProviderConfig | None] = None


@unstable
class ListProviders(Model, frozen=True):
    """Ask for the providers."""


@unstable
class ListProvidersResult(Model, frozen=True):
    """The providers and how each is reached."""

    providers: list[Provider]


@unstable
class SetProvider(SecretModel, frozen=True):
    """Set how a provider is reached. Headers hold keys, so they are never printed."""

    __secret__: ClassVar[tuple[str, ...]] = ("headers",)

    provider_id: ProviderId
    api_type: LlmProtocol
    base_url: str
    headers: Exact[dict[str, str]] = msgspec.field(default_factory=dict)


@unstable
class SetProviderResult(Model, frozen=True):
    """The provider is set."""


@unstable
class DisableProvider(Model, frozen=True):
    """Switch a provider off."""

    provider_id: ProviderId


@unstable
class DisableProviderResult(Model, frozen=True):
    """The provider is switched off."""
