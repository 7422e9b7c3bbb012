/** Draws messages of the AI SDK. */
export function messages(draw) {
  const text = () => draw.of(['', 'plain', 'two\nlines', '"quoted" \\ \u2028 \u{1f600}', 'x'.repeat(300)])
  const value = () => draw.of([null, 1.5, 'text', '{"a":1}', [], {}, { a: [1, { b: 'c' }] }, true])
  const options = () => (draw.yes() ? { providerOptions: { provider: { key: value() } } } : {})
  const id = () => `call_${draw.below(1000)}`
  const bytes = () => Uint8Array.from({ length: 1 + draw.below(9) }, () => draw.below(256))
  const file = () => draw.of([
    { type: 'file', data: bytes(), mediaType: 'image/png' },
    { type: 'file', data: 'aGVsbG8=', mediaType: 'application/pdf', filename: 'a.pdf' },
    { type: 'file', data: new URL('https://example.com/a.mp3'), mediaType: 'audio/mp3' },
    { type: 'file', data: { type: 'data', data: bytes() }, mediaType: 'video/mp4' },
    { type: 'file', data: { type: 'text', text: 'inline' }, mediaType: 'text/plain' },
    { type: 'file', data: { type: 'reference', reference: { provider: 'f1' } }, mediaType: 'application/zip' },
  ])
  const output = () => draw.of([
    { type: 'text', value: text() }, { type: 'error-text', value: text() }, { type: 'json', value: value() }, { type: 'error-json', value: value() },
    { type: 'execution-denied' }, { type: 'execution-denied', reason: 'no' },
    { type: 'content', value: [{ type: 'text', text: text() }, { type: 'file', data: { type: 'data', data: 'aGk=' }, mediaType: 'image/png' }] },
    { type: 'content', value: [{ type: 'text', text: text() }, { type: 'text', text: text() }] },
  ])
  const some = (make) => Array.from({ length: 1 + draw.below(4) }, make)
  const said = (...more) => draw.of([() => ({ type: 'text', text: text(), ...options() }), ...more])()
  return [
    { role: 'system', content: text(), ...options() },
    { role: 'user', content: text(), ...options() },
    { role: 'user', content: some(() => said(() => ({ ...file(), ...options() }), () => ({ type: 'image', image: bytes() }))), ...options() },
    { role: 'assistant', content: text() },
    { role: 'assistant', content: some(() => said(
      () => ({ type: 'reasoning', text: text(), ...options() }),
      () => ({ type: 'tool-call', toolCallId: id(), toolName: 'tool', input: value(), ...options() }),
      () => ({ type: 'tool-result', toolCallId: id(), toolName: 'tool', output: output() }),
      () => ({ type: 'tool-approval-request', approvalId: 'a', toolCallId: id() }),
      () => ({ type: 'custom', kind: 'openai-compaction', ...options() }),
      () => file(),
    )), ...options() },
    { role: 'tool', content: [...some(() => ({ type: 'tool-result', toolCallId: id(), toolName: 'tool', output: output(), ...options() })),
      ...(draw.yes() ? [{ type: 'tool-approval-response', approvalId: 'a', approved: true }] : [])] },
  ]
}
