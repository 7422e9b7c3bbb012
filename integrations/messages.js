// A part of the plugins of Palimpsest: the messages of pi, which OpenClaw has too, in the form of the daemon and back.
import { text } from './daemon.js'

export const blocks = content => (typeof content === 'string' ? [text(content)] : (content ?? []))

const parts = content => blocks(content).flatMap(p => (p.type === 'image' ? [{ type: 'media', media: 'image', mime: p.mimeType, data: p.data }] : p.text ? [text(p.text)] : []))

// told is a message in the daemon's form, nothing for what the model does not see.
export function told(id, m) {
  switch (m?.role) {
    case 'user':
      return { id, role: 'user', parts: parts(m.content) }
    case 'custom':
      return { id, role: 'user', kind: 'injected', parts: parts(m.content) }
    case 'bashExecution': // what the user ran without asking the model
      return m.excludeFromContext ? undefined : { id, role: 'user', kind: 'injected', parts: [text(`Ran \`${m.command}\`\n${m.output || '(no output)'}`)] }
    case 'compactionSummary':
    case 'branchSummary':
      return { id, role: 'user', kind: 'recap', parts: [text(m.summary)] }
    case 'assistant': {
      if (m.stopReason === 'error' || m.stopReason === 'aborted') return undefined
      const all = blocks(m.content).flatMap(p => {
        if (p.type === 'toolCall') return [{ type: 'tool_call', call_id: p.id, tool: p.name, arguments: JSON.stringify(p.arguments ?? {}) }]
        const s = p.type === 'thinking' ? p.thinking : p.text
        return s ? [{ type: p.type === 'thinking' ? 'reasoning' : 'text', text: s }] : []
      })
      return all.length > 0 ? { id, role: 'assistant', parts: all } : undefined
    }
    case 'toolResult': {
      const content = parts(m.content)
      const part = { type: 'tool_result', call_id: m.toolCallId, tool: m.toolName, outcome: m.isError ? 'failure' : 'success', content: content.length > 0 ? content : [text('(no text)')] }
      return { id, role: 'tool', parts: [part] }
    }
  }
  return undefined
}

// remade is the content of a message after an edit, whose own it was before. Images and
// reasoning are the agent's own.
export function remade(own, content) {
  const images = own.filter(p => p.type === 'image')
  const made = (content[0]?.type === 'tool_result' ? (content[0].content ?? []) : content).flatMap(p => {
    if (p.type === 'text') return [text(p.text)]
    if (p.type === 'media') return images.splice(0, 1)
    const call = p.type === 'tool_call' && own.find(k => k.type === 'toolCall' && k.id === p.call_id)
    return call ? [{ ...call, arguments: JSON.parse(p.arguments || '{}') }] : []
  })
  return [...own.filter(p => p.type === 'thinking'), ...made]
}
