// Plays pi: node pi.mjs PLUGIN PARTS writes what the extension did of each turn.
import { played } from './pisession.mjs'
const [, , plugin, parts] = process.argv
const { s, logged, step, turnEnd, compact, recall } = await played(plugin, '0199', 20_000)
s.add({ type: 'model_change' })
s.message({ role: 'user', content: 'Read all parts. Never change a file.' })
const turns = []
const other = { type: 'custom', customType: 'another' }
for (let i = 1; i <= Number(parts); i++) {
  step(i)
  const before = JSON.stringify(s.entries)
  const drafts = await turnEnd([other])
  const seen = s.manager.buildSessionProjection().messages.map(m => {
    const content = [m.content].flat().map(p => (typeof p === 'string' ? { type: 'text', text: p } : p))
    return { role: m.role, first: content[0]?.type, text: content.map(p => p.text ?? '').join('\n'), calls: content.filter(p => p.type === 'toolCall').map(p => p.id), answers: m.toolCallId ?? '' }
  })
  turns.push({ own: JSON.stringify(s.entries).startsWith(before.slice(0, -1)), edits: drafts.filter(d => d.type === 'context_edit').length, others: drafts.length === 0 || drafts[0] === other, seen })
}
const recalled = await recall('"the code is K7919"')
const compacted = await compact()
// After it what was before is found all the same.
if (compacted) s.add({ type: 'compaction', ...compacted.compaction })
const later = await recall('"the code is K7919"')
console.log(JSON.stringify({ later, ...compacted, turns, recalled, logged }))
