// Conversion both ways, as a property over drawn messages.
import assert from 'node:assert'
import { isDeepStrictEqual } from 'node:util'
import { drawer } from './task.mjs'

const json = (value) => JSON.parse(JSON.stringify(value))
const spoken = (reads) => json(reads.map(({ role, parts }) => ({ role, parts })))

/** A host's message that is read and written again from its own parts is itself; written from its neutral form alone,
 * it reads as it did. */
export function roundtrips(codec, messages, plain = (m) => m) {
  for (let seed = 1; seed <= 500; seed++) {
    for (const m of messages(drawer(seed))) {
      const reads = codec.read(m)
      if (reads.length === 0) continue
      const whole = codec.write(reads, m)
      assert.ok(whole.length === 1 && isDeepStrictEqual(plain(whole[0]), plain(m)), `seed ${seed}: ${JSON.stringify(m)} came back as ${JSON.stringify(whole)}`)
      const alone = reads.flatMap((read) => codec.write([{ ...json(read), own: read.parts.map(() => undefined) }], undefined))
      assert.deepEqual(spoken(alone.flatMap(codec.read)), spoken(reads), `seed ${seed}`)
    }
  }
}
