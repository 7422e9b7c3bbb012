// LangChain (package langchain, 1.5): a middleware of createAgent. The state keeps the whole
// history; what the model is shown is what fits.
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { createMiddleware } from 'langchain'
import { Client } from './client.js'
import { History, parsed, textOf } from './history.js'
import { tools } from './tools.js'

/** @typedef {import('./api.js').Part} Part */

/** How many conversations one middleware holds; one that is let go is read from the daemon when it goes on. */
const maxOpen = 256

/**
 * A middleware, with the tools that reach what was taken out.
 *
 *     const agent = createAgent({ model, tools, checkpointer, middleware: [palimpsestMiddleware({ window: 200000 })] })
 *     await agent.invoke({ messages }, { configurable: { thread_id: 'ticket-4711' } })
 *
 * @param {Omit<import('./history.js').Options, 'thread'> & {thread?: string}} options Without a thread, conversations
 *   have the name of LangChain's thread_id.
 */
export function palimpsestMiddleware(options) {
  const client = options.client instanceof Client ? options.client : new Client(options.client)
  /** @type {Map<string, History<any>>} */
  const open = new Map()
  /** @param {any} configurable @returns {History<any>} */
  const historyOf = (configurable) => {
    const thread = options.thread ?? configurable?.thread_id ?? ''
    const history = open.get(thread) ?? new History(codec, { ...options, client, thread })
    open.delete(thread)
    open.set(thread, history) // the newest is the last
    if (open.size > maxOpen) open.delete(open.keys().next().value ?? '')
    return history
  }
  return createMiddleware({
    name: 'Palimpsest',
    tools: tools.map((t) => tool((input, config) => historyOf(config?.configurable).answer(t.name, input), { name: t.name, description: t.description, schema: t.schema })),
    wrapModelCall: (request, handler) => {
      const history = historyOf(request.runtime?.configurable)
      return history.asked(request, (less) => shown(history, request, less), async (r) => handler(r))
    },
  })
}

/** @template {{messages: any[], systemMessage: any, tools: any[], model: any}} R
 * @param {History<any>} history @param {R} request @param {boolean} [less] after a refusal @returns {Promise<R | undefined>} */
async function shown(history, request, less) {
  let n = 0
  while (request.messages[n] && typeOf(request.messages[n]) === 'system') n++
  const lead = request.messages.slice(0, n)
  const system = [request.systemMessage, ...lead].map((m) => ({ text: textOf(contentOf(m)) })).filter((s) => s.text !== '')
  const given = await history[less ? 'overflowed' : 'prepare'](request.messages.slice(n), {
    model: typeof request.model === 'string' ? request.model : request.model?.model ?? request.model?.modelName,
    system,
    tools: (request.tools ?? []).flatMap((t) => (typeof t?.name === 'string' && t.name ? [{ name: t.name, description: t.description }] : [])),
  })
  if (!given) return undefined
  const systemMessage = given.system.reduce((m, text) => m.concat(new SystemMessage(m.content === '' ? text : `\n\n${text}`)), request.systemMessage ?? new SystemMessage(''))
  return { ...request, messages: [...lead, ...given.messages], ...(given.system.length > 0 ? { systemMessage } : {}) }
}

/** @param {any} message @returns {string} */
const typeOf = (message) => message.getType()

/** The blocks of a content, which may be one text.
 * @param {any} message @returns {any[]} */
const blocksOf = (message) => (typeof message?.content === 'string' ? [{ type: 'text', text: message.content }] : message?.content ?? [])

/** @param {any} message @returns {Part[]} */
const contentOf = (message) => blocksOf(message).map(readBlock)

/** Blocks that say a call once more; tool_calls has it.
 * @param {any} block */
const isCall = (block) => ['tool_use', 'tool_call', 'functionCall'].includes(block.type)

const api = 'langchain'

