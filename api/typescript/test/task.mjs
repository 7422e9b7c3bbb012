// The task of the tests: 60 parts of 8 KB through a small window, with a model that is
// a script and knows only what stands in the request.
import assert from 'node:assert'
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const program = process.env.PALIMPSEST_PROGRAM
export const parts = 60
export const window = 24000

/** Draws the same numbers for the same seed. */
export function drawer(seed) {
  let a = seed >>> 0
  const next = () => {
    a = (a + 0x6d2b79f5) >>> 0
    let t = Math.imul(a ^ (a >>> 15), a | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (n) => Math.floor(next() * n)
  return { below, of: (list) => list[below(list.length)], yes: () => next() < 0.5 }
}

const words = 'river stone market letter window engine garden winter copper signal harbor ladder meadow pocket ribbon saddle timber valley'.split(' ')

/** The code that stands in the middle of a part. */
export const code = (n) => `zx${((n * 7919) % 90000) + 10000}`

export function part(n) {
  const draw = drawer(n)
  const lines = []
  for (let size = 0; size < 8000; size += lines.at(-1).length + 1) {
    lines.push(Array.from({ length: 12 }, () => draw.of(words) + draw.below(1000)).join(' '))
  }
  lines[lines.length >> 1] = `The secret number of chamber ${n} is ${code(n)}.`
  return lines.join('\n')
}

/** What the model does next, by the text of its request and how many parts it has asked for. */
export function next(text, asked, looked) {
  if (asked < parts) return { tool: 'read_part', input: { n: asked + 1 } }
  const found = [1, 2].map((n) => text.match(new RegExp(`secret number of chamber ${n} is (\\w+)`))?.[1])
  const missing = found.findIndex((f) => f === undefined)
  if (missing >= 0 && looked < 4) return { tool: 'recall', input: { query: `"secret number of chamber ${missing + 1}"` } }
  return { text: found.join(' ') }
}

/** More characters than have room in the window; a token of these parts has about four. */
export const room = window * 5

/** Watches what a model is sent, which refuses more than so many characters. */
export function watch(most = Infinity) {
  const seen = { requests: 0, largest: 0, asked: 0, looked: 0, refused: 0 }
  return {
    seen,
    step(text) {
      if (text.length > most) {
        seen.refused++
        throw Object.assign(new Error(`prompt is too long: ${text.length >> 2} tokens > ${most >> 2} maximum`), { status: 400, statusCode: 400 })
      }
      seen.requests++
      seen.largest = Math.max(seen.largest, text.length)
      const act = next(text, seen.asked, seen.looked)
      if (act.tool === 'read_part') seen.asked++
      if (act.tool === 'recall') seen.looked++
      return { ...act, id: `call_${seen.requests}` }
    },
    /** That the task ended well in its window. */
    check(answer) {
      assert.equal(answer, `${code(1)} ${code(2)}`)
      assert.ok(seen.largest < room, `the largest request has ${seen.largest} characters`)
      assert.ok(seen.looked > 0, 'nothing was looked up: the task is too small')
    },
  }
}

/** A daemon on a port of its own, whose store is gone with it. */
export async function daemon(...flags) {
  const child = spawn(program, ['serve', '--listen', '127.0.0.1:0', '--store', 'memory:', ...flags], { stdio: ['ignore', 'ignore', 'pipe'] })
  const url = await new Promise((resolve, reject) => {
    let said = ''
    child.stderr.on('data', (data) => {
      said += data
      const at = said.match(/serving on (http:\S+)/)
      if (at) resolve(at[1])
    })
    child.on('exit', (status) => reject(new Error(`the daemon ended (${status}): ${said}`)))
  })
  return {
    url,
    stop: () => new Promise((resolve) => {
      child.removeAllListeners('exit')
      child.on('exit', resolve)
      child.kill('SIGKILL')
    }),
  }
}

/** The fetch of an older daemon, that lacks routes which end so. */
export const lacking = (...ends) => (url, init) => (ends.some((e) => url.endsWith(e)) ? Response.json({ title: 'Not Found' }, { status: 404 }) : fetch(url, init))

/** What can be wrong with a daemon from the first call on. */
export const wrong = (url) => ({ 'without a daemon': { url: 'http://127.0.0.1:1' }, 'with a daemon that lacks a route': { url, fetch: lacking('/prepare', '/answer') } })

/** Runs with a home and a run directory of its own, in which `palimpsest daemon` keeps what it has. */
export async function elsewhere(run) {
  const dir = mkdtempSync(join(tmpdir(), 'plk-'))
  const before = { ...process.env }
  Object.assign(process.env, { HOME: dir, XDG_RUNTIME_DIR: dir, XDG_DATA_HOME: dir, XDG_CONFIG_HOME: dir })
  try {
    await run()
  } finally {
    try {
      execFileSync(program, ['daemon', 'stop'], { stdio: 'ignore' })
    } finally {
      Object.assign(process.env, before)
      rmSync(dir, { recursive: true, force: true })
    }
  }
}
