// A host's whole history goes in, and what to send comes out: the host's own
// messages, but for those that the daemon's edits change.
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { Client, ProblemError } from './client.js'

/** @typedef {import('./api.js').Message} Message */
/** @typedef {import('./api.js').Part} Part */
/** @typedef {import('./api.js').Prompt} Prompt */

/**
 * What every way in takes.
 * @typedef {object} Options
 * @property {string} thread The conversation's own name; the same one after a restart goes on with it.
 * @property {Client | import('./client.js').ClientOptions} [client] The daemon; without it `palimpsest daemon` is asked.
 * @property {number} [window] The model's context window in tokens, where the daemon does not know the model.
 * @property {number} [output] What is kept free for the answer, in tokens.
 * @property {number} [budget] The most that a request may have, where that should be less than the window.
 * @property {string} [model] The model's name, where the host does not say it.
 * @property {(err: unknown) => void} [onError] Is told what went wrong. The model gets the host's own messages then.
 */

/**
 * One message of a host in neutral form. `own` are the host's parts, one for each of `parts`.
 * @typedef {{role: string, parts: Part[], own: unknown[]}} Read
 */

/**
 * How a framework's messages are read and written.
 * @template M
 * @typedef {object} Codec
 * @property {(message: M) => Read[]} read One message; a neutral tool message holds one result, so it may be several. A
 *   message without a neutral meaning is none, and stays with the message before it.
 * @property {(pieces: Read[], original: M | undefined) => M[]} write Write pieces. An entry of `own` that is not undefined
 *   is the host's own part and goes in as it is. `original` is the message that they were read from.
 */

/**
 * What the model is to be sent.
 * @template M
 * @typedef {object} Prepared
 * @property {M[]} messages
 * @property {string[]} system Texts that stand behind the host's own instructions.
 */

/** How many threads one conversation is looked for in. */
const maxForks = 100

/** One conversation at a daemon. Calls for it go one after the other.
 * @template M */
export class History {
  #client
  #codec
  #options
  /** @type {Promise<unknown>} */
  #turn = Promise.resolve()
  /** The threads of this conversation that were used, and the ids in each.
   * @type {Map<string, string[]>} */
  #logs = new Map()
  #thread

  /** @param {Codec<M>} codec @param {Options} options */
  constructor(codec, options) {
    this.#client = options.client instanceof Client ? options.client : new Client(options.client)
    this.#codec = codec
    this.#options = options
    this.#thread = options.thread
  }

  /** What to send in place of a history. Undefined: the host's own, because something failed, which onError was told.
   * @param {M[]} messages without leading instructions @param {Prompt} around what stands around them
   * @returns {Promise<Prepared<M> | undefined>} */
  prepare(messages, around) {
    return this.#open(() => this.#prepare(messages, around, (thread, step, same) => this.#client.prepare(thread, step, same)))
  }

  /** What to send once more, where the provider refused the history as too long. Undefined: it cannot be made smaller, or
   * something failed, which onError was told.
   * @param {M[]} messages @param {Prompt} around both as they were given to prepare
   * @returns {Promise<Prepared<M> | undefined>} */
  overflowed(messages, around) {
    return this.#open(() => this.#prepare(messages, around, (thread, step) => this.#client.overflowed(thread, { ...step, messages: undefined })))
  }

  /** Asks a model, and once more with less where its provider refuses the request as too long.
   * @template R, T
   * @param {R} request @param {(less?: boolean) => Promise<R | undefined>} shown what the model is to be sent; with less, after
   *   a refusal @param {(request: R) => PromiseLike<T>} ask
   * @returns {Promise<T>} */
  async asked(request, shown, ask) {
    const first = await shown()
    if (first === undefined) return ask(request)
    try {
      return await ask(first)
    } catch (err) {
      const less = isOverflow(err) ? await shown(true) : undefined
      if (less === undefined) throw err
      return ask(less)
    }
  }

