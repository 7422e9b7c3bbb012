// Histories as the AI SDK's model messages and back.

const toolNames = (messages) => new Map(messages.flatMap((m) => m.parts.filter((p) => p.type === 'tool_call').map((p) => [p.call_id, p.tool || 'tool'])))

function input(json) {
  try {
    return JSON.parse(json || '{}')
  } catch {
    return json
  }
}

// history is a conversation for the AI SDK. Parts that it leaves alone keep what
// they were made of, so that nothing is lost by the journey.
export function history(request, countText) {
  const names = toolNames(request.messages)
  const made = new Map() // what each part was made of
  const from = new Map(request.messages.map((m, i) => [m.id, { message: m, tokens: request.tokens[i] }]))
  const part = (p) => {
    let as
    if (p.type === 'reasoning') as = { type: 'reasoning', text: p.text ?? '' }
    else if (p.type === 'tool_call') as = { type: 'tool-call', toolCallId: p.call_id, toolName: names.get(p.call_id), input: input(p.arguments) }
    else if (p.type === 'tool_result') as = { type: 'tool-result', toolCallId: p.call_id, toolName: names.get(p.call_id) ?? p.tool ?? 'tool', output: { type: 'text', value: (p.content ?? []).map((c) => c.text ?? '').join('\n') } }
    else as = { type: 'text', text: p.text ?? '' }
    made.set(as, p)
    return as
  }
  const messages = request.messages.map((m) => ({ role: m.role, content: m.parts.map(part), providerOptions: { bench: { id: m.id } } }))
  const back = (left) =>
    left.map((m) => {
      const { message } = from.get(m.providerOptions.bench.id)
      return m.content.length === message.parts.length ? message : { ...message, parts: m.content.map((p) => made.get(p)) }
    })
  // tokens is exact for messages that are as they were; of those that lost parts
  // the rest is counted.
  const text = (p) => [p.text, p.tool, p.arguments, ...(p.content ?? []).map((c) => c.text)].filter(Boolean).join('\n')
  const counted = new Map() // by parts, since libraries and searches ask again
  const rest = (parts) => {
    const key = parts.map(text).join('\n')
    if (!counted.has(key)) counted.set(key, countText(key) + 8)
    return counted.get(key)
  }
  const tokens = (left) => {
    let sum = 0
    for (const m of left) {
      const { message, tokens } = from.get(m.providerOptions.bench.id)
      sum += m.content.length === message.parts.length ? tokens : rest(m.content.map((p) => made.get(p)))
    }
    return sum
  }
  return { messages, back, tokens }
}
