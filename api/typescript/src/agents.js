// OpenAI Agents (package @openai/agents-core 0.20): a session whose items stay in a store of the
// SDK's, and models that are shown what Palimpsest makes of them.
import { MemorySession, tool } from '@openai/agents-core'
import { History, textOf } from './history.js'
import { tools } from './tools.js'

/** @typedef {import('./api.js').Part} Part */
/** @typedef {import('@openai/agents-core').Session} Session */
/** @typedef {import('@openai/agents-core').Model} Model */
/** @typedef {import('@openai/agents-core').ModelProvider} ModelProvider */

/**
 * A session of one conversation.
 *
 *     const session = new PalimpsestSession({ thread: 'ticket-4711', window: 200000 })
 *     const runner = new Runner({ modelProvider: session.models(new OpenAIProvider()) })
 *     await runner.run(agent, 'Why does the build fail?', { session })
 *
 * The whole history stays in the store, where the SDK compares it with what it expects. What is made smaller is the
 * request, at the model: what a callModelInputFilter returned would be kept in place of what was said.
 * @implements {Session}
 */
export class PalimpsestSession {
  #history
  #store

  /** @param {import('./history.js').Options & { store?: Session }} options store keeps the items; the SDK's MemorySession by default */
  constructor(options) {
    this.#history = new History(codec, options)
    const store = options.store ?? new MemorySession({ sessionId: options.thread })
    this.#store = store
    /** recall and read_artifact, to stand beside the agent's own tools. */
    this.tools = tools.map((t) => tool({
      name: t.name,
      description: t.description,
      parameters: { ...t.schema, additionalProperties: true },
      strict: false,
      execute: (input) => this.#history.answer(t.name, input),
    }))
    // The SDK looks whether a session has these.
    for (const name of /** @type {const} */ (['applyHistoryMutations', 'applyHistoryTransaction', 'replaceHistoryWithCompaction',
      'prepareHistoryItemForModelInput', 'prepareHistoryItemsForPersistenceComparison', 'preserveReasoningItemIdsForPersistence'])) {
      const method = /** @type {any} */ (store)[name]
      if (typeof method === 'function') Object.assign(this, { [name]: method.bind(store) })
    }
  }

  getSessionId() {
    return this.#store.getSessionId()
  }

  /** @param {number} [limit] */
  getItems(limit) {
    return this.#store.getItems(limit)
  }

  /** @param {import('@openai/agents-core').AgentInputItem[]} items */
  addItems(items) {
    return this.#store.addItems(items)
  }

  popItem() {
    return this.#store.popItem()
  }

  /** What the daemon has of the conversation stays there, as the log of what was said. */
  clearSession() {
    return this.#store.clearSession()
  }

  /** A model that is asked with what Palimpsest makes of the input.
   * @param {Model} inner
   * @returns {Model} */
  model(inner) {
    /** @template T @param {any} request @param {(request: any) => PromiseLike<T>} ask */
    const asked = (request, ask) => this.#history.asked(request, (less) => this.#request(request, less), ask)
    return {
      getResponse: (request) => asked(request, (r) => inner.getResponse(r)),
      async *getStreamedResponse(request) {
        // A refusal comes before the first event: what has begun is passed on as it is.
        const stream = await asked(request, async (r) => {
          const events = inner.getStreamedResponse(r)[Symbol.asyncIterator]()
          return { events, first: await events.next() }
        })
        let next = stream.first
        try {
          for (; !next.done; next = await stream.events.next()) yield next.value
        } finally { // whoever reads no further ends the request too
          if (!next.done) await stream.events.return?.()
        }
      },
      ...(inner.getRetryAdvice ? { getRetryAdvice: inner.getRetryAdvice.bind(inner) } : {}),
    }
  }

  /** The same for all models of a provider.
   * @param {ModelProvider} inner
   * @returns {ModelProvider} */
  models(inner) {
    return { getModel: async (name) => this.model(await inner.getModel(name)) }
  }

  /** What to send in place of a request; undefined for the request as it is.
   * @param {any} request @param {boolean} [less] after a refusal @returns {Promise<any>} */
  async #request(request, less) {
    // A conversation that the provider holds comes here in pieces.
    if (request.previousResponseId || request.conversationId || typeof request.input === 'string') return undefined
    const given = await this.#history[less ? 'overflowed' : 'prepare'](grouped(request.input), {
      system: request.systemInstructions ? [{ text: request.systemInstructions }] : [],
      tools: (request.tools ?? []).flatMap((/** @type {any} */ t) => (t.type === 'function' ? [{ name: t.name, description: t.description, schema: t.parameters }] : [])),
      max_output: request.modelSettings?.maxTokens,
    })
    if (!given) return undefined
    const systemInstructions = [request.systemInstructions, ...given.system].filter(Boolean).join('\n\n') || request.systemInstructions
    return { ...request, input: given.messages.flat(), systemInstructions }
  }
}

/** What a model said at once is one message: its reasoning goes where its calls go.
 * @param {any[]} items @returns {any[][]} */
function grouped(items) {
  /** @type {any[][]} */
  const groups = []
  let said = false // the last group is the model's
  for (const item of items) {
    const model = roleOf(item) === 'assistant'
    if (model && said) groups[groups.length - 1].push(item)
    else groups.push([item])
    said = model
  }
  return groups
}

