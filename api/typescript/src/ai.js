// The AI SDK (package ai, 6 and 7): prepareStep for one conversation, a middleware for
// every call of a model, and the tools that reach what was taken out.
import { jsonSchema } from 'ai'
import { History, parsed, said, textOf } from './history.js'
import { tools } from './tools.js'

/** @typedef {import('./api.js').Part} Part */
/** @typedef {import('./history.js').Options} Options */
/** @typedef {import('./history.js').Read} Read */

/**
 * Palimpsest for one conversation.
 *
 *     const { prepareStep, tools } = palimpsest({ thread: 'ticket-4711', window: 200000 })
 *     await generateText({ model, messages, tools: { ...mine, ...tools }, prepareStep, stopWhen })
 *
 * Use prepareStep or the middleware, not both.
 * @param {Options} options
 */
export function palimpsest(options) {
  /** @type {History<any>} */
  const history = new History(codec, options)
  /** @param {any} params @param {any} model @param {boolean} [less] @returns {Promise<any>} */
  async function shown(params, model, less) {
    const given = await render(history, params.prompt, {
      model: model?.modelId ?? options.model,
      tools: params.tools?.flatMap((/** @type {any} */ t) => (t.type === 'function' ? [{ name: t.name, description: t.description, schema: t.inputSchema }] : [])),
      max_output: params.maxOutputTokens,
    }, less)
    return given && { ...params, prompt: [...given.lead, ...given.system.map(systemMessage), ...given.messages] }
  }
  /** What requests were before they were made smaller.
   * @type {WeakMap<any, any>} */
  const wholes = new WeakMap()
  /** @param {any} params @param {any} model @param {(params: any) => PromiseLike<any>} ask */
  const again = (params, model, ask) => {
    const whole = wholes.get(params)
    return history.asked(params, async (less) => (less ? shown(whole, model, less) : whole && params), ask)
  }
  return {
    /** For generateText, streamText and agents.
     * @param {any} step
     * @returns {Promise<any>} */
    async prepareStep(step) {
      // In version 7 what was returned is the base of later steps: what was said is built anew.
      const whole = 'initialMessages' in step
      const own = whole ? spoken(step) : step.messages
      const instructions = systemTexts(whole ? step.initialInstructions : undefined)
      const given = await render(history, own, { model: modelName(step.model) ?? options.model, system: instructions })
      if (!given) return whole ? { messages: own } : undefined
      const { lead, messages, system } = given
      if (!whole) return { messages: [...lead, ...system.map(systemMessage), ...messages] }
      const back = { messages: [...lead, ...messages] }
      if (system.length === 0) return { ...back, instructions: step.initialInstructions }
      return { ...back, instructions: [...asMessages(step.initialInstructions), ...system.map(systemMessage)] }
    },

    /** For wrapLanguageModel({ model, middleware }). */
    middleware: {
      /** @type {any} what the version of the model says; 6 reads v3 and 7 both */
      specificationVersion: 'v3',
      /** @param {any} call @returns {Promise<any>} */
      async transformParams({ params, model }) {
        const given = await shown(params, model)
        if (given) wholes.set(given, params)
        return given ?? params
      },
      /** @param {any} call @returns {Promise<any>} */
      wrapGenerate: ({ params, model }) => again(params, model, (p) => model.doGenerate(p)),
      /** @param {any} call @returns {Promise<any>} */
      wrapStream: ({ params, model }) => again(params, model, (p) => model.doStream(p)),
    },

    /** recall and read_artifact, to stand beside the host's own tools. */
    tools: Object.fromEntries(tools.map((t) => [t.name, {
      description: t.description,
      inputSchema: jsonSchema(/** @type {any} */ (t.schema)),
      /** @param {any} input @returns {Promise<string>} */
      execute: (input) => history.answer(t.name, input),
    }])),
  }
}

/** Instructions that lead a history stay with the host, and count as what stands around it.
 * @param {History<any>} history @param {any[]} own @param {import('./api.js').Prompt} around @param {boolean} [less] after a refusal */
