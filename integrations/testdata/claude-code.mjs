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
      const answer = await fetch(url.replace('http://localhost', daemon), { method, headers: { ...headers, authorization: 'Bearer ' + key }, body })
      return { ok: answer.ok, status: answer.status, text: await answer.text() }
    },
  },
  session: { id: async () => 's1', usage: async () => ({ context: { window: 20_000 } }) },
  store: { get: async k => kept.get(k), set: async (k, v) => void kept.set(k, v), delete: async k => void kept.delete(k), keys: async () => [...kept.keys()] },
  tool: { register: async t => void registered.push(t.name) },
  ui: { log: s => void logged.push(s) },
}
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
console.log(JSON.stringify({ registered, own: JSON.stringify(messages) === before, itself: compacted === 'its own', messages: compacted.messages ?? [], recalled, logged }))