  /** The text of a tool's answer to a call of recall or read_artifact.
   * @param {string} tool @param {unknown} input
   * @returns {Promise<string>} */
  async answer(tool, input) {
    const text = await this.#open(async () => {
      const call = { type: 'tool_call', call_id: 'call', tool, arguments: JSON.stringify(input ?? {}) }
      const { parts } = await this.#client.answer(this.#thread, call)
      if (!parts?.[0]?.content) throw new Error(`palimpsest: the daemon's answer to ${tool} holds no result`)
      return textOf(parts[0].content)
    })
    return text ?? `Error: ${tool} cannot be answered now`
  }

  /** @template T @param {() => Promise<T>} act @returns {Promise<T | undefined>} */
  #open(act) {
    const done = this.#turn.then(act).catch((err) => {
      try {
        this.#options.onError?.(err)
      } catch {} // the host goes on
      return undefined
    })
    this.#turn = done
    return done
  }

  /** @param {M[]} messages @param {Prompt} around
   * @param {(thread: string, step: import('./api.js').Step, same: number) => Promise<import('./api.js').Prepared>} ask
   * @returns {Promise<Prepared<M>>} */
  async #prepare(messages, around, ask) {
    if (!this.#options.thread) throw new TypeError('palimpsest: options.thread: name the conversation')
    const groups = messages.map((m) => this.#codec.read(m))
    const ids = chained(groups.flat())
    const all = groups.flat().map((m, i) => ({ id: ids[i], role: m.role, parts: m.parts }))
    const { window, output, budget, model } = this.#options
    const base = { ...around, model: around.model ?? model ?? '' }
    for (let tries = 0; ; tries++) {
      const { thread, same } = await this.#place(ids)
      try {
        const step = { base, messages: all.slice(same), window, output, budget, edits: true }
        const prepared = await ask(thread, step, same)
        this.#logs.set(thread, ids)
        this.#thread = thread
        const system = (prepared.prompt?.system ?? []).slice(base.system?.length ?? 0).map((s) => s.text)
        return { messages: this.#edited(messages, groups, ids, prepared.edits ?? []), system }
      } catch (err) {
        this.#logs.delete(thread) // another process wrote to it, it was deleted, or the daemon is another one
        const stale = err instanceof ProblemError && (err.status === 412 || err.status === 404 || err.status === 409)
        if (!stale || tries >= 3) throw err
      }
    }
  }

  /** The thread that begins as these messages do and has nothing else. A history that was changed
   * before its end goes on in a thread of its own, whose name says where.
   * @param {string[]} ids @returns {Promise<{thread: string, same: number}>} */
  async #place(ids) {
    let thread = this.#options.thread
    for (let forks = 0; forks < maxForks; forks++) {
      const log = this.#logs.get(thread) ?? await this.#log(thread)
      this.#logs.set(thread, log)
      let same = 0
      while (same < log.length && same < ids.length && log[same] === ids[same]) same++
      if (same === log.length) return { thread, same }
      thread = same < ids.length ? fork(this.#options.thread, 'f', ids[same]) : fork(this.#options.thread, 'e', ids[same - 1] ?? '')
    }
    throw new Error(`palimpsest: ${this.#options.thread}: the history was changed before its end more than ${maxForks} times; begin another thread`)
  }

  /** The ids of a thread's messages; the thread is made where it is not there.
   * @param {string} thread */
  async #log(thread) {
    /** @type {string[]} */
    const ids = []
    try {
      for (let cursor; ;) {
        const page = await this.#client.log(thread, cursor)
        for (const m of page.items ?? []) ids.push(m.id ?? '')
        cursor = page.next
        if (!cursor) return ids
      }
    } catch (err) {
      if (!(err instanceof ProblemError && err.status === 404)) throw err
    }
    try {
      await this.#client.create({ id: thread })
    } catch (err) {
      if (!(err instanceof ProblemError && err.status === 409)) throw err // made by another meanwhile
    }
    return ids
  }

  /** @param {M[]} messages @param {Read[][]} groups @param {string[]} ids @param {import('./api.js').Edit[]} list @returns {M[]} */
  #edited(messages, groups, ids, list) {
    if (list.length === 0) return messages
    const edits = new Map(list.map((e) => [e.message_id ?? '', e]))
    /** @type {M[]} */
    const out = []
    /** @param {import('./api.js').Edit | undefined} edit */
    const insert = (edit) => {
      for (const m of edit?.insert_before ?? []) {
        const parts = m.parts ?? []
        out.push(...this.#codec.write([{ role: m.role, parts, own: parts.map(() => undefined) }], undefined))
      }
    }
    let at = 0
    let left = false // what was before is left out
    groups.forEach((group, i) => {
      const own = group.map((_, n) => edits.get(ids[at + n]))
      at += group.length
      if (own.every((e) => e === undefined)) {
        if (group.length > 0) left = false
        if (!left) out.push(messages[i])
        return
      }
      /** @type {Read[]} */
      let pieces = []
      const flush = () => {
        if (pieces.length > 0) out.push(...this.#codec.write(pieces, messages[i]))
        pieces = []
      }
      left = true
      group.forEach((read, n) => {
        const edit = own[n]
        if (edit?.insert_before?.length) {
          flush()
          insert(edit)
        }
        if (edit?.omit) return
        left = false
        pieces.push(edit?.content ? matched(read, edit.content) : read)
      })
      if (pieces.length === group.length && pieces.every((p, n) => p === group[n])) {
        out.push(messages[i])
      } else {
        flush()
      }
    })
    insert(edits.get(''))
    return out
  }
}

/** How providers say that a request does not fit into the model's window. */
const overflows = /context_length_exceeded|request_too_large|prompt is too long|maximum context length|exceeds? (?:the |this )?(?:model'?s |available )?(?:maximum )?(?:context|input)|input (?:token count|is too long)|too many (?:input )?tokens/i

/** @param {unknown} err an error of a framework, which has the provider's words in its message, its body or its cause */
function isOverflow(err) {
  for (let e = /** @type {any} */ (err), deep = 0; e && deep < 5; e = e.cause ?? e.lastError, deep++) {
    const status = e.statusCode ?? e.status
    if (status !== undefined && status !== 400 && status !== 413 && status !== 422) continue
    if (overflows.test(`${e.code ?? ''} ${e.message ?? ''} ${e.responseBody ?? ''}`)) return true
  }
  return false
}

/** The parts of an edit, those that are as they were with the host's own.
 * @param {Read} read @param {Part[]} parts @returns {Read} */
function matched(read, parts) {
  const free = read.parts.map((part, i) => ({ part: said(part), own: read.own[i] }))
  const own = parts.map((part) => {
    const i = free.findIndex((f) => isDeepStrictEqual(f.part, said(part)))
    return i < 0 ? undefined : free.splice(i, 1)[0].own
  })
  return { role: read.role, parts, own }
}

/** A part without fields that say nothing, which the daemon leaves out.
 * @param {Part} part @returns {unknown} */
export function said(part) {
  /** @type {Record<string, unknown>} */
  const out = {}
  for (const [key, value] of Object.entries(part)) {
    if (value === undefined || value === '' || value === null || (Array.isArray(value) && value.length === 0)) continue
    out[key] = key === 'content' && Array.isArray(value) ? value.map(said) : value
  }
  return out
}

/** The texts of parts, as one.
 * @param {Part[]} parts */
export function textOf(parts) {
  return parts.map((p) => p.text ?? '').filter((t) => t !== '').join('\n')
}

/** The value that a model wrote as JSON; the text itself where it is none.
 * @param {string | undefined} text @returns {any} */
export function parsed(text) {
  try {
    return JSON.parse(text ?? '')
  } catch {
    return text ?? ''
  }
}

/** Ids that say what stands before a message too: the same history has the same ids in every process.
 * @param {Read[]} messages */
function chained(messages) {
  let before = ''
  return messages.map((m) => {
    before = createHash('sha256').update(JSON.stringify([before, m.role, m.parts.map(said)])).digest('hex').slice(0, 32)
    return before
  })
}

/** @param {string} thread @param {string} how @param {string} id */
function fork(thread, how, id) {
  return `${thread}.${how}${id.slice(0, 12)}`
}
