/**
 * The types that modules of the page share, for JSDoc alone: nothing here runs.
 *
 * What comes from an agent is `any` at its edges: it is read with care where it enters (`state/transcript.js`), and the
 * entries that are made from it have types.
 */

/**
 * A value that views follow.
 *
 * @template T
 * @typedef {{value: T, peek(): T, subscribe(follow: (value: T) => void): () => void}} Signal
 */

/**
 * One message of JSON-RPC without its envelope, as it came: a request or a notification.
 *
 * @typedef {{method: string, params: any, id?: number | string}} Frame
 */

/** @typedef {"connecting" | "open" | "waiting" | "closed" | "signed-out"} ConnectionState */

/** @typedef {"watch" | "drive" | "admin"} Role */

/**
 * A session in the list.
 *
 * @typedef {object} Row
 * @property {string} agent
 * @property {string} sessionId
 * @property {string} cwd
 * @property {string | null} title
 * @property {number} created seconds since 1970
 * @property {number} updated
 * @property {"running" | "waiting" | "idle" | "failed" | "unseen"} state `unseen` is the page's own: it ran when the connection was lost
 * @property {number} waiting requests that wait for a person
 * @property {number} number of its last event
 * @property {string} owner
 * @property {boolean} mayDelete
 * @property {string} text first line of the last prompt
 */

/**
 * An agent behind the gateway.
 *
 * @typedef {object} AgentInfo
 * @property {string} name
 * @property {string} title
 * @property {boolean} default
 * @property {string} state
 * @property {Settings | null} settings of its latest session
 */

/**
 * What `_antiphon/gateway/info` answers.
 *
 * @typedef {object} GatewayInfo
 * @property {string} version
 * @property {string} page hash of the files of the page
 * @property {string} name
 * @property {Role} role
 * @property {boolean} share
 * @property {AgentInfo[]} agents
 * @property {string[]} roots
 * @property {string[]} recent
 */

/**
 * The settings of a session in the words of the protocol.
 *
 * @typedef {object} Settings
 * @property {{currentModeId: string, availableModes: Array<{id: string, name: string, description?: string | null}>}} [modes]
 * @property {{currentModelId: string, availableModels: Array<{modelId: string, name: string, description?: string | null}>}} [models]
 * @property {ConfigOption[]} [configOptions]
 */

/**
 * A setting. `options` are values, or groups of them.
 *
 * @typedef {object} ConfigOption
 * @property {string} id
 * @property {string} name
 * @property {string | null} [description]
 * @property {string | null} [category]
 * @property {"select" | "boolean" | string} type
 * @property {string | boolean} currentValue
 * @property {any[]} [options]
 */

/** A mode or model to choose. @typedef {{id: string, name: string, description?: string | null}} Choice */

/** A slash command. @typedef {{name: string, description: string, input?: {hint: string} | null}} Command */

/** A step of a plan. @typedef {{content: string, priority: string, status: string}} PlanStep */

/** A content block of the protocol. @typedef {{type: string, [name: string]: any}} Block */

/** A prompt that waits in the gateway. @typedef {{prompt: string, from: string, text: string}} QueuedPrompt */

/** The turn that runs. @typedef {{id: string, from: string, started: number | null, prompt: string | null}} Turn */

/**
 * A prompt that this page has sent and that is not an event yet.
 *
 * @typedef {object} OutgoingPrompt
 * @property {string} name
 * @property {Block[]} blocks
 * @property {string} text
 * @property {"sending" | "failed" | "kept"} state "kept": refused by a gateway that is about to stop, and sent to the next one
 * @property {string | null} error why it failed
 */

/**
 * A request of the agent that waits for this person.
 *
 * @typedef {object} PendingRequest
 * @property {string} id the gateway's, the same on every connection and device
 * @property {string} method
 * @property {any} params
 * @property {boolean} stale whether its connection was lost; an answer is sent when the gateway asks again
 * @property {number | null} time
 * @property {(result: any) => void} respond
 */

/** A change of a file. @typedef {{path: string, old: string | null, new: string}} ChangedFile */

/**
 * Something that is sent along with a prompt.
 *
 * @typedef {object} Attachment
 * @property {string} name
 * @property {string} mimeType
 * @property {number} size bytes
 * @property {Block} block as it is sent
 */

/** @typedef {{text: string, attachments: Attachment[], kept: boolean}} Draft `kept`: whether all of it is stored. */

/**
 * What a person prefers, in this browser.
 *
 * @typedef {object} Preferences
 * @property {"system" | "light" | "dark"} theme
 * @property {boolean} notifications
 * @property {"unified" | "split"} diffStyle
 * @property {boolean} enterSends
 * @property {string} [agent] the last choice for a new session
 * @property {string} [cwd]
 * @property {string} [mode]
 * @property {string} [model]
 */

/**
 * Where the page is.
 *
 * @typedef {object} Route
 * @property {"list" | "new" | "session" | "admin" | "settings" | "about"} screen
 * @property {string} [agent]
 * @property {string} [id]
 * @property {string} [call] the tool call that a deep link names
 * @property {"changes"} [view]
 */

export {};