/** @type {import('./history.js').Codec<any>} */
export const codec = {
  read(message) {
    switch (typeOf(message)) {
      case 'system': return [{ role: 'system', parts: contentOf(message), own: blocksOf(message) }]
      case 'tool': return [{
        role: 'tool', own: [message],
        parts: [{ type: 'tool_result', call_id: message.tool_call_id, tool: message.name, outcome: message.status === 'error' ? 'failure' : 'success', content: contentOf(message) }],
      }]
      case 'ai': {
        const blocks = blocksOf(message).filter((b) => !isCall(b))
        const calls = (message.tool_calls ?? []).filter((/** @type {any} */ c) => c.id)
        return [{ role: 'assistant', parts: [...blocks.map(readBlock), ...calls.map(readCall)], own: [...blocks, ...calls] }]
      }
      case 'remove': return []
    }
    return [{ role: 'user', parts: contentOf(message), own: blocksOf(message) }]
  },

  write([piece], original) {
    const { role, parts, own } = piece
    if (role === 'tool') {
      const [part] = parts
      if (own[0]) return [own[0]]
      const content = contentFor((part.content ?? []).map(writeBlock))
      return [new ToolMessage({
        ...fields(original), tool_call_id: part.call_id ?? '', name: original?.name ?? part.tool, status: part.outcome === 'failure' ? 'error' : 'success', artifact: original?.artifact, content,
      })]
    }
    const blocks = parts.flatMap((part, i) => (part.type === 'tool_call' ? [] : [own[i] ?? writeBlock(part)]))
    if (role !== 'assistant') {
      if (original && typeOf(original) !== 'human' && typeOf(original) !== 'system') return [original] // of a type that we cannot make
      return [new (role === 'system' ? SystemMessage : HumanMessage)({ ...fields(original), content: contentFor(blocks) })]
    }
    const calls = parts.flatMap((part, i) => (part.type === 'tool_call' ? [own[i] ?? writeCall(part)] : []))
    for (const block of blocksOf(original).filter(isCall)) { // as providers have it in the content too
      const call = calls.find((c) => c.id === block.id)
      if (call) blocks.push(block.type === 'tool_use' ? { ...block, input: call.args } : { ...block, args: call.args })
    }
    return [new AIMessage({
      ...fields(original), content: contentFor(blocks), tool_calls: calls, invalid_tool_calls: original?.invalid_tool_calls, usage_metadata: original?.usage_metadata,
    })]
  },
}

/** What stands beside the content of a message.
 * @param {any} original @returns {any} */
function fields(original) {
  if (!original) return {}
  const { tool_calls: _, ...kwargs } = original.additional_kwargs ?? {} // the provider's own form of calls that may be changed
  return { id: original.id, name: original.name, additional_kwargs: kwargs, response_metadata: original.response_metadata }
}

/** @param {any[]} blocks @returns {any} */
const contentFor = (blocks) => (blocks.length === 1 && blocks[0].type === 'text' && Object.keys(blocks[0]).length === 2 ? blocks[0].text : blocks)

/** @param {any} block @returns {Part} */
function readBlock(block) {
  if (typeof block === 'string') return { type: 'text', text: block }
  if (block.type === 'text') return { type: 'text', text: block.text ?? '' }
  if (block.type === 'image_url') {
    const { url, detail } = typeof block.image_url === 'string' ? { url: block.image_url, detail: undefined } : block.image_url
    return { type: 'media', media: 'image', url, detail }
  }
  if (block.type === 'reasoning') return { type: 'reasoning', text: block.reasoning ?? '' }
  if (block.type === 'thinking') return { type: 'reasoning', text: block.thinking ?? '', signature: block.signature }
  return { type: 'opaque', kind: block.type, api, raw: JSON.stringify(block) }
}

/** @param {Part} part @returns {any} */
function writeBlock(part) {
  if (part.type === 'media' && part.url) return { type: 'image_url', image_url: { url: part.url, ...(part.detail ? { detail: part.detail } : {}) } }
  if (part.type === 'reasoning') return part.signature ? { type: 'thinking', thinking: part.text ?? '', signature: part.signature } : { type: 'reasoning', reasoning: part.text ?? '' }
  if (part.type === 'opaque' && part.api === api) return parsed(part.raw)
  return { type: 'text', text: part.text ?? '' }
}

/** @param {any} call @returns {Part} */
const readCall = (call) => ({ type: 'tool_call', call_id: call.id, tool: call.name, arguments: JSON.stringify(call.args ?? {}) })

/** @param {Part} part @returns {any} */
const writeCall = (part) => ({ type: 'tool_call', id: part.call_id, name: part.tool, args: parsed(part.arguments) })
