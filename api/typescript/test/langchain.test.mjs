import assert from 'node:assert'
import { after, before, test } from 'node:test'
import { AIMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { createAgent } from 'langchain'
import { codec, palimpsestMiddleware } from '@palimpsest-ai/client/langchain'
import { messages } from './langchain.draw.mjs'
import { roundtrips } from './property.mjs'
import { daemon, part, parts, room, watch, window, wrong } from './task.mjs'

let at
before(async () => (at = await daemon()))
after(() => at.stop())

const mine = tool(({ n }) => part(n), { name: 'read_part', description: 'Reads a part.', schema: { type: 'object', properties: { n: { type: 'integer' } } } })
const question = 'Read all parts, then tell the secret numbers of the chambers 1 and 2.'

class Scripted extends BaseChatModel {
  constructor(look) {
    super({})
    this.look = look
  }

  _llmType() {
    return 'scripted'
  }

  bindTools() {
    return this
  }

  async _generate(list) {
    const open = new Set()
    for (const m of list) {
      for (const call of m.tool_calls ?? []) open.add(call.id)
      if (m.getType() === 'tool') assert.ok(open.delete(m.tool_call_id), `a result without its call: ${m.tool_call_id}`)
    }
    assert.deepEqual([...open], [])
    const act = this.look.step(list.map((m) => (typeof m.content === 'string' ? m.content : m.content.map((b) => b.text).join('\n'))).join('\n'))
    const message = new AIMessage({ content: act.text ?? `Step ${act.id}.`, tool_calls: act.tool ? [{ id: act.id, name: act.tool, args: act.input, type: 'tool_call' }] : [] })
    return { generations: [{ text: act.text ?? '', message }] }
  }
}

const run = (look, options) => createAgent({
  model: new Scripted(look), tools: [mine], systemPrompt: 'You read parts.', middleware: [palimpsestMiddleware({ window, output: 1000, ...options })],
}).invoke({ messages: [{ role: 'user', content: question }] }, { recursionLimit: 400 })

test(`${parts} steps through a small window`, async () => {
  const look = watch()
  const { messages: state } = await run(look, { thread: 'task', client: { url: at.url }, onError: assert.fail })
  look.check(state.at(-1).content)
  console.log(`${look.seen.requests} requests, the largest of ${look.seen.largest} characters, ${look.seen.looked} lookups`)
  // The state has what was said, and nothing that was only shown.
  assert.equal(state.length, 2 * look.seen.requests)
  assert.equal(state[2].content, part(1))
  const log = await (await fetch(`${at.url}/v1/threads/task`)).json()
  assert.equal(log.version, 1 + 2 * (look.seen.requests - 1))
  assert.ok(log.plan_version > 0)
})

test('what the model refuses as too long is made smaller and asked once more', async () => {
  const look = watch(room)
  const { messages: state } = await run(look, { thread: 'refused', client: { url: at.url }, window: 60_000, onError: assert.fail })
  look.check(state.at(-1).content)
  assert.ok(look.seen.refused > 0)
})

for (const how of Object.keys(wrong())) {
  test(`${how} the model gets the messages of the state`, async () => {
    const look = watch()
    let failed = 0
    await run(look, { thread: how, client: wrong(at.url)[how], onError: () => failed++ })
    assert.equal(look.seen.asked, parts)
    assert.ok(look.seen.largest > room)
    assert.equal(failed, look.seen.requests + look.seen.looked)
  })
}

test('threads have the names of LangChain', async () => {
  const errors = []
  const agent = createAgent({ model: new Scripted(watch()), tools: [mine], middleware: [palimpsestMiddleware({ client: { url: at.url }, window, output: 1000, onError: (err) => errors.push(err) })] })
  const ask = (configurable) => agent.invoke({ messages: [{ role: 'user', content: question }] }, { recursionLimit: 400, configurable })
  await ask({ thread_id: 'named' })
  assert.deepEqual(errors, [])
  assert.ok((await (await fetch(`${at.url}/v1/threads/named`)).json()).version > parts)
  await ask({})
  assert.match(String(errors[0]), /name the conversation/)
})

test('conversion both ways', () => roundtrips(codec, messages, (m) => JSON.parse(JSON.stringify(m.toDict()))))
