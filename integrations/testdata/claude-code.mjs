// Plays Claude Code: node claude-code.mjs PLUGIN PARTS writes what the plugin made of a
// compaction of so many parts.
import { execFile } from 'node:child_process'
const [, , plugin, parts] = process.argv
const { register } = await import(plugin)
const hooks = {}
const registered = []
const logged = []
const kept = new Map()
let at
let session = 's1'
let sent = [] // with the last request
register((name, ...rest) => void (hooks[name] = rest.at(-1)))
const $ = {
  process: {
    run: ([program, ...args]) => new Promise((resolve, reject) => execFile(program, args, (err, stdout, stderr) => {
      if (err && typeof err.code !== 'number') return reject(err)
      at = err ? undefined : stdout
      resolve({ exitCode: err ? err.code : 0, stdout, stderr })
    })),
  },
  // It reaches for a socket; here the daemon has an address.
  http: {
    async fetch(url, { method, headers, body }) {
      const { url: daemon, key } = JSON.parse(at)
      sent = JSON.parse(body).messages ?? []
      const answer = await fetch(url.replace('http://localhost', daemon), { method, headers: { ...headers, authorization: 'Bearer ' + key }, body })
      return { ok: answer.ok, status: answer.status, text: await answer.text() }
    },
  },
  session: { id: async () => session, usage: async () => ({ context: { window: 20_000 } }) },
  store: { get: async k => kept.get(k), set: async (k, v) => void kept.set(k, v), delete: async k => void kept.delete(k), keys: async () => [...kept.keys()] },
  tool: { register: async t => void registered.push(t.name) },
  ui: { log: s => void logged.push(s) },
}
const fetched = $.http.fetch
await hooks['session.start']($, {}, async () => 'started')
let handle = 0
const say = m => ({ toolUses: [], toolResults: [], text: '', handle: 'h' + handle++, ...m })
const messages = [say({ role: 'user', text: 'Read all parts. Never change a file.' })]
for (let i = 1; i <= Number(parts); i++) {
  messages.push(say({ role: 'assistant', toolUses: [{ tool_use_id: 'call_' + i, tool: 'Bash', input: { command: './part ' + i } }] }))
  messages.push(say({ role: 'user', toolResults: [{ tool_use_id: 'call_' + i, text: `part ${i}: the code is K${i * 7919}\n` + `line of part ${i}\n`.repeat(400), isError: i % 5 === 0 }] }))
}
const before = JSON.stringify(messages)
const compacted = await hooks['session.compact']($, { messages }, async () => 'its own')
const call = { tool: 'mcp__palimpsest__recall', tool_use_id: 'c', query: '"the code is K7919"' }
const recalled = await hooks['tool.call']($, call, async () => ({}))
// What was made ahead of time is in force only if the conversation shows it. Summaries are the
// daemon's own, and are not told to it.
const ahead = []
const loggedThen = [...logged]
const rounds = messages => messages.map(m => ({ ...m, handle: 'h' + handle++ }))
const summaries = list => list.filter(m => m.role === 'user' && m.text.includes('Context Summary')).map(m => m.text)
if (compacted.messages) {
  const first = rounds(compacted.messages)
  for (let i = 1; i <= 10; i++) {
    first.push(say({ role: 'assistant', toolUses: [{ tool_use_id: 'more_' + i, tool: 'Bash', input: { command: './more ' + i } }] }))
    first.push(say({ role: 'user', toolResults: [{ tool_use_id: 'more_' + i, text: `line of more ${i}\n`.repeat(400), isError: false }] }))
  }
  const compact = async (messages, trigger) => (await hooks['session.compact']($, { messages, trigger }, async () => ({}))).messages ?? []
  const state = new Map(kept)
  for (const name of ['used', 'not used', 'failed']) {
    kept.clear()
    state.forEach((v, k) => kept.set(k, v))
    if (name === 'failed') $.http.fetch = async () => ({ ok: false, status: 503, text: '{"detail":"the disk is full"}' })
    const made = await compact(first, 'precompute')
    $.http.fetch = fetched
    const shown = name === 'used' ? rounds(made) : first
    await compact(shown, 'auto')
    const own = summaries(shown)
    ahead.push({ name, summaries: own.length, told: sent.filter(m => own.includes(m.parts[0].text)).length, anew: !own.every(s => summaries(first).includes(s)) })
  }
}
// Claude Code has lost all but the end, before which the summary stood.
session = 's2'
kept.clear()
const gone = { message_id: 'gone', insert_before: [{ role: 'user', parts: [{ type: 'text', text: 'Context Summary' }] }] }
$.http.fetch = async () => ({ ok: true, text: JSON.stringify({ version: 1, edits: [{ message_id: 'begin', omit: true }, gone] }) })
const end = (await hooks['session.compact']($, { messages: messages.slice(-4) }, async () => ({}))).messages ?? []
console.log(JSON.stringify({ end: end.map(m => m.text).join('\n'), ahead, registered, own: JSON.stringify(messages) === before, itself: compacted === 'its own', messages: compacted.messages ?? [], recalled, logged: loggedThen }))
