// The contenders of `cd lab && go run . peers`: one
// JSON object a line, answers in the order of the questions. The protocol is in
// lab/README.md. With --variants, those that the fitted ones were chosen from.
import { createInterface } from 'node:readline'
import { contenders, variants } from './contenders.mjs'

const all = process.argv.includes('--variants') ? variants : contenders
console.log = console.info = console.warn = console.error // a library's words are no answers
const say = (value) => process.stdout.write(JSON.stringify(value) + '\n')

say({ contenders: Object.keys(all) })
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  try {
    const request = JSON.parse(line)
    say({ messages: await all[request.contender](request) })
  } catch (err) {
    say({ error: String(err?.message ?? err) })
  }
}
