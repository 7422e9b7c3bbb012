import assert from 'node:assert'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import * as ai from 'ai'
import * as mocks from 'ai/test'
import { Client } from '@palimpsest-ai/client'
import { codec, palimpsest } from '@palimpsest-ai/client/ai'
import { messages } from './ai.draw.mjs'
import { roundtrips } from './property.mjs'
import { daemon, elsewhere, lacking, part, parts, program, room, watch, window } from './task.mjs'

const { generateText, jsonSchema, stepCountIs, isStepCount = stepCountIs, streamText, wrapLanguageModel } = ai
const MockModel = mocks.MockLanguageModelV4 ?? mocks.MockLanguageModelV3

let at
before(async () => (at = await daemon()))
after(() => at.stop())

const usage = { inputTokens: { total: 10, noCache: 10 }, outputTokens: { total: 10, text: 10 } }

/** Everything that a model can read in a prompt, as it stands there. */
const text = (prompt) => JSON.stringify(prompt).replaceAll('\\"', '"').replaceAll('\\n', '\n')

function scripted(look) {
  return new MockModel({
    modelId: 'scripted',
    doGenerate: async ({ prompt }) => {
      check(prompt)
      const act = look.step(text(prompt))
      const content = act.tool
        ? [{ type: 'text', text: `Step ${act.id}.` }, { type: 'tool-call', toolCallId: act.id, toolName: act.tool, input: JSON.stringify(act.input) }]
        : [{ type: 'text', text: act.text }]
      return { content, finishReason: { unified: act.tool ? 'tool-calls' : 'stop', raw: undefined }, usage, warnings: [] }
    },
  })
}

/** What providers refuse: a result without its call, and a call without its result. */
function check(prompt) {
  const open = new Set()
  for (const m of prompt) {
    if (m.role === 'system') continue
    for (const p of m.content) {
      if (p.type === 'tool-call') open.add(p.toolCallId)
      if (p.type === 'tool-result') assert.ok(open.delete(p.toolCallId), `a result without its call: ${p.toolCallId}`)
    }
  }
  assert.deepEqual([...open], [])
}

const mine = {
  read_part: {
    description: 'Reads a part.',
    inputSchema: jsonSchema({ type: 'object', properties: { n: { type: 'integer' } } }),
    execute: async ({ n }) => part(n),
  },
}

const question = [{ role: 'user', content: 'Read all parts, then tell the secret numbers of the chambers 1 and 2.' }]

const thrown = (err) => {
  throw err
}

for (const way of ['prepareStep', 'middleware']) {
  test(`${parts} steps through a small window, by ${way}`, async () => {
    const look = watch()
    const errors = []
    const p = palimpsest({ thread: `task-${way}`, client: { url: at.url }, window, output: 1000, onError: (err) => errors.push(err) })
    const model = scripted(look)
    const { text: answer } = await generateText({
      model: way === 'middleware' ? wrapLanguageModel({ model, middleware: p.middleware }) : model,
      ...(way === 'prepareStep' ? { prepareStep: p.prepareStep } : {}),
      system: 'You read parts.',
      messages: question,
      tools: { ...mine, ...p.tools },
      stopWhen: isStepCount(80),
    })
    assert.deepEqual(errors, [])
    look.check(answer)
    console.log(`${way}: ${look.seen.requests} requests, the largest of ${look.seen.largest} characters, ${look.seen.looked} lookups`)
    // What was said is in the log once, whatever the model was shown.
    const log = await (await fetch(`${at.url}/v1/threads/task-${way}`)).json()
    assert.equal(log.version, 1 + 2 * (look.seen.requests - 1))
    assert.ok(log.plan_version > 0)
  })
}

test('without Palimpsest the same task does not fit', async () => {
  const look = watch()
  await generateText({ model: scripted(look), messages: question, tools: mine, stopWhen: isStepCount(80) })
  assert.ok(look.seen.largest > room)
})

test('what the model refuses as too long is made smaller and asked once more', async () => {
  const look = watch(room)
  const p = palimpsest({ thread: 'refused', client: { url: at.url }, window: 60_000, output: 1000, onError: thrown })
  const model = wrapLanguageModel({ model: scripted(look), middleware: p.middleware })
  const { text: answer } = await generateText({ model, messages: question, tools: { ...mine, ...p.tools }, stopWhen: isStepCount(80), maxRetries: 0 })
  look.check(answer)
  assert.ok(look.seen.refused > 0)
  // What is refused for another reason is not asked again.
  let asked = 0
  const refusing = new MockModel({ doGenerate: async () => (asked++, thrown(Object.assign(new Error('the key is wrong'), { statusCode: 400 }))) })
  await assert.rejects(generateText({ model: wrapLanguageModel({ model: refusing, middleware: p.middleware }), messages: question, maxRetries: 0 }), /the key is wrong/)
  assert.equal(asked, 1)
})

