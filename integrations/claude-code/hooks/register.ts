// Claude Code's compactions are made by Palimpsest's daemon: the messages go there, and
// what comes back says which of them stay, which go and what stands in their place. All
// decisions are the daemon's. Whatever fails, Claude Code compacts as it does without us.
import type { Register, SessionMessage } from 'claude-code'

const PROGRAM = 'palimpsest'
// A daemon that must be started reads its store first.
const STARTING = 8000

type Part = { type: string; text?: string; call_id?: string; tool?: string; arguments?: string; outcome?: string; content?: Part[] }
type Message = { id?: string; role: string; parts: Part[] }
type Edit = { message_id?: string; omit?: boolean; content?: Part[]; insert_before?: Message[] }
type Prepared = { edits?: Edit[] }

// rows are the engine's messages that make one of ours: an answer comes in several, with
// its reasoning in one that has no text.
type Unit = { message?: Message; rows: SessionMessage[] }

let socket = ''
// The engine gives messages other handles after a compaction. So a call is known by its
// own id, and a text by being there: for each text that we left in a conversation the ids
// of its messages, in order; of a summary it is ''. The plugin's store has it, so that it
// holds for a session that is resumed.
type Known = Map<string, string[]>
const MOST_KNOWN = 20 // conversations
// Beside them stand the texts of a compaction that was made ahead of time. The engine puts it
// in force later without a word, or never.
const AHEAD = '#ahead'

async function remember($: any, at: string, texts: Known) {
  await $.store.delete(at) // so that it becomes the newest
  await $.store.set(at, [...texts])
  for (const old of (await $.store.keys()).slice(0, -MOST_KNOWN)) await $.store.delete(old)
}

// known are the texts of the compaction that a conversation shows: of the one made ahead of
// time where its summaries stand there.
async function known($: any, at: string, messages: readonly SessionMessage[]): Promise<Known> {
  const said = new Set(messages.map(m => m.text))
  const ahead = (await $.store.get(at + AHEAD)) as [string, string[]][] | undefined
  if (ahead?.every(([text, ids]) => said.has(text) || !ids.includes(''))) return new Map(ahead)
  return new Map((await $.store.get(at)) as [string, string[]][] | undefined)
}

async function daemon($: any): Promise<string> {
  const { exitCode, stdout, stderr } = await $.process.run([PROGRAM, 'daemon'], { timeoutMs: STARTING })
  if (exitCode !== 0) throw new Error(stderr.trim())
  return JSON.parse(stdout).socket
}

// ask asks the daemon; one that has ended since is started again.
async function ask($: any, path: string, body: unknown): Promise<any> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  let answer
  try {
    if (socket === '') throw new Error('not known yet')
    answer = await $.http.fetch('http://localhost' + path, { ...init, socketPath: socket })
  } catch {
    socket = await daemon($)
    answer = await $.http.fetch('http://localhost' + path, { ...init, socketPath: socket })
  }
  const said = () => (answer.text === '' ? {} : JSON.parse(answer.text))
  if (answer.ok) return said()
  let detail = `the daemon answers ${answer.status}`
  try {
    detail = said().detail ?? detail
  } catch {} // a daemon that lacks a route says so in plain text
  throw Object.assign(new Error(detail), { status: answer.status })
}

const text = (s: string): Part => ({ type: 'text', text: s })

function assistant(id: string, parts: Part[]): Message {
  const call = parts.find(p => p.call_id)?.call_id
  return { id: call ? 'call:' + call : id, role: 'assistant', parts }
}

