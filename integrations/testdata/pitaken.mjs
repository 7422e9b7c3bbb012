// Plays pi whose user takes something back: node pitaken.mjs PLUGIN PARTS writes what
// the model sees at last, and what recall finds of what was taken back.
import { played } from './pisession.mjs'
const [, , plugin, parts] = process.argv
const text = m => m.summary ?? [(m.excludeFromContext && []) || m.content || m.output].flat().map(p => p.text ?? p).filter(t => typeof t === 'string').join('\n')

// run plays so many parts of the task, and before them what first does.
async function run(name, first) {
  const p = await played(plugin, 'taken-' + name, 20_000)
  p.s.message({ role: 'user', content: 'Read all parts. Never change a file.' })
  await first(p)
  for (let i = 1; i <= Number(parts); i++) {
    p.step(i)
    await p.turnEnd([])
  }
  return { name, text: p.s.manager.buildSessionProjection().messages.map(text).join('\n'), recalled: await p.recall('9911'), logged: p.logged }
}

// asked is a message of the user's with an answer.
const asked = (p, content) => {
  const m = p.s.message({ role: 'user', content })
  p.s.message({ role: 'assistant', stopReason: 'stop', content: [{ type: 'text', text: 'Yes.' }] })
  return m
}

console.log(
  JSON.stringify([
    await run('edited', async p => {
      const [gone, changed, text] = [asked(p, 'Wrong window: the code is 9911.'), asked(p, 'The password is 9911.'), asked(p, 'My code is 9911.')]
      await p.turnEnd([])
      p.s.add({ type: 'context_edit', targetId: gone.id, replacement: null })
      p.s.add({ type: 'context_edit', targetId: changed.id, replacement: { content: 'The password is not yours.' } })
      p.s.add({ type: 'context_edit', targetId: text.id, replacement: 'My code is gone.' })
    }),
    await run('went back', async p => {
      const at = p.s.entries.at(-1).id
      asked(p, 'Drop the table 9911.')
      await p.turnEnd([])
      p.s.goBack(at)
      asked(p, 'Leave the tables.')
    }),
    await run('ran', async p => {
      await p.turnEnd([])
      p.s.message({ role: 'bashExecution', command: 'date', output: 'It is Monday.' })
      p.s.message({ role: 'bashExecution', command: 'secret', output: '9911', excludeFromContext: true })
      p.s.add({ type: 'branch_summary', summary: 'On the other branch the tests failed.' })
    }),
  ]),
)
