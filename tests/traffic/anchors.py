"""The pages of the specification and their headings, as far as they were looked up in its source or on its site.

A link with an anchor that is not in this table leads to the top of a page at best. Where a heading is not certain, the page alone is linked:
`_meta` is in none of the anchors, because its underscore is written in some links and left out in others.
"""

from typing import Final

__all__ = ["ANCHORS", "PAGES_V2"]

ANCHORS: Final[dict[str, frozenset[str]]] = {
    page: frozenset(anchors.split())
    for page, anchors in {
        "agent-plan": "creating-plans plan-entries updating-plans dynamic-planning",
        "authentication": "advertising-authentication authentication-method-types logging-out",
        "cancellation": "",
        "content": "content-types text-content image-content audio-content embedded-resource",
        "elicitation": "user-interaction-requirements checking-support url-completion",
        "extensibility": "extension-methods custom-requests custom-notifications advertising-custom-capabilities",
        "file-system": "checking-support reading-files writing-files",
        "initialization": "protocol-version version-negotiation capabilities client-capabilities terminal-authentication file-system terminal "
        "elicitation boolean-config-options agent-capabilities prompt-capabilities mcp-capabilities authentication-capabilities "
        "session-capabilities implementation-information",
        "overview": "communication-model message-flow agent client argument-requirements error-handling extensibility",
        "prompt-turn": "the-prompt-turn-lifecycle 1-user-message 2-agent-processing 3-agent-reports-output message-ids session-usage-updates "
        "4-check-for-completion 5-tool-invocation-and-status-reporting 6-continue-conversation stop-reasons cancellation",
        "schema": "agentcapabilities authenticaterequest clientcapabilities errorcode initializerequest initializeresponse protocolversion "
        "sessioncapabilities sessionupdate session-cancel session-close session-delete session-list session-load usageupdate",
        "draft/schema": "",
        "session-config-options": "initial-state option-categories option-ordering default-values-and-graceful-degradation "
        "setting-a-config-option from-the-client from-the-agent relationship-to-session-modes",
        "session-delete": "checking-support deleting-a-session semantics",
        "session-list": "checking-support listing-sessions pagination updating-session-metadata",
        "session-modes": "initial-state setting-the-current-mode from-the-client from-the-agent exiting-plan-modes",
        "session-setup": "creating-a-session loading-sessions loading-a-session resuming-sessions closing-active-sessions "
        "additional-workspace-roots session-id working-directory mcp-servers stdio-transport http-transport sse-transport "
        "checking-transport-support",
        "slash-commands": "advertising-commands",
        "terminals": "checking-support executing-commands embedding-in-tool-calls getting-output waiting-for-exit killing-commands "
        "building-a-timeout releasing-terminals",
        "tool-calls": "creating updating requesting-permission permission-options status content diffs following-the-agent",
        "transports": "stdio streamable-http custom-transports",
    }.items()
}  # fmt: skip

PAGES_V2: Final[dict[str, frozenset[str]]] = {
    page: frozenset(anchors.split())
    for page, anchors in {
        "extensibility": "extension-methods",
        "initialization": "",
        "migration": "",
        "overview": "communication-model error-handling",
        "prompt-lifecycle": "",
        "schema": "errorcode sessionupdate",
        "session-config-options": "",
        "session-setup": "",
        "tool-calls": "",
        "transports": "stdio",
    }.items()
}
"""Those of version 2. Its text is its schema, so an anchor of that page is the name of a type."""