test('streamText goes the same way', async () => {
  const seen = []
  const model = new MockModel({
    doStream: async ({ prompt }) => {
      seen.push(prompt)
      return { stream: mocks.simulateReadableStream({ chunks: [
        { type: 'text-start', id: '1' }, { type: 'text-delta', id: '1', delta: 'Yes.' }, { type: 'text-end', id: '1' },
        { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage },
      ] }) }
    },
  })
  const p = palimpsest({ thread: 'stream', client: { url: at.url }, window, onError: thrown })
  assert.equal(await streamText({ model, messages: question, prepareStep: p.prepareStep }).text, 'Yes.')
  assert.equal(seen[0][0].content[0].text, question[0].content)
})

test('a history that fits is handed back as it is', async () => {
  const p = palimpsest({ thread: 'whole', client: { url: at.url }, window, onError: thrown })
  const params = { prompt: [{ role: 'system', content: 'S', providerOptions: { x: { y: 1 } } }, { role: 'user', content: [{ type: 'text', text: 'Hello', providerOptions: { a: { b: 1 } } }] }] }
  const out = await p.middleware.transformParams({ params, model: { modelId: 'm' } })
  assert.equal(out.prompt[0], params.prompt[0])
  assert.equal(out.prompt[1], params.prompt[1])
})

test('edits are made to the messages of the host', async () => {
  const result = (id, value) => ({ type: 'tool-result', toolCallId: id, toolName: 't', output: { type: 'text', value }, providerOptions: { x: { of: id } } })
  const prompt = [
    { role: 'user', content: [{ type: 'text', text: 'q' }] },
    { role: 'user', content: [{ type: 'text', text: 'gone' }] },
    { role: 'assistant', content: [{ type: 'text', text: 'a', providerOptions: { x: {} } }, ...['1', '2'].map((id) => ({ type: 'tool-call', toolCallId: id, toolName: 't', input: {} }))] },
    { role: 'tool', content: [result('1', 'long'), result('2', 'short')] },
  ]
  const say = (text) => ({ role: 'user', parts: [{ type: 'text', text }] })
  const fetch = async (_, { method, body }) => {
    if (method === 'GET') return Response.json({ version: 0, items: [] })
    const { messages } = JSON.parse(body)
    const id = (i) => messages[i].id
    const pointer = { ...messages[3].parts[0], content: [{ type: 'text', text: 'pointer' }] }
    return Response.json({ prompt: { system: [{ text: 'note' }] }, edits: [
      { message_id: id(0), insert_before: [say('summary')] }, { message_id: id(1), omit: true }, { message_id: id(3), content: [pointer] }, { insert_before: [say('end')] },
    ] })
  }
  const p = palimpsest({ thread: 'edits', client: { url: 'http://daemon', fetch }, onError: thrown })
  const out = (await p.middleware.transformParams({ params: { prompt }, model: { modelId: 'm' } })).prompt
  const said = (text) => ({ role: 'user', content: [{ type: 'text', text }] })
  assert.deepEqual(out, [
    { role: 'system', content: 'note' }, said('summary'), prompt[0], prompt[2],
    { role: 'tool', content: [{ ...result('1', 'pointer') }, result('2', 'short')] }, said('end'),
  ])
  assert.equal(out[2], prompt[0])
  assert.equal(out[3], prompt[2])
  assert.equal(out[4].content[1], prompt[3].content[1])
})

test('another process goes on, and a history that was changed goes on beside the first', async () => {
  const say = (...texts) => texts.map((t, i) => ({ role: i % 2 ? 'assistant' : 'user', content: [{ type: 'text', text: t }] }))
  const ask = (prompt) => palimpsest({ thread: 'again', client: { url: at.url }, window, onError: thrown }).middleware.transformParams({ params: { prompt }, model: { modelId: 'm' } })
  const version = async (id) => (await (await fetch(`${at.url}/v1/threads/${id}`)).json()).version
  await ask(say('a', 'b', 'c'))
  await ask(say('a', 'b', 'c'))
  assert.equal(await version('again'), 3)
  await ask(say('a', 'b', 'c', 'd', 'e'))
  assert.equal(await version('again'), 5)
  for (let i = 0; i < 2; i++) {
    await ask(say('a', 'b', 'other')) // changed
    await ask(say('a')) // taken back
  }
  assert.equal(await version('again'), 5)
  const { items } = await (await fetch(`${at.url}/v1/threads`)).json()
  const forks = items.filter((t) => t.id.startsWith('again.')).map((t) => [t.id.slice(6, 7), t.version]).sort()
  assert.deepEqual(forks, [['e', 1], ['f', 3]])
})

