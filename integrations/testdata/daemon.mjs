// Asks the daemon for all threads of a conversation at once: node daemon.mjs MODULE PARTS writes what came back.
const [, , module] = process.argv
const { answer, tools } = await import(module)
const asked = ids => answer(ids, tools[0], 'c', { query: 'x' }).catch(err => 'error: ' + err.message)
const out = {}
for (const ids of ['a b c', 'a none', 'a full b', 'none', 'none full']) out[ids] = await asked(ids.split(' '))
console.log(JSON.stringify(out))