/** @param {any} item */
function roleOf(item) {
  if (item.type === undefined || item.type === 'message') return item.role
  return item.type.endsWith('_result') || item.type.endsWith('_output') ? 'tool' : 'assistant'
}

const api = 'openai-agents'

/** A message is the items of one answer, or one item of someone else. An assistant's part is an item, a user's
 * part is a piece of its content.
 * @type {import('./history.js').Codec<any[]>} */
export const codec = {
  read(group) {
    const [item] = group
    switch (roleOf(item)) {
      case 'assistant': return [{ role: 'assistant', parts: group.map(read), own: group }]
      case 'tool':
        if (!item.callId) return [{ role: 'assistant', parts: [opaque(item)], own: group }]
        return [{ role: 'tool', parts: [read(item)], own: group }]
    }
    const content = typeof item.content === 'string' ? [{ type: 'input_text', text: item.content }] : item.content
    return [{ role: item.role, parts: content.map(readContent), own: content }]
  },

  write([piece], original) {
    if (piece.role === 'assistant' || piece.role === 'tool') {
      return [piece.parts.map((part, i) => piece.own[i] ?? write(part, original?.find((item) => part.call_id && item.callId === part.call_id)))]
    }
    const content = piece.parts.map((part, i) => piece.own[i] ?? writeContent(part))
    const plain = piece.role === 'system' || typeof original?.[0].content === 'string' && content.every((p) => p.type === 'input_text')
    const item = { ...original?.[0] ?? { type: 'message' }, role: piece.role }
    return [[{ ...item, content: plain ? content.map((p) => p.text).join('\n') : content }]]
  },
}

/** @param {any} item @returns {Part} */
function read(item) {
  switch (item.type) {
    case 'function_call':
      return { type: 'tool_call', call_id: item.callId, tool: item.name, arguments: item.arguments }
    case 'function_call_result':
      return { type: 'tool_result', call_id: item.callId, tool: item.name, outcome: item.status === 'incomplete' ? 'failure' : 'success', content: readOutput(item.output) }
    case 'reasoning':
      return { type: 'reasoning', text: item.content.map((/** @type {any} */ c) => c.text).join('\n') }
  }
  if (item.role === 'assistant' && item.content.length === 1 && item.content[0].type === 'output_text') return { type: 'text', text: item.content[0].text }
  if (roleOf(item) === 'tool') return { type: 'tool_result', call_id: item.callId, tool: item.name, outcome: 'success', content: [opaque(item)] }
  if (item.callId && item.type.endsWith('_call')) return { type: 'tool_call', call_id: item.callId, tool: item.type, arguments: JSON.stringify(item) }
  return opaque(item)
}

/** @param {Part} part @param {any} [like] the host's item of this call @returns {any} */
function write(part, like) {
  switch (part.type) {
    case 'tool_call':
      if (part.tool?.endsWith('_call') && parsedItem(part.arguments)?.type === part.tool) return parsedItem(part.arguments)
      return { type: 'function_call', name: part.tool, status: 'completed', ...like, callId: part.call_id, arguments: part.arguments ?? '' }
    case 'tool_result': {
      const item = part.content?.length === 1 && part.content[0].api === api ? parsedItem(part.content[0].raw) : undefined
      if (item?.callId === part.call_id && item?.type !== 'function_call_result') return item
      return { type: 'function_call_result', name: part.tool, status: part.outcome === 'failure' ? 'incomplete' : 'completed', ...like, callId: part.call_id, output: writeOutput(part.content ?? []) }
    }
    case 'reasoning': return { type: 'reasoning', content: [{ type: 'input_text', text: part.text ?? '' }] }
    case 'opaque': if (part.api === api) return parsedItem(part.raw)
  }
  return { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: part.text ?? '' }] }
}

/** @param {any} output @returns {Part[]} */
function readOutput(output) {
  if (typeof output === 'string') return [{ type: 'text', text: output }]
  return [output].flat().map(readContent)
}

/** @param {Part[]} content @returns {any} */
function writeOutput(content) {
  if (content.length < 2 && content.every((p) => p.type === 'text')) return textOf(content)
  return content.map(writeContent)
}

/** @param {any} p @returns {Part} */
function readContent(p) {
  if (p.type === 'input_text' || p.type === 'text') return { type: 'text', text: p.text }
  if (p.type === 'input_image' && typeof p.image === 'string') return { type: 'media', media: 'image', url: p.image, detail: p.detail }
  return opaque(p)
}

/** @param {Part} part @returns {any} */
function writeContent(part) {
  if (part.type === 'media' && part.url) return { type: 'input_image', image: part.url, ...(part.detail ? { detail: part.detail } : {}) }
  if (part.type === 'opaque' && part.api === api) return parsedItem(part.raw)
  return { type: 'input_text', text: part.text ?? '' }
}

/** @param {any} item @returns {Part} */
const opaque = (item) => ({ type: 'opaque', kind: item.type ?? 'message', api, raw: JSON.stringify(item) })

/** @param {string | undefined} raw @returns {any} */
function parsedItem(raw) {
  try {
    return JSON.parse(raw ?? '')
  } catch {
    return undefined
  }
}
