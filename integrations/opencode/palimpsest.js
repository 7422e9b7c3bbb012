// opencode's messages go to Palimpsest's daemon before each call of the model, and what
// comes back says which of them stay, which go and what stands in their place. All
// decisions are the daemon's; opencode's own history is not changed. Whatever fails, the
// messages go to the model as opencode has them.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const PROGRAM = 'palimpsest'
// A daemon that must be started reads its store first; one that cannot start is not
// asked for at each call.
const STARTING = 8000
const AGAIN = 30_000
const ANSWER = 30_000

let running // where the daemon is
let tried = -AGAIN

async function daemon() {
  if (performance.now() - tried < AGAIN) throw new Error('the daemon did not start before')
  tried = performance.now()
  const { stdout } = await promisify(execFile)(PROGRAM, ['daemon'], { timeout: STARTING })
  tried = -AGAIN
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

// idOf names the thread of a conversation. What was before a compaction of opencode's own
// is no part of it any more: it goes on in a thread of its own.
function idOf(session, messages) {
  const since = messages.findLast(m => m.parts.some(p => p.type === 'compaction'))?.info.id
  return 'opencode.' + session + (since ? '.' + since : '')
}

const text = s => ({ type: 'text', text: s })
const words = parts => (parts ?? []).map(p => p.text ?? '').filter(Boolean).join('\n')

function media(f) {
  const data = /^data:[^,]*;base64,(.*)$/s.exec(f.url)?.[1]
  const kind = f.mime.startsWith('image/') ? 'image' : f.mime === 'application/pdf' ? 'document' : 'file'
  return { type: 'media', media: kind, mime: f.mime, ...(f.filename && { name: f.filename }), ...(data ? { data } : { url: f.url }) }
}

// shown are the files that opencode sends as such; of others it has put the text beside them.
const shown = p => p.type === 'file' && p.mime !== 'text/plain' && p.mime !== 'application/x-directory'

function result(p) {
  const { state } = p
  const said = state.status === 'completed' ? state.output : state.status === 'error' ? state.error : 'The call was interrupted.'
  const content = [text(said || '(no text)'), ...(state.attachments ?? []).map(media)]
  return { id: p.id, role: 'tool', parts: [{ type: 'tool_result', call_id: p.callID, outcome: state.status === 'completed' ? 'success' : 'failure', content }] }
}

// told is a message of opencode's in the daemon's form: an answer comes with the results
// of its calls. What opencode does not send either is not told.
function told({ info, parts }) {
  if (info.role === 'user') {
    const said = parts.filter(p => p.type === 'text' && !p.ignored)
    const all = parts.flatMap(p => (shown(p) ? [media(p)] : said.includes(p) && p.text !== '' ? [text(p.text)] : p.type === 'compaction' ? [text('What did we do so far?')] : []))
    return all.length === 0 ? [] : [{ id: info.id, role: 'user', ...(said.every(p => p.synthetic) && { kind: 'injected' }), parts: all }]
  }
  if (info.error && info.error.name !== 'MessageAbortedError') return []
  const all = parts.flatMap(p => {
    if (p.type === 'tool') return [{ type: 'tool_call', call_id: p.callID, tool: p.tool, arguments: JSON.stringify(p.state.input ?? {}) }]
    return (p.type === 'text' || p.type === 'reasoning') && p.text !== '' ? [{ type: p.type, text: p.text }] : []
  })
  if (all.length === 0) return []
  return [{ id: info.id, role: 'assistant', ...(info.summary && { kind: 'recap' }), parts: all }, ...parts.filter(p => p.type === 'tool').map(result)]
}

// withResult is a tool's part with another result.
function withResult(p, content) {
  const said = words(content)
  const attachments = content.some(c => c.type === 'media') ? p.state.attachments : undefined
  if (p.state.status !== 'completed') return { ...p, state: { ...p.state, error: said } }
  return { ...p, state: { ...p.state, output: said, attachments, time: { ...p.state.time, compacted: undefined } } }
}

// remade are the parts of a message that says something else now. Files and reasoning
// are opencode's own, and calls keep their results.
function remade(m, content) {
  const part = (i, p) => ({ id: `prt_${m.info.id}_${i}`, sessionID: m.info.sessionID, messageID: m.info.id, ...p })
  const files = m.parts.filter(shown)
  const calls = new Map(m.parts.filter(p => p.type === 'tool').map(p => [p.callID, p]))
  const made = content.flatMap((c, i) => {
    if (c.type === 'text') return [part(i, { type: 'text', text: c.text, synthetic: true })]
    if (c.type === 'media') return files.splice(0, 1)
    const own = c.type === 'tool_call' && calls.get(c.call_id)
    return own ? [{ ...own, state: { ...own.state, input: JSON.parse(c.arguments || '{}') } }] : []
  })
  return [...m.parts.filter(p => p.type === 'step-start' || p.type === 'reasoning'), ...made]
}

// built is a message of the daemon's as opencode has them, in the user's name: joined to
// an answer it would stand before its reasoning.
function built(m, id, like) {
  const part = said => ({ id: 'prt_' + id, sessionID: like.sessionID, messageID: id, type: 'text', text: said, synthetic: true })
  const parts = m.parts.map(p => (p.type === 'tool_result' ? words(p.content) : p.type === 'text' ? p.text : '')).filter(Boolean).map(part)
  return { info: { ...like, id }, parts }
}

// edited are the messages after the edits, those that changed as copies: opencode holds
// the others elsewhere too.
function edited(messages, edits) {
  const byID = new Map(edits.map(e => [e.message_id ?? '', e]))
  const like = messages.find(m => m.info.role === 'user').info
  const out = []
  const insert = list => list?.forEach(m => out.push(built(m, `msg_palimpsest_${out.length}`, like)))
  for (const m of messages) {
    const e = byID.get(m.info.id)
    insert(e?.insert_before)
    for (const p of m.parts) if (p.type === 'tool') insert(byID.get(p.id)?.insert_before)
    if (e?.omit) continue
    const parts = (e?.content ? remade(m, e.content) : m.parts).flatMap(p => {
      const r = p.type === 'tool' ? byID.get(p.id) : undefined
      return r?.omit ? [] : r?.content ? [withResult(p, r.content[0]?.content ?? [])] : [p]
    })
    out.push(parts.every((p, i) => p === m.parts[i]) && parts.length === m.parts.length ? m : { info: m.info, parts })
  }
  insert(byID.get('')?.insert_before)
  return out
}

const tools = [
  { name: 'recall', description: 'Search what was removed from this conversation to make room.', key: 'query', says: 'Words to search for' },
  { name: 'read_artifact', description: 'Read in full what a placeholder of this conversation points to.', key: 'artifact_id', says: 'The id that the placeholder names' },
]

function answering(t, threads) {
  return {
    description: t.description,
    args: { [t.key]: { type: 'string', description: t.says } },
    async execute(args, { sessionID, callID }) {
      const call = { type: 'tool_call', call_id: callID ?? t.name, tool: t.name, arguments: JSON.stringify({ [t.key]: args[t.key] }) }
      const said = await ask(thread(threads.get(sessionID) ?? idOf(sessionID, [])) + '/answer', call)
      return words(said.parts[0]?.content)
    },
  }
}

// limits are those of a model, in tokens; of one that opencode does not know either the
// daemon takes its own.
async function limits(client, model, known) {
  const name = model.providerID + '/' + model.modelID
  if (!known.has(name)) {
    const { data } = await client.config.providers()
    const limit = data?.providers.find(p => p.id === model.providerID)?.models[model.modelID]?.limit
    known.set(name, { ...(limit?.context > 0 && { window: limit.context }), ...(limit?.output > 0 && { output: Math.min(limit.output, 32_000) }) })
  }
  return known.get(name)
}

async function server({ client }) {
  const around = { system: new Map(), tools: new Map() } // of sessions, and of all
  const known = new Map() // limits of models
  const threads = new Map() // of sessions
  let config
  let own // what opencode's user has set for its compaction

  // compacting turns opencode's own compaction on, for as long as the daemon does not
  // answer, and off.
  const compacting = on => {
    if (config) config.compaction = on ? own : { ...own, auto: false, prune: false }
  }

  return {
    async config(live) {
      config = live
      own = live.compaction
    },
    async 'tool.definition'({ toolID }, { description, jsonSchema }) {
      around.tools.set(toolID, { name: toolID, description, ...(jsonSchema && { schema: jsonSchema }) })
    },
    async 'experimental.chat.system.transform'({ sessionID }, { system }) {
      // A title is asked for in the same session, with less.
      const size = list => list.reduce((n, s) => n + s.text.length, 0)
      const all = system.map(s => ({ text: s }))
      if (sessionID && size(all) > size(around.system.get(sessionID) ?? [])) around.system.set(sessionID, all)
    },
    async 'experimental.chat.messages.transform'(_, output) {
      try {
        const messages = output.messages
        const last = messages.findLast(m => m.info.role === 'user')
        if (!last) return
        const session = last.info.sessionID
        const base = { model: last.info.model.modelID, system: around.system.get(session) ?? [], tools: [...around.tools.values()] }
        const step = { ...(await limits(client, last.info.model, known)), base, messages: messages.flatMap(told), edits: true }
        threads.set(session, idOf(session, messages))
        const { edits } = await prepare(threads.get(session), step)
        compacting(false)
        if (edits?.length) messages.splice(0, messages.length, ...edited(messages, edits))
      } catch (err) {
        compacting(true)
        await client.app.log({ body: { service: 'palimpsest', level: 'warn', message: 'palimpsest: ' + err.message } }).catch(() => {})
      }
    },
    tool: Object.fromEntries(tools.map(t => [t.name, answering(t, threads)])),
  }
}

export default { id: 'palimpsest', server }
