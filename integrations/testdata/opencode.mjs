// Plays opencode: node opencode.mjs PLUGIN PARTS writes what the plugin did of each step.
const [, , plugin, parts] = process.argv
const { default: module } = await import(plugin)
const logged = []
let asked = 0 // at first opencode knows no providers
const client = {
  app: { log: async ({ body }) => void logged.push(body.message) },
  config: { providers: async () => (asked++ === 0 ? {} : { data: { providers: [{ id: 'p', models: { m: { limit: { context: 20_000, output: 2000 } } } }] } }) },
}
const hooks = await module.server({ client })
const config = { compaction: { reserved: 7 } }
await hooks.config(config)
await hooks['tool.definition']({ toolID: 'bash' }, { description: 'Runs a command.' })

const at = { sessionID: 'ses_1' }
const info = (id, role) => ({ ...at, id, role, time: { created: 1 }, ...(role === 'user' ? { agent: 'build', model: { providerID: 'p', modelID: 'm' } } : { providerID: 'p', modelID: 'm', tokens: {} }) })
const messages = [{ info: info('msg_000', 'user'), parts: [{ ...at, id: 'prt_u', type: 'text', text: 'Read all parts. Never change a file.' }] }]
const steps = []
for (let i = 1; i <= Number(parts); i++) {
  const id = 'msg_' + String(i).padStart(3, '0')
  const state = { status: 'completed', input: { command: './part ' + i }, output: `part ${i}: the code is K${i * 7919}\n` + `line of part ${i}\n`.repeat(400), title: '', metadata: {}, time: { start: 1, end: 2 } }
  if (i % 5 === 0) Object.assign(state, { status: 'error', error: 'exit 1', output: undefined })
  messages.push({
    info: info(id, 'assistant'),
    parts: [
      { ...at, id: id + 's', type: 'step-start' },
      { ...at, id: id + 'r', type: 'reasoning', text: 'I go on.', metadata: { anthropic: { signature: 'seal' } } },
      { ...at, id: id + 't', type: 'text', text: 'Part ' + i },
      { ...at, id: id + 'c', type: 'tool', callID: 'call_' + i, tool: 'bash', state },
    ],
  })
  const before = JSON.stringify(messages)
  const output = { messages: [...messages] }
  await hooks['experimental.chat.messages.transform']({}, output)
  steps.push({
    own: JSON.stringify(messages) === before, // opencode's messages are as they were
    auto: config.compaction.auto ?? true,
    same: JSON.stringify(output.messages) === before,
    messages: output.messages.map(m => ({
      id: m.info.id,
      role: m.info.role,
      text: m.parts.filter(p => p.type === 'text').map(p => p.text).join('\n'),
      reasoning: m.parts.some(p => p.type === 'reasoning'),
      results: m.parts.filter(p => p.type === 'tool').map(p => p.state.output ?? p.state.error),
    })),
  })
}
const recalled = await hooks.tool.recall.execute({ query: '"the code is K7919"' }, { sessionID: 'ses_1' }).catch(err => 'error: ' + err.message)
console.log(JSON.stringify({ steps, recalled, logged, asked }))
