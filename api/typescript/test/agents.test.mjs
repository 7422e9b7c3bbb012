import assert from 'node:assert'
import { after, before, test } from 'node:test'
import { Agent, MemorySession, Runner, Usage, setTracingDisabled, tool } from '@openai/agents-core'
import { PalimpsestSession, codec } from '@palimpsest-ai/client/agents'
import { daemon, part, parts, room, watch, window, wrong } from './task.mjs'
import { roundtrips } from './property.mjs'
import { groups } from './agents.draw.mjs'

setTracingDisabled(true)

let at
before(async () => (at = await daemon()))
after(() => at.stop())

const question = 'Read all parts, then tell the secret numbers of the chambers 1 and 2.'
const mine = tool({
  name: 'read_part', description: 'Reads a part.', strict: false,
  parameters: { type: 'object', properties: { n: { type: 'integer' } }, required: [], additionalProperties: true },
  execute: async ({ n }) => part(n),
})

const text = (input) => JSON.stringify(input).replaceAll('\\"', '"').replaceAll('\\n', '\n')

/** A model that reasons, speaks and calls in one answer, as three items. */
function scripted(look) {
  return {
    async getResponse({ input }) {
      check(input)
      const act = look.step(text(input))
      const said = { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: act.text ?? `Step ${act.id}.` }] }
      const output = act.tool
        ? [{ type: 'reasoning', id: `rs_${act.id}`, content: [], providerData: { encrypted: act.id } }, said,
          { type: 'function_call', id: `fc_${act.id}`, callId: act.id, name: act.tool, arguments: JSON.stringify(act.input), status: 'completed' }]
        : [said]
      return { usage: new Usage(), output }
    },
    async *getStreamedResponse(request) {
      const { output } = await this.getResponse(request)
      yield { type: 'response_done', response: { id: 'r', usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 }, output } }
    },
  }
}

/** What the provider refuses: results without calls, calls without results, reasoning without what came after it. */
function check(input) {
  const open = new Set()
  input.forEach((item, i) => {
    if (item.type === 'function_call') open.add(item.callId)
    if (item.type === 'function_call_result') assert.ok(open.delete(item.callId), `a result without its call: ${item.callId}`)
    if (item.type === 'reasoning') assert.equal(input[i + 1]?.role, 'assistant', 'reasoning without what came after it')
  })
  assert.deepEqual([...open], [])
}

for (const stream of [false, true]) {
  test(`${parts} steps through a small window${stream ? ', streamed' : ''}`, async () => {
    const look = watch()
    const thread = `task-${stream}`
    const session = new PalimpsestSession({ thread, client: { url: at.url }, window, output: 1000, onError: assert.fail })
    const agent = new Agent({ name: 'reader', instructions: 'You read parts.', tools: [mine, ...session.tools] })
    const runner = new Runner({ modelProvider: session.models({ getModel: async () => scripted(look) }) })
    const result = await runner.run(agent, question, { session, maxTurns: 80, stream })
    if (stream) await result.completed
    look.check(result.finalOutput)
    console.log(`stream ${stream}: ${look.seen.requests} requests, the largest of ${look.seen.largest} characters, ${look.seen.looked} lookups`)

    // The store has what was said, and nothing that was only shown.
    const items = await session.getItems()
    assert.equal(items.length, 1 + 4 * (look.seen.requests - 1) + 1)
    assert.equal(items[0].content, question)
    assert.equal(text(items.find((i) => i.type === 'function_call_result')).includes(part(1).slice(0, 200)), true)
    const log = await (await fetch(`${at.url}/v1/threads/${thread}`)).json()
    assert.equal(log.version, 1 + 2 * (look.seen.requests - 1))
    assert.ok(log.plan_version > 0)

    // A second turn goes on with the same thread, by another process with the same store.
    const later = new PalimpsestSession({ thread, store: new MemorySession({ initialItems: items }), client: { url: at.url }, window, output: 1000, onError: assert.fail })
    await new Runner({ modelProvider: later.models({ getModel: async () => scripted(look) }) }).run(agent, 'Once more.', { session: later, maxTurns: 80 })
    const { items: threads } = await (await fetch(`${at.url}/v1/threads`)).json()
    assert.deepEqual(threads.filter((t) => t.id.startsWith(`${thread}.`)), [])
  })
}

for (const stream of [false, true]) {
  test(`what the model refuses as too long is made smaller and asked once more${stream ? ', streamed' : ''}`, async () => {
    const look = watch(room)
    const session = new PalimpsestSession({ thread: `refused-${stream}`, client: { url: at.url }, window: 60_000, output: 1000, onError: assert.fail })
    const agent = new Agent({ name: 'reader', tools: [mine, ...session.tools], model: session.model(scripted(look)) })
    const result = await new Runner().run(agent, question, { session, maxTurns: 80, stream })
    if (stream) await result.completed
    look.check(result.finalOutput)
    assert.ok(look.seen.refused > 0)
  })
}

for (const how of Object.keys(wrong())) {
  test(`${how} the session is the store that it stands on`, async () => {
    const look = watch()
    let failed = 0
    const session = new PalimpsestSession({ thread: how, client: wrong(at.url)[how], window, onError: () => failed++ })
    const agent = new Agent({ name: 'reader', tools: [mine, ...session.tools], model: session.model(scripted(look)) })
    await new Runner().run(agent, question, { session, maxTurns: 80 })
    assert.equal(look.seen.asked, parts)
    assert.ok(look.seen.largest > room)
    assert.equal(failed, look.seen.requests + look.seen.looked)
    const last = await session.popItem()
    assert.equal(last.role, 'assistant')
    assert.equal(await session.getSessionId(), how)
    await session.clearSession()
    assert.deepEqual(await session.getItems(), [])
  })
}

test('a stream that is not read to its end is closed', async () => {
  let closed = false
  const inner = {
    async *getStreamedResponse() {
      try {
        yield { type: 'first' }
        yield { type: 'second' }
      } finally {
        closed = true
      }
    },
  }
  const session = new PalimpsestSession({ thread: 'broken-off', client: { url: at.url }, window, output: 1000, onError: assert.fail })
  for await (const event of session.model(inner).getStreamedResponse({ input: 'Go on.' })) {
    assert.equal(event.type, 'first')
    break
  }
  assert.ok(closed)
})

test('conversion both ways', () => roundtrips(codec, groups))
