// How fast the others are, for `make bench`: tokenizers over the texts and the
// contenders over the histories that it is given.
//
//   node speed.mjs '{"rounds":3,"texts":{"code":"FILE"},"histories":{"10000":"FILE"}}'
//
// A history is a question as serve.mjs reads it, to a quarter of its size. All
// that count tokens know the tokens of every message before the clock runs.
import { readFileSync } from 'node:fs'
import { Tiktoken } from 'js-tiktoken/lite'
import o200k from 'js-tiktoken/ranks/o200k_base'
import { countTokensApproximately } from 'langchain'
import { get_encoding } from 'tiktoken'
import * as aisdk from './aisdk.mjs'
import { clear, countText, evict, pruneTo, trim } from './contenders.mjs'
import * as langchain from './langchain.mjs'

const job = JSON.parse(process.argv[2])
const tooLong = 3_000 // ms: what takes longer is run once

const median = (list) => list.sort((a, b) => a - b)[list.length >> 1]

// spent is the time of processors, in ms, as on our side: what else the machine
// does does not count.
const spent = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

async function time(work) {
  const took = []
  for (let round = 0; round < job.rounds; round++) {
    const start = spent()
    let runs = 0
    do {
      await work()
      runs++
    } while (spent() - start < 100)
    took.push((spent() - start) / runs)
    if (took[0] > tooLong) break
  }
  return median(took)
}

const js = new Tiktoken(o200k)
const wasm = get_encoding('o200k_base')
const tokenizers = {
  'gpt-tokenizer (npm)': countText,
  'js-tiktoken (npm)': (s) => js.encode(s, [], []).length,
  'tiktoken (npm, wasm)': (s) => wasm.encode_ordinary(s).length,
}
const out = { node: process.version, tokenizers: [], apply: [] }
for (const [text, file] of Object.entries(job.texts ?? {})) {
  const s = readFileSync(file, 'utf8')
  const bytes = Buffer.byteLength(s)
  for (const [name, count] of Object.entries(tokenizers)) {
    const tokens = count(s)
    out.tokenizers.push({ name, text, tokens, rate: bytes / 1000 / (await time(() => count(s))) })
  }
}

const apply = {
  'LangChain ClearToolUsesEdit, keep 3': (h, budget) => clear(h, { trigger: { tokens: budget } }),
  'the same, with its own counter (characters / 4)': (h, budget) => clear(h, { trigger: { tokens: budget } }, countTokensApproximately),
  'LangChain trimMessages': (h, budget) => trim(h, h.messages, budget, ['human', 'ai']),
  'deepagents eviction': (h) => evict(h.messages, 1000),
}
for (const [size, file] of Object.entries(job.histories ?? {})) {
  const request = JSON.parse(readFileSync(file, 'utf8'))
  const chain = langchain.history(request, countText)
  for (const [name, work] of Object.entries(apply)) out.apply.push({ name, size: Number(size), ms: await time(() => work(chain, request.budget)) })
  const sdk = aisdk.history(request, countText)
  out.apply.push({ name: 'AI SDK pruneMessages, to fit', size: Number(size), ms: await time(() => pruneTo(sdk, request.budget)) })
}
process.stdout.write(JSON.stringify(out) + '\n')
