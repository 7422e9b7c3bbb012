// An agent with one shell tool, written with each of the npm SDKs:
//   node agent.mjs anthropic|anthropic-threads|openai-chat|openai-responses|openai-conversations|google|agents|langgraph|ai-anthropic|ai-openai TASK
// Base URL and key come from the environment, as each SDK reads them.
import { execFileSync } from 'node:child_process';

const [api, task] = process.argv.slice(2);
const description = 'Runs a shell command and gives its output.';
const schema = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'], additionalProperties: false };
const run = (command) => execFileSync('sh', ['-c', command], { encoding: 'utf8' });
const most = 1000;

// once more, where a connection broke in the middle of an answer: the SDKs retry
// only what failed before it.
const again = async (ask) => {
  try { return await ask(); } catch (error) {
    if (error.status) throw error;
    return await ask();
  }
};

const agents = {
  // Not streamed, thinking on.
  async anthropic() {
    const { default: Anthropic } = await import('@anthropic-ai/sdk');
    const client = new Anthropic();
    const messages = [{ role: 'user', content: task }];
    for (let i = 0; i < most; i++) {
      const answer = await again(() => client.messages.create({
        model: 'claude-sonnet-4-5', max_tokens: 4096, messages, system: 'You run commands.',
        thinking: { type: 'enabled', budget_tokens: 2048 },
        tools: [{ name: 'bash', description, input_schema: schema, cache_control: { type: 'ephemeral' } }],
      }));
      messages.push({ role: 'assistant', content: answer.content });
      const calls = answer.content.filter((b) => b.type === 'tool_use');
      if (!calls.length) return answer.content.filter((b) => b.type === 'text').map((b) => b.text).join('');
      messages.push({ role: 'user', content: calls.map((c) => ({ type: 'tool_result', tool_use_id: c.id, content: run(c.input.command) })) });
    }
  },
  // A message thread: the SDK's tool runner sends what is new alone.
  async 'anthropic-threads'() {
    const { default: Anthropic } = await import('@anthropic-ai/sdk');
    const thread = new Anthropic().beta.messages.thread({
      model: 'claude-sonnet-4-5', max_tokens: 4096, messages: [{ role: 'user', content: task }], system: 'You run commands.',
      tools: [{ name: 'bash', description, input_schema: schema, run: ({ command }) => run(command) }],
    });
    const answer = await again(() => thread.toolRunner({ max_iterations: most }).runUntilDone());
    return answer.content.filter((b) => b.type === 'text').map((b) => b.text).join('');
  },
  // Streamed.
  async 'openai-chat'() {
    const { default: OpenAI } = await import('openai');
    const client = new OpenAI();
    const messages = [{ role: 'system', content: 'You run commands.' }, { role: 'user', content: task }];
    for (let i = 0; i < most; i++) {
      const completion = await again(() => client.chat.completions.stream({
        model: 'gpt-5.2', messages, stream_options: { include_usage: true },
        tools: [{ type: 'function', function: { name: 'bash', description, parameters: schema } }],
      }).finalChatCompletion());
      const { message } = completion.choices[0];
      messages.push({ role: 'assistant', content: message.content, ...(message.tool_calls?.length && { tool_calls: message.tool_calls.map(({ id, type, function: { name, arguments: a } }) => ({ id, type, function: { name, arguments: a } })) }) });
      if (!message.tool_calls?.length) return message.content;
      for (const c of message.tool_calls) messages.push({ role: 'tool', tool_call_id: c.id, content: run(JSON.parse(c.function.arguments).command) });
    }
  },
  // Not streamed, nothing stored, encrypted reasoning.
  async 'openai-responses'() {
    const { default: OpenAI } = await import('openai');
    const client = new OpenAI();
    const input = [{ role: 'user', content: task }];
    for (let i = 0; i < most; i++) {
      const answer = await again(() => client.responses.create({
        model: 'gpt-5.2', instructions: 'You run commands.', input, store: false, include: ['reasoning.encrypted_content'],
        tools: [{ type: 'function', name: 'bash', description, parameters: schema, strict: true }],
      }));
      input.push(...answer.output);
      const calls = answer.output.filter((item) => item.type === 'function_call');
      if (!calls.length) return answer.output_text;
      for (const c of calls) input.push({ type: 'function_call_output', call_id: c.call_id, output: run(JSON.parse(c.arguments).command) });
    }
  },
  // Streamed, over a conversation that the provider holds.
  async 'openai-conversations'() {
    const { default: OpenAI } = await import('openai');
    const client = new OpenAI();
    const conversation = await client.conversations.create();
    let input = [{ role: 'user', content: task }];
    for (let i = 0; i < most; i++) {
      const answer = await again(() => client.responses.stream({
        model: 'gpt-5.2', instructions: 'You run commands.', input, conversation: conversation.id,
        tools: [{ type: 'function', name: 'bash', description, parameters: schema, strict: true }],
      }).finalResponse());
      const calls = answer.output.filter((item) => item.type === 'function_call');
      if (!calls.length) return answer.output_text;
      input = calls.map((c) => ({ type: 'function_call_output', call_id: c.call_id, output: run(JSON.parse(c.arguments).command) }));
    }
  },
  // Not streamed.
  async google() {
    const { GoogleGenAI } = await import('@google/genai');
    const client = new GoogleGenAI({ apiKey: process.env.GEMINI_API_KEY, httpOptions: { baseUrl: process.env.GOOGLE_GEMINI_BASE_URL } });
    const contents = [{ role: 'user', parts: [{ text: task }] }];
    const config = { systemInstruction: 'You run commands.', tools: [{ functionDeclarations: [{ name: 'bash', description, parametersJsonSchema: schema }] }] };
    for (let i = 0; i < most; i++) {
      const answer = await again(() => client.models.generateContent({ model: 'gemini-2.5-pro', contents, config }));
      contents.push(answer.candidates[0].content);
      const calls = answer.functionCalls ?? [];
      if (!calls.length) return answer.text;
      contents.push({ role: 'user', parts: calls.map((c) => ({ functionResponse: { id: c.id, name: c.name, response: { output: run(c.args.command) } } })) });
    }
  },
  // The runner of the OpenAI Agents SDK, streamed.
  async agents() {
    const { Agent, run: runAgent, tool: agentTool, setTracingDisabled } = await import('@openai/agents');
    setTracingDisabled(true);
    const bash = agentTool({ name: 'bash', description, parameters: schema, strict: true, execute: async ({ command }) => run(command) });
    const result = await runAgent(new Agent({ name: 'reader', model: 'gpt-5.2', instructions: 'You run commands.', tools: [bash] }), task, { stream: true, maxTurns: most });
    await result.completed;
    return result.finalOutput;
  },
  // LangGraph's graph of a model and its tools, over Chat Completions, not streamed (it would ask the network for a tokenizer).
  async langgraph() {
    const { MessagesAnnotation, StateGraph } = await import('@langchain/langgraph');
    const { ToolNode, toolsCondition } = await import('@langchain/langgraph/prebuilt');
    const { tool: graphTool } = await import('@langchain/core/tools');
    const { ChatOpenAI } = await import('@langchain/openai');
    const tools = [graphTool(({ command }) => run(command), { name: 'bash', description, schema })];
    const model = new ChatOpenAI({ model: 'gpt-5.2', streaming: false, useResponsesApi: false, configuration: { baseURL: process.env.OPENAI_BASE_URL } }).bindTools(tools);
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('model', async ({ messages }) => ({ messages: [await model.invoke(messages)] })).addNode('tools', new ToolNode(tools))
      .addEdge('__start__', 'model').addConditionalEdges('model', toolsCondition).addEdge('tools', 'model').compile();
    const { messages } = await graph.invoke({ messages: [{ role: 'system', content: 'You run commands.' }, { role: 'user', content: task }] }, { recursionLimit: 2 * most });
    return messages.at(-1).content;
  },
  // Streamed; tools are run by the AI SDK.
  'ai-anthropic': async () => loop((await import('@ai-sdk/anthropic')).createAnthropic({ baseURL: process.env.ANTHROPIC_BASE_URL + '/v1' })('claude-sonnet-4-5')),
  'ai-openai': async () => loop((await import('@ai-sdk/openai')).createOpenAI({})('gpt-5.2'), { openai: { store: false, include: ['reasoning.encrypted_content'] } }),
};

async function loop(model, providerOptions) {
  const { streamText, tool, jsonSchema } = await import('ai');
  const tools = { bash: tool({ description, inputSchema: jsonSchema(schema), execute: async ({ command }) => run(command) }) };
  const messages = [{ role: 'user', content: task }];
  for (let i = 0; i < most; i++) {
    const [response, reason, text] = await again(async () => {
      let failed;
      const result = streamText({ model, providerOptions, system: 'You run commands.', messages, tools, onError: ({ error }) => { failed = error; } });
      await result.consumeStream();
      if (failed) throw failed;
      return [await result.response, await result.finishReason, await result.text];
    });
    messages.push(...response.messages);
    if (reason !== 'tool-calls') return text;
  }
}

console.log(await agents[api]());
