/** Draws messages of OpenAI Agents: the items of an answer, or one item. */
export function groups(draw) {
  const text = () => draw.of(['', 'plain', 'two\nlines', '"quoted" \\ \u2028 \u{1f600}', 'x'.repeat(300)])
  const id = () => `call_${draw.below(1000)}`
  const extra = () => (draw.yes() ? { id: `i${draw.below(9)}`, providerData: { key: [draw.below(9)] } } : {})
  const some = (make) => Array.from({ length: 1 + draw.below(4) }, make)
  const piece = () => draw.of([
    { type: 'input_text', text: text(), ...(draw.yes() ? { providerData: { a: 1 } } : {}) },
    { type: 'input_image', image: 'data:image/png;base64,aGk=', detail: 'low' },
    { type: 'input_image', image: { id: 'file_1' } },
    { type: 'input_file', file: 'data:text/plain;base64,aGk=', filename: 'a' },
  ])
  const said = () => draw.of([
    { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: text() }], ...extra() },
    { role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: text() }, { type: 'refusal', refusal: 'no' }] },
    { type: 'function_call', callId: id(), name: 'tool', arguments: draw.of(['{"a":1}', '{broken', '']), status: 'completed', ...extra() },
    { type: 'reasoning', content: some(() => ({ type: 'input_text', text: text() })), ...extra() },
    { type: 'hosted_tool_call', name: 'web_search', arguments: '{}', status: 'completed', ...extra() },
    { type: 'computer_call', callId: id(), status: 'completed', action: { type: 'screenshot' } },
  ])
  const output = () => draw.of([text(), { type: 'text', text: text() }, [{ type: 'input_text', text: text() }, { type: 'input_image', image: 'https://example.com/a.png' }]])
  return [
    [{ role: 'user', content: text(), ...extra() }],
    [{ type: 'message', role: 'user', content: some(piece), ...extra() }],
    [{ role: 'system', content: text() }],
    some(said),
    [{ type: 'function_call_result', callId: id(), name: 'tool', status: draw.of(['completed', 'incomplete']), output: output(), ...extra() }],
    [{ type: 'computer_call_result', callId: id(), output: { type: 'computer_screenshot', data: 'data:image/png;base64,aGk=' } }],
  ]
}
