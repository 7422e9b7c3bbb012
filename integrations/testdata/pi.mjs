// Plays pi: node pi.mjs PLUGIN PARTS writes what the extension did of each turn.
const [, , plugin, parts] = process.argv
const { default: extension } = await import(plugin)
const handlers = {}
const tools = {}
extension({
  on: (event, f) => void (handlers[event] = f),
  registerTool: t => void (tools[t.name] = t),
  getActiveTools: () => ['bash'],
  getAllTools: () => [{ name: 'bash', description: 'Runs a command.', parameters: { type: 'object' } }],
})
const entries = []
const edits = new Map()
const logged = []
const ctx = {
  hasUI: true,
  ui: { notify: s => void logged.push(s) },
  model: { id: 'm', contextWindow: 20_000, maxTokens: 2000 },
  getSystemPrompt: () => 'You read parts.',
  sessionManager: { getSessionId: () => '0199', getBranch: () => entries, buildSessionProjection: () => ({ entries: entries.map(e => ({ sourceEntry: e, messages: [e.message ?? {}] })) }) },
}
const add = message => entries.push({ type: 'message', id: 'e' + entries.length, message })
entries.push({ type: 'model_change', id: 'model' })
add({ role: 'user', content: 'Read all parts. Never change a file.' })
const turns = []
for (let i = 1; i <= Number(parts); i++) {
  const id = 'call_' + i
  add({ role: 'assistant', stopReason: 'toolUse', content: [{ type: 'thinking', thinking: 'I go on.', thinkingSignature: 'seal' }, { type: 'text', text: 'Part ' + i }, { type: 'toolCall', id, name: 'bash', arguments: { command: './part ' + i } }] })
  const text = i % 5 === 0 ? 'exit 1' : `part ${i}: the code is K${i * 7919}\n` + `line of part ${i}\n`.repeat(400)
  add({ role: 'toolResult', toolCallId: id, toolName: 'bash', isError: i % 5 === 0, content: [{ type: 'text', text }] })
  const before = JSON.stringify(entries)
  const contextEntries = entries.map(e => {
    const edit = edits.get(e.id)
    return { sourceEntry: e, messages: !e.message || edit === null ? [] : [edit ? { ...e.message, content: edit.content } : e.message] }
  })
  const other = { type: 'custom', customType: 'another' }
  const made = await handlers.turn_end({ outcome: 'completed', entries: [other], context: { contextEntries } }, ctx)
  const drafts = made?.entries ?? []
  for (const d of drafts.filter(d => d.type === 'context_edit')) edits.set(d.targetId, d.replacement)
  const seen = entries.flatMap(e => {
    const edit = edits.get(e.id)
    if (!e.message || edit === null) return []
    const content = [edit?.content ?? e.message.content].flat().map(p => (typeof p === 'string' ? { type: 'text', text: p } : p))
    return [{ role: e.message.role, first: content[0]?.type, text: content.map(p => p.text ?? '').join('\n'), calls: content.filter(p => p.type === 'toolCall').map(p => p.id), answers: e.message.toolCallId ?? '' }]
  })
  turns.push({ own: JSON.stringify(entries) === before, edits: drafts.filter(d => d.type === 'context_edit').length, others: drafts.length === 0 || drafts[0] === other, seen })
}
const recalled = await tools.recall.execute('c', { query: '"the code is K7919"' }, undefined, undefined, ctx).then(r => r.content[0].text, err => 'error: ' + err.message)
const compacted = await handlers.session_before_compact({ preparation: { tokensBefore: 1 }, reason: 'manual' }, ctx)
// After it the conversation is in another thread; what was before is found all the same.
if (compacted) entries.push({ type: 'compaction', id: 'c1', ...compacted.compaction })
const later = await tools.recall.execute('c', { query: '"the code is K7919"' }, undefined, undefined, ctx).then(r => r.content[0].text, err => 'error: ' + err.message)
console.log(JSON.stringify({ later, ...compacted, last: entries.findLast(e => e.message)?.id, turns, recalled, logged }))