test('whatever fails, the model gets the messages of the host', async () => {
  const prompt = [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }]
  const answers = (status, body) => async () => new Response(body, { status })
  const full = JSON.stringify({ type: 'x#full', title: 'Full', status: 507, detail: 'the store is full' })
  for (const [client, words] of [
    [{ url: 'http://127.0.0.1:1' }, /fetch failed/],
    [{ program: '/no/such/program' }, /ENOENT/],
    [{ url: at.url, fetch: answers(200, 'no json') }, /is this the address of a daemon/],
    [{ url: at.url, fetch: answers(200, '{"items":[{"id":"x"}]}') }, /begin another thread/],
    [{ url: at.url, fetch: answers(507, full) }, /the store is full \(507\)/],
    [{ url: at.url, fetch: answers(404, '404 page not found\n') }, /the answer \(404\) is no JSON/],
    [{ url: at.url, fetch: answers(405, '{"title":"Method Not Allowed"}') }, /Method Not Allowed \(405\)/],
    [{ url: at.url, fetch: lacking('/prepare', '/answer') }, /\/prepare: Not Found \(404\)/],
    [{ url: at.url, timeout: 20, fetch: (_, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))) }, /timeout/],
    [{ program: '/bin/echo' }, /daemon: /], // prints no JSON
  ]) {
    const errors = []
    const p = palimpsest({ thread: 'open', client, window, onError: (err) => errors.push(err) })
    const params = { prompt }
    assert.equal(await p.middleware.transformParams({ params, model: {} }), params)
    assert.equal(errors.length, 1)
    assert.match(String(errors[0]), words)
    assert.equal(await p.tools.recall.execute({ query: 'x' }), 'Error: recall cannot be answered now')
    const { text: answer } = await generateText({
      model: new MockModel({ doGenerate: { content: [{ type: 'text', text: 'ok' }], finishReason: { unified: 'stop', raw: undefined }, usage, warnings: [] } }),
      messages: question, prepareStep: p.prepareStep,
    })
    assert.equal(answer, 'ok')
  }
  const p = palimpsest({ thread: 'open', client: { url: 'http://127.0.0.1:1' }, onError: thrown })
  assert.deepEqual((await p.middleware.transformParams({ params: { prompt }, model: {} })).prompt, prompt)
})

test('a daemon that makes nothing smaller leaves the refusal as it was', async () => {
  const errors = []
  const p = palimpsest({ thread: 'older', client: { url: at.url, fetch: lacking('/overflowed') }, window, onError: (err) => errors.push(err) })
  const refusing = new MockModel({ doGenerate: async () => thrown(Object.assign(new Error('prompt is too long: 9 tokens > 8 maximum'), { statusCode: 400 })) })
  await assert.rejects(generateText({ model: wrapLanguageModel({ model: refusing, middleware: p.middleware }), messages: question, maxRetries: 0 }), /prompt is too long/)
  assert.match(String(errors[0]), /\/overflowed: Not Found \(404\)/)
  assert.equal(errors.length, 1)
})

test('a daemon that is killed in the middle', async () => {
  const look = watch()
  const other = await daemon()
  let failed = 0
  const p = palimpsest({ thread: 'killed', client: { url: other.url }, window, output: 1000, onError: () => failed++ })
  await generateText({
    model: scripted(look), messages: question, tools: { ...mine, ...p.tools }, stopWhen: isStepCount(80),
    prepareStep: async (step) => {
      if (step.stepNumber === 20) await other.stop()
      return p.prepareStep(step)
    },
  })
  assert.equal(look.seen.asked, parts)
  assert.ok(failed > 0)
  assert.ok(look.seen.largest > room, 'the host had its whole history again')
})

test('a daemon is started where none runs, and found again', () => elsewhere(async () => {
  const client = new Client({ program })
  const p = palimpsest({ thread: 'started', client, window, onError: thrown })
  const params = { prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }] }
  await p.middleware.transformParams({ params, model: { modelId: 'm' } })
  assert.equal((await client.log('started')).version, 1)
  assert.equal((await new Client({ program }).log('started')).version, 1)
  execFileSync(program, ['daemon', 'stop'])
  assert.equal((await client.log('started')).version, 1) // by another one, with the same store
}))

test('a daemon with another API is not used', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'plk-'))
  try {
    const other = join(dir, 'palimpsest')
    writeFileSync(other, `#!/bin/sh\necho '{"url":"${at.url}","api":2}'\n`, { mode: 0o755 })
    await assert.rejects(new Client({ program: other }).log('x'), /its API is version 2/)
  } finally {
    rmSync(dir, { recursive: true })
  }
})

test('conversion both ways', () => roundtrips(codec, messages))
