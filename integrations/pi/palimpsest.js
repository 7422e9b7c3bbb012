// pi's conversation goes to Palimpsest's daemon after each turn, and what comes back says
// which of its messages stay, which go and what stands in their place: that becomes
// context edits in pi's session. All decisions are the daemon's; pi's history and its
// files stay whole. Whatever fails, pi goes on as it does without us.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const PROGRAM = 'palimpsest'
// A daemon that must be started reads its store first; one that cannot start is not
// asked for at each call.
const STARTING = 8000
const AGAIN = 30_000
const ANSWER = 30_000

let running // where the daemon is
let begun = -AGAIN

async function daemon() {
  if (performance.now() - begun < AGAIN) throw new Error('the daemon did not start before')
  begun = performance.now()
  const { stdout } = await promisify(execFile)(PROGRAM, ['daemon'], { timeout: STARTING })
  begun = -AGAIN
  return JSON.parse(stdout)
}

async function send(path, body) {
  return fetch(running.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer ' + running.key },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(ANSWER),
  })
}

// ask asks the daemon; one that has ended since is started again.
async function ask(path, body) {
  let answer
  for (let left = 3; !answer; left--) {
    running ??= await daemon()
    answer = await send(path, body).catch(err => {
      if (left === 1 || err.name === 'TimeoutError') throw err
      running = undefined
    })
  }
  const said = await answer.json()
  if (!answer.ok) throw Object.assign(new Error(said.detail ?? `the daemon answers ${answer.status}`), { status: answer.status })
  return said
}

const thread = id => '/v1/threads/' + encodeURIComponent(id)

async function prepare(id, step) {
  return ask(thread(id) + '/prepare', step).catch(async err => {
    if (err.status !== 404) throw err
    await ask('/v1/threads', { id })
    return ask(thread(id) + '/prepare', step)
  })
}

const text = s => ({ type: 'text', text: s })
const words = parts => (parts ?? []).map(p => p.text ?? '').filter(Boolean).join('\n')
const blocks = content => (typeof content === 'string' ? [text(content)] : content)

const said = content => blocks(content).flatMap(p => (p.type === 'image' ? [{ type: 'media', media: 'image', mime: p.mimeType, data: p.data }] : p.text ? [text(p.text)] : []))

// told is an entry of pi's session in the daemon's form, nothing for what the model does
// not see.
function told(entry) {
  const { id } = entry
  if (entry.type === 'custom_message') return { id, role: 'user', kind: 'injected', parts: said(entry.content) }
  if (entry.type === 'compaction' || entry.type === 'branch_summary') return { id, role: 'user', kind: 'recap', parts: [text(entry.summary)] }
  const m = entry.message
  switch (m?.role) {
    case 'user':
      return { id, role: 'user', parts: said(m.content) }
    case 'assistant': {
      if (m.stopReason === 'error' || m.stopReason === 'aborted') return undefined
      const parts = m.content.flatMap(p => {
        if (p.type === 'toolCall') return [{ type: 'tool_call', call_id: p.id, tool: p.name, arguments: JSON.stringify(p.arguments ?? {}) }]
        const s = p.type === 'thinking' ? p.thinking : p.text
        return s ? [{ type: p.type === 'thinking' ? 'reasoning' : 'text', text: s }] : []
      })
      return parts.length > 0 ? { id, role: 'assistant', parts } : undefined
    }
    case 'toolResult': {
      const content = said(m.content)
      const part = { type: 'tool_result', call_id: m.toolCallId, tool: m.toolName, outcome: m.isError ? 'failure' : 'success', content: content.length > 0 ? content : [text('(no text)')] }
      return { id, role: 'tool', parts: [part] }
    }
  }
  return undefined
}

const own = entry => blocks(entry.type === 'custom_message' ? entry.content : (entry.message?.content ?? []))

// remade is what an entry says after an edit, in pi's form. Images and reasoning are pi's own.
function remade(entry, content) {
  const parts = content[0]?.type === 'tool_result' ? (content[0].content ?? []) : content
  const kept = own(entry)
  const images = kept.filter(p => p.type === 'image')
  const made = parts.flatMap(p => {
    if (p.type === 'text') return [text(p.text)]
    if (p.type === 'media') return images.splice(0, 1)
    const call = p.type === 'tool_call' && kept.find(k => k.type === 'toolCall' && k.id === p.call_id)
    return call ? [{ ...call, arguments: JSON.parse(p.arguments || '{}') }] : []
  })
  return [...kept.filter(p => p.type === 'thinking'), ...made]
}

const editable = entry => entry.type === 'custom_message' || entry.type === 'message'
const asks = entry => editable(entry) && entry.message?.role !== 'toolResult' && entry.message?.role !== 'assistant'

// wanted is what entries have to say after the edits: null for nothing; those that are not
// in it say what they say by themselves. A message that is put in stands at the end of the
// user's message before it: in an answer it would stand before its reasoning.
function wanted(entries, edits) {
  const byID = new Map(edits.map(e => [e.message_id ?? '', e]))
  const all = new Map()
  let place // the last of the user's messages that stays, or the first that goes
  const insert = list => {
    if (!list?.length) return
    if (!place) throw new Error('there is no message of the user for a summary')
    const more = list.flatMap(m => m.parts).flatMap(p => (p.type === 'tool_result' ? p.content : [p])).filter(p => p.text)
    const before = all.has(place.id) ? (all.get(place.id) ?? []) : own(place)
    all.set(place.id, [...before, ...more.map(p => text(p.text))])
  }
  for (const entry of entries.filter(editable)) {
    const e = byID.get(entry.id)
    insert(e?.insert_before)
    if (e?.omit) all.set(entry.id, null)
    else if (e?.content) all.set(entry.id, remade(entry, e.content))
    if (asks(entry) && (!e?.omit || !place)) place = entry
  }
  insert(byID.get('')?.insert_before)
  return all
}

