// Makes the npm packages of a release from what goreleaser built: one for each system,
// and the one that starts them.
//
//   node packaging/npm/build.mjs dist 0.1.0 dist/npm
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const [dist, version, out] = process.argv.slice(2)
if (!dist || !/^\d+\.\d+\.\d+/.test(version ?? '') || !out) {
  console.error('usage: build.mjs DIST VERSION OUT')
  process.exit(2)
}
const systems = { linux: 'linux', darwin: 'darwin', windows: 'win32' }
const machines = { amd64: 'x64', arm64: 'arm64' }
const main = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'))
const built = JSON.parse(readFileSync(join(dist, 'artifacts.json'), 'utf8')).filter((a) => a.type === 'Binary' && /^palimpsest(\.exe)?$/.test(a.name) && systems[a.goos] && machines[a.goarch])
if (built.length === 0) throw new Error(`${dist}/artifacts.json names no program`)
main.version = version
main.optionalDependencies = {}
for (const a of built) {
  const os = systems[a.goos], cpu = machines[a.goarch]
  const name = `${main.name}-${os}-${cpu}`, dir = join(out, `${os}-${cpu}`)
  const program = os === 'win32' ? 'palimpsest.exe' : 'palimpsest'
  mkdirSync(dir, { recursive: true })
  copyFileSync(existsSync(a.path) ? a.path : join(dist, '..', a.path), join(dir, program))
  chmodSync(join(dir, program), 0o755)
  const files = [program, ...['LICENSE', 'THIRD_PARTY_LICENSES'].filter((f) => existsSync(join(here, '../..', f)))] // the second is made for a release
  for (const file of files.slice(1)) copyFileSync(join(here, '../..', file), join(dir, file))
  const { license, homepage, repository } = main
  write(dir, { name, version, description: `palimpsest for ${os} on ${cpu}`, license, homepage, repository, os: [os], cpu: [cpu], files })
  main.optionalDependencies[name] = version
}
const dir = join(out, 'palimpsest')
mkdirSync(dir, { recursive: true })
for (const file of ['palimpsest.js', 'README.md']) copyFileSync(join(here, file), join(dir, file))
copyFileSync(join(here, '../../LICENSE'), join(dir, 'LICENSE'))
write(dir, main)

function write(dir, manifest) {
  writeFileSync(join(dir, 'package.json'), JSON.stringify(manifest, null, 2) + '\n')
}
