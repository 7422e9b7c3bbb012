import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages'

/** Draws messages of LangChain. */
export function messages(draw) {
  const text = () => draw.of(['', 'plain', 'two\nlines', '"quoted" \\ \u2028 \u{1f600}', 'x'.repeat(300)])
  const id = () => `call_${draw.below(1000)}`
  const some = (make) => Array.from({ length: 2 + draw.below(4) }, make)
  const beside = () => (draw.yes() ? { id: `m${draw.below(9)}`, name: 'n', additional_kwargs: { key: draw.below(9) }, response_metadata: { model: 'm' } } : {})
  const block = () => draw.of([
    { type: 'text', text: text() }, { type: 'text', text: text(), cache_control: { type: 'ephemeral' } },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=', detail: 'low' } },
    { type: 'input_audio', input_audio: { data: 'aGk=', format: 'wav' } },
  ])
  const thought = () => draw.of([{ type: 'text', text: text() }, { type: 'thinking', thinking: text(), signature: 's' }, { type: 'reasoning', reasoning: text() }, { type: 'redacted_thinking', data: 'x' }])
  const args = () => draw.of([{}, { a: 1, b: ['c', null, { d: text() }] }])
  const call = () => ({ id: id(), name: 'tool', args: args(), type: 'tool_call' })
  const used = call()
  return [
    new SystemMessage({ content: text() }),
    new HumanMessage({ content: text(), ...beside() }),
    new HumanMessage({ content: some(block), ...beside() }),
    new AIMessage({ content: text(), tool_calls: draw.yes() ? some(call) : [], ...beside() }),
    new AIMessage({ content: some(thought), tool_calls: some(call), usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 }, ...beside() }),
    new AIMessage({ content: [{ type: 'text', text: text() }, { type: 'tool_use', id: used.id, name: used.name, input: used.args }], tool_calls: [used] }),
    new ToolMessage({ content: text(), tool_call_id: id(), name: 'tool', status: draw.of(['success', 'error']), artifact: { a: 1 } }),
    new ToolMessage({ content: some(block), tool_call_id: id(), name: 'tool' }),
  ]
}
