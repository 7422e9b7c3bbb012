// Histories as LangChain's messages and back. What a library leaves alone goes
// back as it came: reasoning, seals and media that LangChain has no place for
// are not lost by the journey.
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages'

const text = (parts) => parts.filter((p) => p.type === 'text').map((p) => p.text ?? '').join('\n')

function args(json) {
  try {
    const value = JSON.parse(json || '{}')
    return value !== null && typeof value === 'object' && !Array.isArray(value) ? value : { input: value }
  } catch {
    return { input: json }
  }
}

function convert(m) {
  switch (m.role) {
    case 'user':
      return new HumanMessage({ id: m.id, content: text(m.parts) })
    case 'assistant':
      return new AIMessage({
        id: m.id,
        content: text(m.parts),
        tool_calls: m.parts.filter((p) => p.type === 'tool_call').map((p) => ({ type: 'tool_call', id: p.call_id, name: p.tool || 'tool', args: args(p.arguments) })),
      })
    case 'tool': {
      const [result] = m.parts
      return new ToolMessage({ id: m.id, tool_call_id: result.call_id, name: result.tool || 'tool', content: text(result.content ?? []) })
    }
    default:
      return new SystemMessage({ id: m.id, content: text(m.parts) })
  }
}

// history is a conversation for LangChain: messages to hand over, count for
// token counters, back to read what came of them.
export function history(request, countText) {
  const sent = request.messages.map((message, i) => ({ message, tokens: request.tokens[i], as: convert(message) }))
  const byID = new Map(sent.map((s) => [s.message.id, s]))
  const byCall = new Map(sent.filter((s) => s.message.role === 'tool').map((s) => [s.as.tool_call_id, s]))
  // A message that was rewritten may have lost its id.
  const origin = (m) => byID.get(m.id) ?? byCall.get(m.tool_call_id)
  const untouched = (m, s) => s !== undefined && m.content === s.as.content
  const seen = new Map() // counts of rewritten content: libraries ask again and again
  const rewritten = (content) => {
    if (!seen.has(content)) seen.set(content, countText(content) + 8)
    return seen.get(content)
  }
  const count = (messages) => {
    let sum = 0
    for (const m of messages) {
      const s = origin(m)
      sum += untouched(m, s) ? s.tokens : rewritten(String(m.content))
    }
    return sum
  }
  const back = (messages) =>
    messages.map((m) => {
      const s = origin(m)
      if (s === undefined) return { role: m.getType() === 'human' ? 'user' : 'system', parts: [{ type: 'text', text: String(m.content) }] }
      if (untouched(m, s)) return s.message
      const [result] = s.message.parts
      const { structured, ...rest } = result
      return { ...s.message, parts: [{ ...rest, content: [{ type: 'text', text: String(m.content) }] }] }
    })
  return { messages: sent.map((s) => s.as), count, back }
}
