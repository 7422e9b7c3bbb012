// opencode's messages go to Palimpsest's daemon before each call of the model, and what
// comes back says which of them stay, which go and what stands in their place. All
// decisions are the daemon's; opencode's own history is not changed. Whatever fails, the
// messages go to the model as opencode has them.
import { answer, byID, prepare, said, text, tools, words } from './palimpsest/daemon.js'

// idOf names the thread of a conversation. What was before a compaction of opencode's own
// is no part of it any more: it goes on in a thread of its own.
function idOf(session, messages) {
  const since = messages.findLast(m => m.parts.some(p => p.type === 'compaction'))?.info.id
  return 'opencode.' + session + (since ? '.' + since : '')
}

function media(f) {
  const data = /^data:[^,]*;base64,(.*)$/s.exec(f.url)?.[1]
  const kind = f.mime.startsWith('image/') ? 'image' : f.mime === 'application/pdf' ? 'document' : 'file'
  return { type: 'media', media: kind, mime: f.mime, ...(f.filename && { name: f.filename }), ...(data ? { data } : { url: f.url }) }
}

// shown are the files that opencode sends as such; of others it has put the text beside them.
const shown = p => p.type === 'file' && p.mime !== 'text/plain' && p.mime !== 'application/x-directory'

function result(p) {
  const { state } = p
  const output = state.status === 'completed' ? state.output : state.status === 'error' ? state.error : 'The call was interrupted.'
  const content = [text(output || '(no text)'), ...(state.attachments ?? []).map(media)]
  return { id: p.id, role: 'tool', parts: [{ type: 'tool_result', call_id: p.callID, outcome: state.status === 'completed' ? 'success' : 'failure', content }] }
}

// told is a message of opencode's in the daemon's form: an answer comes with the results
// of its calls. What opencode does not send either is not told.
function told({ info, parts }) {
  if (info.role === 'user') {
    const heard = parts.filter(p => p.type === 'text' && !p.ignored)
    const all = parts.flatMap(p => (shown(p) ? [media(p)] : heard.includes(p) && p.text !== '' ? [text(p.text)] : p.type === 'compaction' ? [text('What did we do so far?')] : []))
    return all.length === 0 ? [] : [{ id: info.id, role: 'user', ...(heard.every(p => p.synthetic) && { kind: 'injected' }), parts: all }]
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
  const output = words(content)
  const attachments = content.some(c => c.type === 'media') ? p.state.attachments : undefined
  if (p.state.status !== 'completed') return { ...p, state: { ...p.state, error: output } }
  return { ...p, state: { ...p.state, output, attachments, time: { ...p.state.time, compacted: undefined } } }
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
  const part = s => ({ id: 'prt_' + id, sessionID: like.sessionID, messageID: id, type: 'text', text: s, synthetic: true })
  return { info: { ...like, id }, parts: said(m).map(part) }
}

// edited are the messages after the edits, those that changed as copies: opencode holds
// the others elsewhere too.
function edited(messages, edits) {
  const all = byID(edits, messages.flatMap(m => [m.info.id, ...m.parts.map(p => p.id)]))
  const like = messages.find(m => m.info.role === 'user').info
  const out = []
  const insert = list => list?.forEach(m => out.push(built(m, `msg_palimpsest_${out.length}`, like)))
  for (const m of messages) {
    const e = all.get(m.info.id)
    insert(e?.insert_before)
    for (const p of m.parts) if (p.type === 'tool') insert(all.get(p.id)?.insert_before)
    if (e?.omit) continue
    const parts = (e?.content ? remade(m, e.content) : m.parts).flatMap(p => {
      const r = p.type === 'tool' ? all.get(p.id) : undefined
      return r?.omit ? [] : r?.content ? [withResult(p, r.content[0]?.content ?? [])] : [p]
    })
    out.push(parts.every((p, i) => p === m.parts[i]) && parts.length === m.parts.length ? m : { info: m.info, parts })
  }
  insert(all.get('')?.insert_before)
  return out
}

// limits are those of a model, in tokens; of one that opencode does not know either the
// daemon takes its own.
async function limits(client, model, known) {
  const name = model.providerID + '/' + model.modelID
  if (!known.has(name)) {
    const { data } = await client.config.providers()
    if (!data?.providers?.length) return {} // it has not read them yet
    const limit = data.providers.find(p => p.id === model.providerID)?.models[model.modelID]?.limit
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
        const step = { ...(await limits(client, last.info.model, known)), base, messages: messages.flatMap(told) }
        threads.set(session, idOf(session, messages))
        const edits = await prepare(threads.get(session), step)
        compacting(false)
        if (edits.length > 0) messages.splice(0, messages.length, ...edited(messages, edits))
      } catch (err) {
        compacting(true)
        await client.app.log({ body: { service: 'palimpsest', level: 'warn', message: 'palimpsest: ' + err.message } }).catch(() => {})
      }
    },
    tool: Object.fromEntries(
      tools.map(t => [
        t.name,
        {
          description: t.description,
          args: t.schema.properties,
          execute: (args, { sessionID, callID }) => answer([threads.get(sessionID) ?? idOf(sessionID, [])], t, callID, args),
        },
      ]),
    ),
  }
}

export default { id: 'palimpsest', server }
