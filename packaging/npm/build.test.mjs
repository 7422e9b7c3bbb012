// The packages are packed, installed without a network, and start the program.
import assert from 'node:assert'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const goos = { linux: 'linux', darwin: 'darwin' }[process.platform], goarch = { x64: 'amd64', arm64: 'arm64' }[process.arch]

test('npm pack, install, run', { skip: !goos || !goarch }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'palimpsest-npm-'))
  try {
    const dist = join(dir, 'dist')
    mkdirSync(dist)
    const program = join(dist, 'program')
    writeFileSync(program, '#!/bin/sh\necho "ran with $*"\nexit 3\n', { mode: 0o755 })
    writeFileSync(join(dist, 'artifacts.json'), JSON.stringify([{ type: 'Binary', name: 'palimpsest', goos, goarch, path: program }, { type: 'Binary', name: 'palimpsest-eval', goos, goarch, path: 'x' }, { type: 'Archive', name: 'palimpsest', goos, goarch, path: 'x' }]))
    execFileSync(process.execPath, [join(here, 'build.mjs'), dist, '0.1.0', join(dir, 'npm')])
    const packed = []
    for (const name of readdirSync(join(dir, 'npm'))) {
      const [{ filename, files }] = JSON.parse(execFileSync('npm', ['pack', '--json', '--pack-destination', dir], { cwd: join(dir, 'npm', name), encoding: 'utf8' }))
      const names = files.map((f) => f.path).filter((f) => f !== 'THIRD_PARTY_LICENSES').sort() // there only after prepare.sh
      assert.deepEqual(names, name === 'palimpsest' ? ['LICENSE', 'README.md', 'package.json', 'palimpsest.js'] : ['LICENSE', 'package.json', 'palimpsest'])
      packed.push(join(dir, filename))
    }
    const project = join(dir, 'project')
    mkdirSync(project)
    writeFileSync(join(project, 'package.json'), '{"private":true}')
    execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', ...packed], { cwd: project, stdio: 'pipe' })
    const ran = spawnSync(join(project, 'node_modules/.bin/palimpsest'), ['compact', 'a b'], { encoding: 'utf8' })
    assert.equal(ran.stdout, 'ran with compact a b\n')
    assert.equal(ran.status, 3)
    rmSync(join(project, `node_modules/@palimpsest-ai/palimpsest-${process.platform}-${process.arch}`), { recursive: true })
    const without = spawnSync(join(project, 'node_modules/.bin/palimpsest'), [], { encoding: 'utf8' })
    assert.equal(without.status, 1)
    assert.match(without.stderr, /is not installed/)
  } finally {
    rmSync(dir, { recursive: true })
  }
})