// units are the messages of the conversation as the daemon takes them.
function units(messages: readonly SessionMessage[], texts: Known): Unit[] {
  const all: Unit[] = []
  const left = new Map([...texts].map(([said, ids]) => [said, [...ids]]))
  for (const m of messages) {
    const id = left.get(m.text)?.shift() ?? m.handle!
    if (id === '') continue // a summary of ours
    const last = all[all.length - 1]
    const parts = m.role !== 'assistant' ? [] : [
      ...(m.text === '' ? [] : [text(m.text)]),
      ...m.toolUses.map(u => ({ type: 'tool_call', call_id: u.tool_use_id, tool: u.tool, arguments: JSON.stringify(u.input ?? {}) })),
    ]
    if (m.role === 'assistant' && last?.rows[0]?.role === 'assistant') {
      last.rows.push(m)
      if (parts.length > 0) last.message = assistant(last.message?.id ?? id, [...(last.message?.parts ?? []), ...parts])
    } else if (m.role === 'assistant') {
      all.push({ rows: [m], message: parts.length > 0 ? assistant(id, parts) : undefined })
    } else if (m.toolResults?.length === 1 && m.text === '') {
      const r = m.toolResults[0]!
      all.push({ rows: [m], message: { id: 'result:' + r.tool_use_id, role: 'tool', parts: [{ type: 'tool_result', call_id: r.tool_use_id, outcome: r.isError ? 'failure' : 'success', content: [text(r.text || '(no text)')] }] } })
    } else {
      // What we cannot say in our own form (a picture) stays as it is.
      const plain = m.text !== '' && !m.toolResults?.length
      all.push({ rows: [m], message: plain ? { id, role: 'user', parts: [text(m.text)] } : undefined })
    }
  }
  return all
}

const words = (parts: Part[] | undefined): string => (parts ?? []).map(p => p.text ?? '').join('\n')

// built is a message of the daemon's as the engine builds it. What only says something
// (a summary) is the user's: joined to an answer it would stand before its reasoning.
function built(m: Message): SessionMessage {
  const calls = m.parts.filter(p => p.type === 'tool_call')
  const results = m.parts.filter(p => p.type === 'tool_result')
  return {
    role: calls.length > 0 || (m.id && m.role === 'assistant') ? 'assistant' : 'user',
    text: m.parts.filter(p => p.type === 'text').map(p => p.text).join('\n\n'),
    toolUses: calls.map(p => ({ tool_use_id: p.call_id!, tool: p.tool!, input: JSON.parse(p.arguments || '{}') })),
    ...(results.length > 0 && { toolResults: results.map(p => ({ tool_use_id: p.call_id!, text: words(p.content), isError: p.outcome === 'failure' })) }),
  } as SessionMessage
}

// edited is the conversation after the edits.
function edited(all: Unit[], edits: Edit[], texts: Known): SessionMessage[] {
  // What is put in before a message that the engine has no longer comes before the next one
  // that has an edit, and where the engine has lost the beginning, first.
  const has = new Set(all.map(u => u.message?.id))
  const byID = new Map<string, Edit>()
  const first: Message[] = []
  let waiting: Message[] = []
  for (const { message_id: id = '', insert_before: before = [], ...e } of edits) {
    const known = id === '' || has.has(id)
    ;(known || byID.size > 0 ? waiting : first).push(...before)
    if (!known) continue
    byID.set(id, { ...e, insert_before: waiting })
    waiting = []
  }
  byID.set('', { insert_before: [...waiting, ...(byID.get('')?.insert_before ?? [])] })
  const out: SessionMessage[] = []
  const put = (id: string, m: SessionMessage) => {
    if (m.text !== '') texts.set(m.text, [...(texts.get(m.text) ?? []), id])
    out.push(m)
  }
  const insert = (list: Message[] | undefined) => list?.forEach(m => put('', built(m)))
  insert(first)
  for (const u of all) {
    const e = byID.get(u.message?.id ?? '-')
    insert(e?.insert_before)
    if (e?.omit) continue
    // An answer that holds reasoning stands whole or not at all.
    const sealed = u.rows.some(m => m.role === 'assistant' && m.text === '' && m.toolUses.length === 0)
    const id = u.message?.id ?? ''
    // A result that the engine keeps goes on to name its old place, to which a resumed
    // session would go back: it is built anew, where it is text.
    const result = u.message?.role === 'tool' && u.rows[0]!.toolResults![0]!.text !== '' ? u.message.parts : undefined
    const parts = sealed ? undefined : (e?.content ?? result)
    if (parts) put(id, built({ ...u.message!, parts }))
    else u.rows.forEach(m => (id ? put(id, m) : out.push(m)))
  }
  insert(byID.get('')?.insert_before)
  if (out.length === 0) throw new Error('the daemon leaves nothing')
  return out
}

