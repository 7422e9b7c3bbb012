// Plays pi that compacts: node picompactions.mjs PLUGIN PARTS writes what the model saw
// after each turn, and the compactions.
import { played } from './pisession.mjs'
const [, , plugin, parts] = process.argv
const text = m => m.summary ?? [m.content].flat().map(p => p.text ?? p).filter(t => typeof t === 'string').join('\n')

// run plays a session in a window of so many tokens, in which pi compacts after every so
// many parts, and after those in alone without asking us.
async function run(name, window, every, alone = []) {
  const p = await played(plugin, 'compacts-' + name, window)
  p.s.message({ role: 'user', content: 'Read all parts. Never change a file.' })
  const requests = []
  const own = i => p.s.add({ type: 'compaction', summary: `pi's words up to part ${i}: read all parts, "Never change a file."`, firstKeptEntryId: p.s.entries.findLast(e => e.message?.role === 'assistant').id })
  for (let i = 1; i <= Number(parts); i++) {
    p.step(i)
    await p.turnEnd([])
    if (alone.includes(i)) own(i)
    if (i % every === 0 && p.s.entries.at(-1).type !== 'compaction') {
      const made = (await p.compact())?.compaction
      if (made) {
        p.s.add({ type: 'compaction', fromHook: true, ...made })
        // At once again there is nothing to take out: pi's own words must not stand for ours.
        if (name === 'wide' && i === every && !(await p.compact())?.cancel) own(i)
      } else own(i)
    }
    const seen = p.s.manager.buildSessionProjection().messages
    requests.push({ part: i, first: text(seen[0]), text: seen.map(text).join('\n') })
  }
  const compactions = p.s.entries.filter(e => e.type === 'compaction').map(e => ({ own: e.fromHook === true, summary: e.summary }))
  return { name, requests, compactions, recalled: await p.recall('"the code is K7919"'), logged: p.logged }
}

console.log(
  JSON.stringify([
    await run('wide', 200_000, 6),
    await run('often', 200_000, 3),
    await run('narrow', 24_000, 6),
    await run('mixed', 200_000, 6, [9, 20]),
  ]),
)
