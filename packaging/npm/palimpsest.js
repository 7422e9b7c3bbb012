#!/usr/bin/env node
// Starts the program that the package for this system brings, and ends as it does.
'use strict'
const { spawn } = require('node:child_process')
const { constants } = require('node:os')

const name = `@palimpsest-ai/palimpsest-${process.platform}-${process.arch}`
let program
try {
  program = require.resolve(`${name}/palimpsest${process.platform === 'win32' ? '.exe' : ''}`)
} catch {
  console.error(`palimpsest: the package ${name} is not installed. Install without --omit=optional, or, where there is none for this system: go install github.com/palimpsest-ai/palimpsest/cmd/palimpsest@latest`)
  process.exit(1)
}
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('error', (err) => {
  console.error(`palimpsest: ${err.message}`)
  process.exit(1)
})
child.on('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)))
