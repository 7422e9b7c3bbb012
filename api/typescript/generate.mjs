// Writes the types of the daemon's API, src/api.d.ts or the file that is named, from api/openapi.json.
import { readFileSync, writeFileSync } from 'node:fs'

const at = (path) => new URL(path, import.meta.url)
const { schemas } = JSON.parse(readFileSync(at('../../api/openapi.json'), 'utf8')).components

// neutral.Message is the type Message; other packages' types bear both names.
const name = (schema) => schema.replace(/^neutral\./, '').replace(/(^|[._])(\w)/g, (_, __, c) => c.toUpperCase())

const type = (s) => {
  if (s.$ref) return name(s.$ref.replace('#/components/schemas/', ''))
  if (Array.isArray(s.type)) return s.type.map((t) => type({ ...s, type: t })).join(' | ')
  switch (s.type) {
    case 'null': return 'null'
    case 'string': case 'boolean': return s.type
    case 'integer': case 'number': return 'number'
    case 'array': return `Array<${type(s.items)}>`
    case 'object':
      if (typeof s.additionalProperties === 'object') return `{ [name: string]: ${type(s.additionalProperties)} }`
      if (s.properties) return fields(s)
      return '{ [name: string]: unknown }'
    case undefined: return 'unknown'
  }
  throw new Error(`openapi.json: no type is known for ${JSON.stringify(s)}`)
}

const comment = (text, indent) => (text ? `${indent}/** ${text.replaceAll('*/', '* /')} */\n` : '')

const fields = (s) => `{\n${Object.entries(s.properties ?? {}).map(([key, p]) =>
  `${comment(p.description, '  ')}  ${key}${s.required?.includes(key) ? '' : '?'}: ${type(p)}\n`).join('')}}`

let out = '// Written by generate.mjs from api/openapi.json; change that and run it.\n'
for (const [key, s] of Object.entries(schemas)) out += `\n${comment(s.description, '')}export type ${name(key)} = ${type(s)}\n`
const file = process.argv[2] ?? at('src/api.d.ts')
writeFileSync(file, out)
if (process.argv[2]) console.log(file)
