// What other libraries do with a history, by their own code. A contender takes
// {budget, messages, tokens} as serve.mjs reads it and gives the messages that
// it leaves.
//
// "default" is the documented default, whatever the budget. "fitted" is how a
// user would set the library up for the budget; its constants were chosen on the
// dev split, among those that variants() makes.
import { trimMessages } from '@langchain/core/messages'
import { pruneMessages } from 'ai'
import { createFilesystemMiddleware } from 'deepagents'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { ClearToolUsesEdit } from 'langchain'
import * as aisdk from './aisdk.mjs'
import * as langchain from './langchain.mjs'

// Names of special tokens in a text are text.
const plain = { disallowedSpecial: new Set() }
export const countText = (text) => countTokens(text, plain)

const chain = (work) => async (request) => {
  const h = langchain.history(request, countText)
  return h.back(await work(h, request.budget))
}

export async function clear(h, options, countTokens = h.count) {
  const messages = [...h.messages]
  await new ClearToolUsesEdit(options).apply({ messages, countTokens })
  return messages
}

// trim is the configuration of the documentation, but for startOn, which there
// is "human": an agent's history has few words of people.
export const trim = (h, messages, budget, startOn) =>
  trimMessages(messages, { maxTokens: budget, strategy: 'last', tokenCounter: h.count, includeSystem: true, startOn })

const steps = ['human', 'ai']

// evict is what the file system of deepagents does to a tool's answer before it
// enters the history. What it writes away is counted as written.
export async function evict(messages, limit) {
  const backend = { write: async () => ({ filesUpdate: null }), read: async () => '', ls: async () => [] }
  const { wrapToolCall } = createFilesystemMiddleware({ backend, toolTokenLimitBeforeEvict: limit })
  const out = []
  for (const m of messages) {
    if (m.getType() !== 'tool') out.push(m)
    else out.push(await wrapToolCall({ toolCall: { id: m.tool_call_id, name: m.name, args: {} }, state: {}, runtime: {} }, async () => m))
  }
  return out
}

const prune = (h, keep) => pruneMessages({ messages: h.messages, reasoning: 'before-last-message', toolCalls: keep > 0 ? `before-last-${keep}-messages` : 'none', emptyMessages: 'remove' })

// pruneTo asks for as many untouched messages as the budget holds. The library
// has no budget of its own.
export function pruneTo(h, budget) {
  let low = 1
  let high = h.messages.length
  let best = prune(h, 1)
  while (low <= high) {
    const keep = (low + high) >> 1
    const left = prune(h, keep)
    if (h.tokens(left) <= budget) {
      best = left
      low = keep + 1
    } else high = keep - 1
  }
  return best
}

const cleared = (keep) => chain(async (h, budget) => trim(h, await clear(h, { trigger: { tokens: budget }, keep: { messages: keep } }), budget, steps))
const evicted = (limit) => chain(async (h, budget) => trim(h, await evict(h.messages, limit), budget, steps))

export const contenders = {
  'LangChain ClearToolUsesEdit, default': chain((h) => clear(h)),
  'LangChain ClearToolUsesEdit + trim, fitted': cleared(3),
  'LangChain trimMessages, default': chain((h, budget) => trim(h, h.messages, budget, 'human')),
  'LangChain trimMessages, fitted': chain((h, budget) => trim(h, h.messages, budget, steps)),
  'AI SDK pruneMessages, default': async (request) => {
    const h = aisdk.history(request, countText)
    return h.back(prune(h, 2))
  },
  'AI SDK pruneMessages, fitted': async (request) => {
    const h = aisdk.history(request, countText)
    return h.back(pruneTo(h, request.budget))
  },
  'deepagents eviction, default': chain((h) => evict(h.messages)),
  'deepagents eviction + trim, fitted': evicted(500),
}

// variants are what was tried for the fitted ones.
export const variants = {
  ...Object.fromEntries([3, 10, 20, 40].map((keep) => [`clear ${keep} + trim`, cleared(keep)])),
  ...Object.fromEntries([500, 1000, 2000].map((limit) => [`evict ${limit} + trim`, evicted(limit)])),
}
