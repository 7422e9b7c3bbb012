// Plays OpenClaw: node openclaw.mjs PLUGIN PARTS writes what the engine did of each call of
// the model. Each part is a turn of its own; its history is what was before it.
const [, , plugin, parts] = process.argv
const { default: module } = await import(plugin)
const logged = []
const tools = {}
let factory
module.register({
  logger: { warn: s => void logged.push(s) },
  registerContextEngine: (id, f) => void (factory = f),
  registerCompactionProvider: p => void (globalThis.provider = p),
  registerTool: (make, { name }) => void (tools[name] = make({ sessionId: 's1' })),
})
const history = []
let at = 1
const add = m => history.push({ ...m, timestamp: at++ })
const texts = content => [content].flat().map(p => (typeof p === 'string' ? p : (p.text ?? ''))).join('\n')
const steps = []
for (let i = 1; i <= Number(parts); i++) {
  const engine = await factory({})
  const before = JSON.stringify(history)
  const made = await engine.assemble({ sessionId: 's1', sessionKey: 'agent:main:main', messages: history, tokenBudget: 20_000, model: 'm', availableTools: new Set(['exec', 'recall', 'read_artifact']), prompt: 'next' })
  steps.push({
    own: JSON.stringify(history) === before, // OpenClaw's messages are as they were
    same: JSON.stringify(made.messages) === before,
    tokens: made.estimatedTokens,
    messages: made.messages.map(m => ({
      role: m.role,
      text: texts(m.content),
      first: m.content[0].type ?? 'text',
      calls: [m.content].flat().filter(p => p.type === 'toolCall').map(p => p.id),
      answers: m.toolCallId ?? '',
    })),
  })
  // The turn itself. What is asked is the same from the second one on, and so are the ids
  // of calls: a server of models that numbers them anew for each answer.
  const id = i % 7 === 0 ? 'call_0' : 'call_' + i
  add({ role: 'user', content: i === 1 ? 'Read all parts. Never change a file.' : [{ type: 'text', text: 'Go on.' }] })
  add({ role: 'assistant', stopReason: 'toolUse', content: [{ type: 'thinking', thinking: 'I go on.', thinkingSignature: 'seal' }, { type: 'toolCall', id, name: 'exec', arguments: { command: './part ' + i } }] })
  const text = i % 5 === 0 ? 'exit 1' : `part ${i}: the code is K${i * 7919}\n` + `line of part ${i}\n`.repeat(400)
  add({ role: 'toolResult', toolCallId: id, toolName: 'exec', isError: i % 5 === 0, content: [{ type: 'text', text }] })
  add({ role: 'assistant', stopReason: 'stop', content: [{ type: 'text', text: `Part ${i} is read.` }] })
  const { status } = await engine.commitTurn({ advancementKey: 'k' + i, messages: history.slice(-4) })
  if (status !== 'committed') throw new Error(status)
  await engine.dispose?.()
}
const recall = () => tools.recall.execute('c', { query: '"the code is K7919"' }).then(r => r.content[0].text, err => 'error: ' + err.message)
const recalled = await recall()
const { info, ...engine } = await factory({})
// OpenClaw may be told to send the end of a history alone.
const end = await engine.assemble({ sessionId: 's1', messages: history.slice(-6), tokenBudget: 20_000, model: 'm' })
const compacted = await engine.compact({ sessionId: 's1', sessionKey: 'agent:main:main', tokenBudget: 20_000, currentTokenCount: 9000, force: true })
// A turn that did not end: OpenClaw compacts it by itself, and asks for the summary.
globalThis.cut = history.map(m => ({ ...m, ...(m.toolCallId && { toolCallId: 'long' + m.toolCallId }), content: [m.content].flat().map(p => (p.type === 'toolCall' ? { ...p, id: 'long' + p.id } : p)) }))
globalThis.cut[0].content = [{ type: 'text', text: 'Read all parts at once. Never change a file.' }]
const ran = await engine.compact({ sessionId: 's2', sessionKey: 'agent:main:long', tokenBudget: 20_000, force: true })
const outside = await globalThis.provider.summarize({ messages: globalThis.cut }).catch(err => 'error: ' + err.message)
// OpenClaw compacts by itself: what is left goes on in another thread, and what was before
// is found all the same.
const left = [{ role: 'compactionSummary', summary: 'Parts were read.', timestamp: at }, ...history.slice(-4)]
const after = await engine.assemble({ sessionId: 's1', messages: left, tokenBudget: 20_000 })
console.log(JSON.stringify({ info, end: end.messages.map(m => texts(m.content)).join('\n'), steps, recalled, compacted, ran, outside, later: await recall(), after: after.messages.length, logged }))
