// install.sh and formula.sh, with a release that is made here.
import assert from 'node:assert'
import { execFile, execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const skip = !['linux', 'darwin'].includes(process.platform)
const systems = ['linux_amd64', 'linux_arm64', 'darwin_amd64', 'darwin_arm64']

// release writes the files of a version, whose program says what it is.
function release(dir, version) {
  mkdirSync(dir, { recursive: true })
  writeFileSync(join(dir, 'palimpsest'), `#!/bin/sh\necho "palimpsest ${version}"\n`)
  chmodSync(join(dir, 'palimpsest'), 0o755)
  let sums = ''
  for (const system of systems) {
    const name = `palimpsest_${version}_${system}.tar.gz`
    execFileSync('tar', ['-czf', name, 'palimpsest'], { cwd: dir })
    sums += `${createHash('sha256').update(readFileSync(join(dir, name))).digest('hex')}  ${name}\n`
  }
  writeFileSync(join(dir, 'checksums.txt'), `${'0'.repeat(64)}  palimpsest-eval_${version}_linux_amd64.tar.gz\n${sums}`)
}

test('install.sh', { skip }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'palimpsest-install-'))
  const server = createServer((request, answer) => {
    const path = join(dir, 'site', request.url)
    if (!existsSync(path)) answer.statusCode = 404
    answer.end(existsSync(path) ? readFileSync(path) : '')
  })
  await new Promise((done) => server.listen(0, '127.0.0.1', done))
  const bin = join(dir, 'home', '.local', 'bin')
  const install = (env = {}) => new Promise((done) => {
    const releases = `http://127.0.0.1:${server.address().port}`
    execFile('sh', [join(here, 'install.sh')], { env: { HOME: join(dir, 'home'), TMPDIR: dir, PATH: process.env.PATH, PALIMPSEST_RELEASES: releases, ...env } }, (err, out, errs) => done({ status: err?.code ?? 0, out, errs }))
  })
  try {
    release(join(dir, 'site/latest/download'), '0.2.0')
    release(join(dir, 'site/download/v0.1.0'), '0.1.0')

    let ran = await install({ PALIMPSEST_VERSION: 'v0.1.0' })
    assert.equal(ran.status, 0, ran.errs)
    assert.match(ran.out, /palimpsest 0\.1\.0, from palimpsest_0\.1\.0_\w+\.tar\.gz, checked by its SHA-256\n.* is not on your PATH/)
    assert.doesNotMatch(ran.out, /replaces/)
    ran = await install({ PATH: `${bin}:${process.env.PATH}` })
    assert.match(ran.out, /palimpsest 0\.2\.0[^]*It replaces palimpsest 0\.1\.0\.\nNext: /)

    for (const name of readdirSync(join(dir, 'site/download/v0.1.0'))) {
      if (name.endsWith('.tar.gz')) writeFileSync(join(dir, 'site/download/v0.1.0', name), 'something else')
    }
    ran = await install({ PALIMPSEST_VERSION: 'v0.1.0' })
    assert.equal(ran.status, 1)
    assert.match(ran.errs, /is not what checksums\.txt says .*nothing was changed/)
    ran = await install({ PALIMPSEST_VERSION: 'v9.9.9' })
    assert.equal(ran.status, 1)
    assert.match(ran.errs, /v9\.9\.9\/checksums\.txt cannot be read/)

    assert.deepEqual(readdirSync(bin), ['palimpsest'])
    assert.equal(execFileSync(join(bin, 'palimpsest'), { encoding: 'utf8' }), 'palimpsest 0.2.0\n')
    assert.deepEqual(readdirSync(dir).sort(), ['home', 'site']) // nothing is left of what was read
  } finally {
    server.close()
    rmSync(dir, { recursive: true })
  }
})

test('formula.sh', { skip }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'palimpsest-formula-'))
  try {
    release(dir, '0.2.0')
    const formula = execFileSync('sh', [join(here, 'formula.sh'), dir, '0.2.0'], { encoding: 'utf8' })
    for (const system of systems) {
      const name = `palimpsest_0.2.0_${system}.tar.gz`
      const sum = createHash('sha256').update(readFileSync(join(dir, name))).digest('hex')
      assert.match(formula, new RegExp(`url ".*/v0\\.2\\.0/${name}"\\n *sha256 "${sum}"`))
    }
    assert.throws(() => execFileSync('sh', [join(here, 'formula.sh'), dir, '0.3.0'], { stdio: 'pipe' }), /has no palimpsest_0\.3\.0/)
  } finally {
    rmSync(dir, { recursive: true })
  }
})
