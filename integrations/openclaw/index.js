// OpenClaw's context engine: before each call of the model the history goes to
// Palimpsest's daemon, and what comes back says which of its messages stay, which go and
// what stands in their place. All decisions are the daemon's; OpenClaw's transcript is not
// changed. Whatever fails, the model sees the messages as OpenClaw has them, and OpenClaw
// compacts by itself: an engine that throws would not be asked again.
import { createHash } from 'node:crypto'
import { answer, byID, prepare, said, text, tools, words } from './daemon.js'
import { blocks, remade, told } from './messages.js'

// OpenClaw cuts a summary off that takes more, in tokens.
const SUMMARY = 4000

const digest = s => createHash('sha256').update(s).digest('hex').slice(0, 16)

// keyOf is what a message is known by, since OpenClaw's have no ids: a call and its result
// by the call's id, all else by what it says.
function keyOf(m) {
  if (m.role === 'toolResult') return 'result:' + m.toolCallId
  const call = m.role === 'assistant' && blocks(m.content).find(p => p.type === 'toolCall')
  return call ? 'call:' + call.id : m.role + ':' + digest(JSON.stringify(told('', m)?.parts ?? ''))
}

// named are the messages with their ids. What is said twice is told apart by what stands
// before it, and at last by its number.
function named(messages) {
  const times = new Map()
  return messages.map((m, i) => {
    const key = keyOf(m)
    const id = i === 0 || /^(call|result):/.test(key) ? key : key + '.' + digest(keyOf(messages[i - 1]))
    times.set(id, (times.get(id) ?? 0) + 1)
    return { id: times.get(id) > 1 ? id + '#' + times.get(id) : id, m }
  })
}

// threadOf names the thread of a conversation. What was before a compaction of OpenClaw's
// own is no part of it any more: it goes on in a thread of its own.
function threadOf(session, messages) {
  const since = messages.findLast(m => m.role === 'compactionSummary')
  return 'openclaw.' + session + (since ? '.' + digest(since.summary) : '')
}

// edited are the messages after the edits. A message that is put in is the user's: joined
// to an answer it would stand before its reasoning.
function edited(all, edits) {
  const changes = byID(edits, all.map(({ id }) => id))
  const insert = (before, at) => {
    const content = (before ?? []).flatMap(said).map(text)
    return content.length > 0 ? [{ role: 'user', content, timestamp: at }] : []
  }
  const messages = all.flatMap(({ id, m }) => {
    const e = changes.get(id)
    const own = e?.omit ? [] : e?.content ? [{ ...m, content: remade(blocks(m.content), e.content) }] : [m]
    return [...insert(e?.insert_before, m.timestamp), ...own]
  })
  return [...messages, ...insert(changes.get('')?.insert_before, all.at(-1)?.m.timestamp)]
}

// size is about how many tokens messages have, where the daemon did not say.
const size = messages => Math.ceil(JSON.stringify(messages).length / 4)

// OpenClaw loads a plugin several times in one process. What they share are the threads
// of sessions, the newest first, and the compactions that OpenClaw makes by itself at
// this time: whoever asks for a summary does not say of which session it is.
const { threads, compacting } = (globalThis[Symbol.for('palimpsest.openclaw')] ??= { threads: new Map(), compacting: new Set() })

export default {
  id: 'palimpsest',
  name: 'Palimpsest',
  register(api) {
    const threadsOf = session => threads.get(session) ?? ['openclaw.' + session]
    const failed = err => api.logger?.warn?.('palimpsest: ' + err.message)

    async function asked({ sessionId, messages = [], tokenBudget, model, availableTools }, more) {
      const base = { model, tools: [...(availableTools ?? tools.map(t => t.name))].map(name => ({ name })) }
      const step = { ...(tokenBudget > 0 && { window: Math.floor(tokenBudget) }), ...more, base }
      return prepare(threadsOf(sessionId)[0], { ...step, messages: named(messages).flatMap(({ id, m }) => told(id, m) ?? []) })
    }

    // A turn that does not end is not told at assemblies: OpenClaw cuts it, and asks for
    // a summary of what it cut off. Without an answer it asks a model.
    api.registerCompactionProvider?.({
      id: 'palimpsest',
      label: 'Palimpsest',
      async summarize({ messages, previousSummary }) {
        try {
          if (compacting.size !== 1) throw new Error(`a summary for one of ${compacting.size} sessions`)
          const [{ sessionId, tokenBudget }] = compacting
          const whole = previousSummary ? [{ role: 'compactionSummary', summary: previousSummary }, ...messages] : messages
          const edits = await asked({ sessionId, messages: whole, tokenBudget }, { force: true, budget: SUMMARY })
          return edited(named(whole), edits).map(m => `[${m.role}] ${m.summary ?? words(blocks(m.content))}`).join('\n\n')
        } catch (err) {
          failed(err)
          throw err
        }
      },
    })

    const engine = {
      info: {
        id: 'palimpsest',
        name: 'Palimpsest',
        ownsCompaction: true,
        transcriptSemantics: { currentTurnFence: 'before-current-turn-entry-v1', turnAdvancementIdempotency: 'atomic-idempotent-v1' },
      },

      async assemble(params) {
        const { sessionId, messages } = params
        try {
          const at = threadOf(sessionId, messages)
          if (!threadsOf(sessionId).includes(at)) threads.set(sessionId, [at, ...threadsOf(sessionId)])
          const made = edited(named(messages), await asked(params))
          return { messages: made, estimatedTokens: size(made) }
        } catch (err) {
          failed(err)
          return { messages, estimatedTokens: size(messages) }
        }
      },

      // compact takes out what it can of what the daemon has been told; the next assembly
      // shows it. Where that is nothing, OpenClaw compacts as it does without us.
      async compact(params) {
        try {
          const { sessionId, tokenBudget, customInstructions: instructions } = params
          const before = await asked({ sessionId, tokenBudget })
          const after = await asked({ sessionId, tokenBudget }, { force: true, instructions })
          if (JSON.stringify(before) === JSON.stringify(after)) throw new Error('there is nothing to take out')
          return { ok: true, compacted: true, result: { tokensBefore: params.currentTokenCount ?? 0 } }
        } catch (err) {
          failed(err)
        }
        try {
          const { delegateCompactionToRuntime } = await import('openclaw/plugin-sdk/core')
          compacting.add(params)
          return await delegateCompactionToRuntime(params)
        } catch (err) {
          failed(err)
          return { ok: false, compacted: false, reason: err.message }
        } finally {
          compacting.delete(params)
        }
      },

      // The daemon is told all at each assembly, and knows what it has: a turn that ended
      // needs nothing more.
      async commitTurn() {
        return { status: 'committed' }
      },
      async ingest() {
        return { ingested: true }
      },
    }
    api.registerContextEngine('palimpsest', () => engine)

    for (const t of tools) {
      api.registerTool(({ sessionId }) => ({
        name: t.name,
        label: t.name,
        description: t.description,
        parameters: t.schema,
        async execute(call, args) {
          return { content: [text(await answer(threadsOf(sessionId), t, call, args))], details: {} }
        },
      }), { name: t.name })
    }
  },
}