async function render(history, own, around, less) {
  let n = 0
  while (own[n]?.role === 'system') n++
  const lead = own.slice(0, n)
  const system = [...(around.system ?? []), ...lead.flatMap(systemTexts)]
  const prepared = await history[less ? 'overflowed' : 'prepare'](own.slice(n), { ...around, system })
  return prepared && { lead, ...prepared }
}

/** All that was said so far, in its order; what was put in by steering is only in the steps.
 * @param {any} step @returns {any[]} */
function spoken({ initialMessages, responseMessages, steps, experimental_steeringMessages: now = [] }) {
  const later = steps.flatMap((/** @type {any} */ s) => s.response.messages).length
  return [
    ...initialMessages, ...responseMessages.slice(0, responseMessages.length - later),
    ...steps.flatMap((/** @type {any} */ s) => [...s.experimental_steeringMessages ?? [], ...s.response.messages]), ...now,
  ]
}

/** @param {any} model @returns {string | undefined} */
const modelName = (model) => (typeof model === 'string' ? model : model?.modelId)

/** @param {any} instructions @returns {any[]} */
const asMessages = (instructions) =>
  instructions === undefined ? [] : Array.isArray(instructions) ? instructions : typeof instructions === 'string' ? [systemMessage(instructions)] : [instructions]

/** @param {any} instructions @returns {Array<{text: string}>} */
const systemTexts = (instructions) => asMessages(instructions).map((m) => ({ text: String(m.content) }))

/** @param {string} content */
const systemMessage = (content) => ({ role: 'system', content })

const api = 'ai-sdk'

/** Messages of the SDK (ModelMessage) and prompts of its models differ in parts alone.
 * @type {import('./history.js').Codec<any>} */
export const codec = {
  read(message) {
    const parts = typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : message.content
    if (message.role !== 'tool') {
      return [{ role: message.role, parts: parts.map(read), own: parts }]
    }
    // An approval goes where the result before it goes.
    return parts.filter((/** @type {any} */ p) => p.type === 'tool-result').map((/** @type {any} */ p) => ({ role: 'tool', parts: [read(p)], own: [p] }))
  },

  write(pieces, original) {
    const content = pieces.flatMap((piece) => piece.parts.map((part, i) => piece.own[i] ?? { ...like(original, part), ...write(part) }))
    if (original?.role === 'tool') content.push(...original.content.filter((/** @type {any} */ p) => p.type !== 'tool-result'))
    const role = pieces[0].role
    const [only] = content
    if (role === 'system') return [{ ...original, role, content: content.map((p) => p.text).join('\n') }]
    if (typeof original?.content === 'string' && content.length === 1 && only.type === 'text') return [{ ...original, content: only.text }]
    return [{ ...original, role, content }]
  },
}

/** The host's part of the same call, for what it says beside.
 * @param {any} original @param {Part} part */
const like = (original, part) => Array.isArray(original?.content) &&
  original.content.find((/** @type {any} */ p) => part.call_id && p.toolCallId === part.call_id && p.type === write(part).type)

/** @param {any} p @returns {Part} */
function read(p) {
  switch (p.type) {
    case 'text': return { type: 'text', text: p.text }
    case 'reasoning': return { type: 'reasoning', text: p.text }
    case 'tool-call': return { type: 'tool_call', call_id: p.toolCallId, tool: p.toolName, arguments: argumentsOf(p.input) }
    case 'tool-result':
      return p.output ? { type: 'tool_result', call_id: p.toolCallId, tool: p.toolName, ...readOutput(p.output) } : opaque(p)
    case 'image': return media('image', p.image, p.mediaType) ?? opaque(p)
    case 'file': return media(mediaClass(p.mediaType), p.data, p.mediaType, p.filename) ?? opaque(p)
  }
  return opaque(p)
}

