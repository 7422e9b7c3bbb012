// What the plugins of agents in JavaScript have in common: finding Palimpsest's daemon,
// asking it, and the tools that it answers. All decisions are the daemon's. What fails is
// thrown: the agent then goes on as it does without us.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const PROGRAM = 'palimpsest'
// A daemon that must be started reads its store first; one that cannot start is not
// asked for at each call.
const STARTING = 8000
const AGAIN = 30_000
const ANSWER = 30_000

let running // a promise of where the daemon is
let failed = -AGAIN // when it last did not start

async function start() {
  if (performance.now() - failed < AGAIN) throw new Error('the daemon did not start before')
  try {
    const { stdout } = await promisify(execFile)(PROGRAM, ['daemon'], { timeout: STARTING })
    return JSON.parse(stdout)
  } catch (err) {
    failed = performance.now()
    throw err
  }
}

// daemon is where the daemon is. All who ask while it starts wait for the same start.
function daemon() {
  if (!running) {
    const mine = (running = start())
    mine.catch(() => forget(mine))
  }
  return running
}

// forget has the daemon looked for anew, unless somebody does that already.
function forget(mine) {
  if (running === mine) running = undefined
}

async function send({ url, key }, path, body) {
  return fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer ' + key },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(ANSWER),
  })
}

// ask asks the daemon; one that has ended since is started again.
async function ask(path, body) {
  let answer
  for (let left = 3; !answer; left--) {
    const mine = daemon()
    answer = await send(await mine, path, body).catch(err => {
      if (left === 1 || err.name === 'TimeoutError') throw err
      forget(mine)
    })
  }
  if (answer.ok) return answer.json()
  const { detail } = await answer.json().catch(() => ({})) // a daemon that lacks a route says so in plain text
  throw Object.assign(new Error(detail ?? `the daemon answers ${answer.status}`), { status: answer.status })
}

const thread = id => '/v1/threads/' + encodeURIComponent(id)

// prepare sends what a conversation holds, and is what to do with its messages.
export async function prepare(id, step) {
  const body = { ...step, edits: true }
  const made = await ask(thread(id) + '/prepare', body).catch(async err => {
    if (err.status !== 404) throw err
    await ask('/v1/threads', { id })
    return ask(thread(id) + '/prepare', body)
  })
  // A daemon that knows nothing of edits answers with the whole request.
  if (!(made.version >= 0) || made.body || made.prompt?.messages?.length) throw new Error('the daemon gives no edits: is it of an older version?')
  const edits = made.edits ?? []
  const gone = new Set(edits.filter(e => e.omit).map(e => e.message_id))
  if (step.messages.length > 0 && step.messages.every(m => gone.has(m.id)) && !edits.some(e => e.insert_before?.length)) throw new Error('the daemon leaves nothing')
  return edits
}

// byID are edits by the messages that they are of; '' is the end. What is put in before
// a message that the agent has no longer comes before the next one that has an edit, and
// where the agent has lost the beginning, first.
export function byID(edits, ids) {
  const has = new Set(ids)
  const all = new Map()
  const first = []
  let waiting = []
  for (const { message_id: id = '', insert_before: before = [], ...e } of edits) {
    const known = id === '' || has.has(id)
    ;(known || all.size > 0 ? waiting : first).push(...before)
    if (!known) continue
    all.set(id, { ...e, insert_before: waiting })
    waiting = []
  }
  const before = (id, list) => list.length > 0 && all.set(id, { ...all.get(id), insert_before: [...list, ...(all.get(id)?.insert_before ?? [])] })
  before('', waiting)
  before(ids[0] ?? '', first)
  return all
}

export const text = s => ({ type: 'text', text: s })
export const words = parts => (parts ?? []).map(p => p.text ?? '').filter(Boolean).join('\n')

// said is what a message of the daemon's says, as texts.
export const said = m => m.parts.flatMap(p => (p.type === 'tool_result' ? (p.content ?? []) : [p])).flatMap(p => (p.type === 'text' && p.text ? [p.text] : []))

export const tools = [
  { name: 'recall', description: 'Search what was removed from this conversation to make room.', key: 'query', says: 'Words to search for' },
  { name: 'read_artifact', description: 'Read in full what a placeholder of this conversation points to.', key: 'artifact_id', says: 'The id that the placeholder names' },
].map(t => ({ ...t, schema: { type: 'object', properties: { [t.key]: { type: 'string', description: t.says } }, required: [t.key] } }))

// answer is what the daemon answers to a call of a tool, from all threads of a
// conversation. One that is not there holds nothing; what else is not searched is said.
export async function answer(ids, tool, call, args) {
  const asked = { type: 'tool_call', call_id: call ?? tool.name, tool: tool.name, arguments: JSON.stringify({ [tool.key]: args[tool.key] }) }
  const all = await Promise.allSettled(ids.map(id => ask(thread(id) + '/answer', asked)))
  const answers = all.flatMap(a => (a.status === 'fulfilled' ? [a.value.parts[0]] : []))
  const failed = all.filter(a => a.status === 'rejected' && a.reason.status !== 404)
  if (answers.length === 0) throw (failed[0] ?? all[0]).reason
  const found = answers.filter(a => a.outcome !== 'failure')
  const texts = (found.length > 0 ? found : answers.slice(0, 1)).map(a => words(a.content))
  if (failed.length > 0) texts.push(`[palimpsest: ${failed.length} of the ${ids.length} parts of this conversation could not be searched: ${failed[0].reason.message}]`)
  return texts.join('\n\n')
}