const thread = (session: string, agent?: string) => '/v1/threads/' + encodeURIComponent('claude-code.' + session + (agent ? '.' + agent : ''))

const tools = [
  { name: 'recall', description: 'Search what a compaction removed from this conversation.', key: 'query', says: 'Words to search for' },
  { name: 'read_artifact', description: 'Read in full what a placeholder of this conversation points to.', key: 'artifact_id', says: 'The id that the placeholder names' },
]

export const register: Register = on => {
  on('session.start', async ($, e, next) => {
    const started = await next(e)
    for (const t of tools) {
      const inputSchema = { type: 'object', properties: { [t.key]: { type: 'string', description: t.says } }, required: [t.key] }
      await $.tool.register({ name: t.name, description: t.description, inputSchema, isDeferred: false })
    }
    return started
  })

  on('session.compact', async ($, e, next) => {
    const at = thread(await $.session.id(), e.agentId)
    const ahead = e.trigger === 'precompute'
    try {
      const all = units(e.messages, await known($, at, e.messages))
      const { context } = await $.session.usage()
      const named = new Set(all.flatMap(u => u.message?.parts ?? []).flatMap(p => (p.type === 'tool_call' ? [p.tool!] : [])))
      const step = { messages: all.flatMap(u => u.message ?? []), base: { tools: [...named].map(name => ({ name })) }, window: context.window, force: true, instructions: e.instructions, edits: true }
      const made: Prepared = await ask($, at + '/prepare', step).catch(async err => {
        if (err.status !== 404) throw err
        await ask($, '/v1/threads', { id: decodeURIComponent(at.slice('/v1/threads/'.length)) })
        return ask($, at + '/prepare', step)
      })
      if (!made.edits?.length) throw new Error('there is nothing to take out')
      const texts: Known = new Map()
      const messages = edited(all, made.edits, texts)
      await remember($, ahead ? at + AHEAD : at, texts)
      if (!ahead) await $.store.delete(at + AHEAD)
      return { messages }
    } catch (err) {
      $.ui.log('palimpsest: ' + (err as Error).message, { to: 'debug' })
      await $.store.delete(at + AHEAD)
      if (!ahead) await $.store.delete(at) // the engine's own compaction leaves nothing of ours
      return next(e)
    }
  })

  // The command hook beside this module adds a record to the engine's own compaction. Ours
  // has it, and the hook cannot tell whose it was.
  on('session.append', { door: 'hook-context' }, async ($, e, next) => {
    const at = thread(await $.session.id(), e.agentId)
    const ours = ((await $.store.get(at)) ?? (await $.store.get(at + AHEAD))) !== undefined
    const record = (s: string) => s.includes('From the log of this session, for the time before the compaction.')
    const content = e.message.content.map(b => (ours && b.type === 'text' && record(String(b.text)) ? { ...b, text: 'The messages above say where the work stands.' } : b))
    return next({ ...e, message: { ...e.message, content } })
  })

  on('tool.call', async ($, e, next) => {
    const t = tools.find(t => e.tool === 'mcp__palimpsest__' + t.name)
    if (!t) return next(e)
    try {
      const call = { type: 'tool_call', call_id: e.tool_use_id ?? t.name, tool: t.name, arguments: JSON.stringify({ [t.key]: (e as any)[t.key] }) }
      const said: Message = await ask($, thread(await $.session.id(), (e as any).agentId) + '/answer', call)
      return { result: words(said.parts[0]?.content) }
    } catch (err) {
      return { deny: (err as Error).message }
    }
  })
}