/** @param {Part} part @returns {any} */
function write(part) {
  switch (part.type) {
    case 'text': return { type: 'text', text: part.text ?? '' }
    case 'reasoning': return { type: 'reasoning', text: part.text ?? '' }
    case 'tool_call': return { type: 'tool-call', toolCallId: part.call_id, toolName: part.tool, input: parsed(part.arguments) }
    case 'tool_result': return { type: 'tool-result', toolCallId: part.call_id, toolName: part.tool, output: writeOutput(part) }
    case 'media': return writeMedia(part)
  }
  if (part.api === api && part.raw) return parsed(part.raw)
  return { type: 'text', text: part.text ?? '' }
}

/** A text as input would not come back from JSON as it was.
 * @param {unknown} input */
const argumentsOf = (input) => JSON.stringify(input) ?? ''

/** @param {any} output @returns {Partial<Part>} */
function readOutput(output) {
  switch (output.type) {
    case 'text': return { outcome: 'success', content: [{ type: 'text', text: output.value }] }
    case 'error-text': return { outcome: 'failure', content: [{ type: 'text', text: output.value }] }
    case 'json': return { outcome: 'success', content: [{ type: 'text', text: JSON.stringify(output.value) }] }
    case 'error-json': return { outcome: 'failure', content: [{ type: 'text', text: JSON.stringify(output.value) }] }
    case 'execution-denied': return { outcome: 'failure', content: [{ type: 'text', text: output.reason ?? 'The execution was denied.' }] }
    case 'content': return { outcome: 'success', content: output.value.map((/** @type {any} */ p) => (p.type === 'text' ? { type: 'text', text: p.text } : opaque(p))) }
  }
  return { outcome: 'success', content: [{ type: 'text', text: JSON.stringify(output) }] }
}

/** @param {Part} part @returns {any} */
function writeOutput(part) {
  const content = part.content ?? []
  if (content.every((p) => p.type === 'text') && content.length < 2) {
    return { type: part.outcome === 'failure' ? 'error-text' : 'text', value: textOf(content) }
  }
  return { type: 'content', value: content.map(write) }
}

/** @param {any} p @returns {Part} */
function opaque(p) {
  return { type: 'opaque', kind: p.type, api, raw: JSON.stringify(p, (_, value) => (value instanceof Uint8Array ? base64(value) : value)) }
}

/** @param {string | undefined} type */
function mediaClass(type) {
  const kind = type?.split('/')[0] ?? ''
  if (['image', 'audio', 'video'].includes(kind)) return kind
  return type === 'application/pdf' || kind === 'text' ? 'document' : 'file'
}

/** The content of a file in the forms of versions 6 and 7; undefined for one that only its provider knows.
 * @param {string} kind @param {any} data @param {string | undefined} mime @param {string} [name] @returns {Part | undefined} */
function media(kind, data, mime, name) {
  const about = { type: 'media', media: kind, mime, name }
  if (data instanceof URL) return { ...about, url: data.href }
  if (data instanceof Uint8Array) return { ...about, data: base64(data) }
  if (data instanceof ArrayBuffer) return { ...about, data: base64(new Uint8Array(data)) }
  if (typeof data === 'string') return /^(https?|data):/.test(data) ? { ...about, url: data } : { ...about, data }
  switch (data?.type) {
    case 'data': return media(kind, data.data, mime, name)
    case 'url': return { ...about, url: String(data.url) }
    case 'text': return { ...about, text: data.text }
  }
  return undefined
}

/** @param {Part} part @returns {any} */
function writeMedia(part) {
  const data = part.url ? new URL(part.url) : part.data ?? { type: 'text', text: part.text ?? '' } // as version 7 has it
  if (part.media === 'image' && !part.mime) return { type: 'image', image: data }
  return said(/** @type {any} */ ({ type: 'file', data, mediaType: part.mime ?? 'application/octet-stream', filename: part.name }))
}

/** @param {Uint8Array} bytes */
const base64 = (bytes) => Buffer.from(bytes).toString('base64')