// drafts are the context edits that make of what the model sees what is wanted.
function drafts(projected, want) {
  return projected.flatMap(({ sourceEntry: entry, messages }) => {
    if (!editable(entry) || !told(entry)) return []
    const content = want.has(entry.id) ? want.get(entry.id) : own(entry)
    const shown = messages.length === 0 ? null : blocks(messages[0].content)
    if (JSON.stringify(content) === JSON.stringify(shown)) return []
    return [{ type: 'context_edit', targetId: entry.id, replacement: content === null ? null : { content } }]
  })
}

// summed is a compaction of pi's of what the edits leave: all before the first entry
// from which on none goes, as one text.
function summed(entries, edits, tokensBefore) {
  const byID = new Map(edits.map(e => [e.message_id ?? '', e]))
  const heard = entries.filter(told)
  let at = heard.findLastIndex(e => byID.get(e.id)?.omit) + 1
  while (heard[at]?.message?.role === 'toolResult') at++
  if (at === 0 || at >= heard.length) throw new Error('there is nothing to take out')
  const flat = parts => words(parts.flatMap(p => (p.type === 'tool_result' ? (p.content ?? []) : p.type === 'text' ? [p] : [])))
  const texts = heard.slice(0, at + 1).flatMap((entry, i) => {
    const e = byID.get(entry.id)
    const m = told(entry)
    const before = (e?.insert_before ?? []).map(n => flat(n.parts))
    return i === at || e?.omit ? before : [...before, `[${m.role}] ${flat(e?.content ?? m.parts)}`]
  })
  return { summary: texts.filter(Boolean).join('\n\n'), firstKeptEntryId: heard[at].id, tokensBefore }
}

const tools = [
  { name: 'recall', description: 'Search what was removed from this conversation to make room.', key: 'query', says: 'Words to search for' },
  { name: 'read_artifact', description: 'Read in full what a placeholder of this conversation points to.', key: 'artifact_id', says: 'The id that the placeholder names' },
]

// threads are the names of a conversation's threads, the newest first. What was before a
// compaction of pi's is one text after it: the conversation goes on in a thread of its own.
function threads(ctx) {
  const session = 'pi.' + ctx.sessionManager.getSessionId()
  const compactions = ctx.sessionManager.getBranch().filter(e => e.type === 'compaction')
  return [session, ...compactions.map(e => session + '.' + e.id)].reverse()
}

export default function (pi) {
  // asked is what the daemon says to what the model would see next.
  async function asked(projected, ctx, more) {
    const offered = new Set(pi.getActiveTools())
    const base = {
      model: ctx.model?.id,
      system: [{ text: ctx.getSystemPrompt() }],
      tools: pi.getAllTools().filter(t => offered.has(t.name)).map(t => ({ name: t.name, description: t.description, schema: t.parameters })),
    }
    const size = { ...(ctx.model?.contextWindow > 0 && { window: ctx.model.contextWindow }), ...(ctx.model?.maxTokens > 0 && { output: ctx.model.maxTokens }) }
    const messages = projected.flatMap(p => (p.sourceEntry.type === 'compaction' && p.messages.length === 0 ? [] : (told(p.sourceEntry) ?? [])))
    const { edits } = await prepare(threads(ctx)[0], { ...size, ...more, base, messages, edits: true })
    return edits ?? []
  }

  // tried does what pi does without us where it fails.
  async function tried(ctx, act) {
    try {
      return await act()
    } catch (err) {
      if (ctx.hasUI) ctx.ui.notify('palimpsest: ' + err.message, 'warning')
      else console.error('palimpsest: ' + err.message)
      return undefined
    }
  }

  pi.on('turn_end', (event, ctx) =>
    tried(ctx, async () => {
      if (event.outcome !== 'completed') return undefined
      const projected = event.context.contextEntries
      const made = drafts(projected, wanted(projected.map(p => p.sourceEntry), await asked(projected, ctx)))
      return made.length > 0 ? { entries: [...event.entries, ...made] } : undefined
    }),
  )

  pi.on('session_before_compact', (event, ctx) =>
    tried(ctx, async () => {
      const projected = ctx.sessionManager.buildSessionProjection().entries
      const edits = await asked(projected, ctx, { force: true })
      return { compaction: summed(projected.map(p => p.sourceEntry), edits, event.preparation.tokensBefore) }
    }),
  )

  for (const t of tools) {
    pi.registerTool({
      name: t.name,
      label: t.name,
      description: t.description,
      parameters: { type: 'object', properties: { [t.key]: { type: 'string', description: t.says } }, required: [t.key] },
      async execute(id, params, _signal, _onUpdate, ctx) {
        const call = { type: 'tool_call', call_id: id, tool: t.name, arguments: JSON.stringify({ [t.key]: params[t.key] }) }
        const all = await Promise.allSettled(threads(ctx).map(at => ask(thread(at) + '/answer', call)))
        const answers = all.flatMap(a => (a.status === 'fulfilled' ? [a.value.parts[0]] : []))
        if (answers.length === 0) throw all[0].reason
        const found = answers.filter(a => a.outcome !== 'failure')
        return { content: [text((found.length > 0 ? found : answers.slice(0, 1)).map(a => words(a.content)).join('\n\n'))], details: {} }
      },
    })
  }
}
