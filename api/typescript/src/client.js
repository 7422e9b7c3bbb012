// A client of the daemon's API. It holds no conversation and decides nothing.
import { execFile } from 'node:child_process'

/**
 * @typedef {object} ClientOptions
 * @property {string} [url] The daemon's address, such as http://127.0.0.1:7433. Without it the program is asked
 *   where your daemon is, which starts one where none runs.
 * @property {string} [key] The key that the daemon at url wants.
 * @property {string} [program] The program to ask; "palimpsest" on the path by default.
 * @property {number} [timeout] How many milliseconds a request may take; 30000 by default.
 * @property {typeof globalThis.fetch} [fetch] In place of the global one.
 */

/** The daemon refused a request. `kind` is what callers branch on, such as "not-found" or "version". */
export class ProblemError extends Error {
  /** @param {string} operation @param {import('./api.js').Problem} problem */
  constructor(operation, problem) {
    super(`palimpsest: ${operation}: ${problem.detail || problem.title} (${problem.status})`)
    this.name = 'ProblemError'
    this.problem = problem
    this.status = problem.status
    this.kind = problem.type?.split('#')[1] ?? ''
  }
}

/** The version of the API that this client speaks. */
const api = 1

/** A client of one daemon. It may be shared; it reaches for the daemon with the first request. */
export class Client {
  #options
  /** @type {Promise<{url: string, key?: string}> | undefined} */
  #address

  /** @param {ClientOptions} [options] */
  constructor(options = {}) {
    this.#options = options
  }

  /** Before each call of the model: add what is new, and get what to send.
   * @param {string} thread @param {import('./api.js').Step} step @param {number} [version] of the log, that it must be at
   * @returns {Promise<import('./api.js').Prepared>} */
  prepare(thread, step, version) {
    return this.#request('POST', `/v1/threads/${encodeURIComponent(thread)}/prepare`, step, version)
  }

  /** After the provider refused what prepare gave for its size: compact harder, or take out what it was refused for, and get
   * what to send instead.
   * @param {string} thread @param {import('./api.js').Step} step as it was given to prepare, without its messages, and why
   * @returns {Promise<import('./api.js').Prepared>} */
  overflowed(thread, step) {
    return this.#request('POST', `/v1/threads/${encodeURIComponent(thread)}/overflowed`, step)
  }

  /** After the model answered: add its answer, and what the provider counted, which corrects the daemon's counter.
   * @param {string} thread @param {import('./api.js').Answer} answer @param {number} [version] of the log, that it must be at
   * @returns {Promise<import('./api.js').Appended>} */
  finish(thread, answer, version) {
    return this.#request('POST', `/v1/threads/${encodeURIComponent(thread)}/finish`, answer, version)
  }

  /** Answer a model's call of recall or read_artifact.
   * @param {string} thread @param {import('./api.js').Part} call
   * @returns {Promise<import('./api.js').Message>} */
  answer(thread, call) {
    return this.#request('POST', `/v1/threads/${encodeURIComponent(thread)}/answer`, call)
  }

  /** One page of the messages of a thread as they were said.
   * @param {string} thread @param {string} [cursor] what the page before gave as next
   * @returns {Promise<import('./api.js').Log>} */
  log(thread, cursor) {
    return this.#request('GET', `/v1/threads/${encodeURIComponent(thread)}/messages${cursor ? `?cursor=${encodeURIComponent(cursor)}` : ''}`)
  }

  /** Make a thread; to write to one that is not there is refused.
   * @param {import('./api.js').NewThread} thread
   * @returns {Promise<import('./api.js').Thread>} */
  create(thread) {
    return this.#request('POST', '/v1/threads', thread)
  }

  /** Delete a thread for good.
   * @param {string} thread
   * @returns {Promise<void>} */
  delete(thread) {
    return this.#request('DELETE', `/v1/threads/${encodeURIComponent(thread)}`)
  }

  /** @param {string} method @param {string} path @param {unknown} [body] @param {number} [version] @returns {Promise<any>} */
  async #request(method, path, body, version) {
    const operation = `${method} ${path}`
    /** @type {Record<string, string>} */
    const headers = {}
    if (body !== undefined) headers['Content-Type'] = 'application/json'
    if (version !== undefined) headers['If-Match'] = `"${version}"`
    const init = { method, headers, body: body === undefined ? undefined : JSON.stringify(body) }
    const response = await this.#send(path, init)
    const text = await response.text()
    let value
    try {
      value = text ? JSON.parse(text) : undefined
    } catch {
      throw new Error(`palimpsest: ${operation}: the answer (${response.status}) is no JSON: is this the address of a daemon?`)
    }
    if (!response.ok) throw new ProblemError(operation, { type: '', title: response.statusText, detail: '', ...value, status: response.status })
    return value
  }

  /** A daemon on demand ends when nobody asks it for long: the next request looks for it anew, once.
   * @param {string} path @param {{method: string, headers: Record<string, string>, body: string | undefined}} init */
  async #send(path, init) {
    const timeout = this.#options.timeout ?? 30000
    const fetch = this.#options.fetch ?? globalThis.fetch
    for (let again = false; ; again = true) {
      const { url, key } = await this.#where()
      const headers = key ? { ...init.headers, Authorization: `Bearer ${key}` } : init.headers
      try {
        return await fetch(url + path, { ...init, headers, signal: AbortSignal.timeout(timeout), redirect: 'error' })
      } catch (err) {
        this.#address = undefined
        if (again || this.#options.url || !(err instanceof TypeError)) throw err
      }
    }
  }

  #where() {
    const { url, key, program = 'palimpsest', timeout = 30000 } = this.#options
    if (!this.#address) {
      const address = url ? Promise.resolve({ url: url.replace(/\/+$/, ''), key }) : ask(program, timeout)
      this.#address = address
      address.catch(() => { // a program that is installed later is found then
        if (this.#address === address) this.#address = undefined
      })
    }
    return this.#address
  }
}

/** @param {string} program @param {number} timeout @returns {Promise<{url: string, key?: string}>} */
function ask(program, timeout) {
  return new Promise((resolve, reject) => {
    execFile(program, ['daemon'], { timeout, windowsHide: true }, (err, stdout, stderr) => {
      try {
        if (err) throw new Error(stderr.trim() || err.message)
        const daemon = JSON.parse(stdout)
        if (daemon.api !== api) throw new Error(`its API is version ${daemon.api}, and this client speaks ${api}: update the older of the two`)
        resolve({ url: daemon.url, key: daemon.key })
      } catch (e) {
        reject(new Error(`palimpsest: ${program} daemon: ${e instanceof Error ? e.message : e}`))
      }
    })
  })
}
