// A session of pi's as the extension meets it: a tree of entries, of which the branch to
// the newest is in force, and what of it the model sees. The rules are those of pi 1.6.0.
const editable = e => e?.type === 'custom_message' || (e?.type === 'message' && ['user', 'assistant', 'toolResult'].includes(e.message.role))

export function session(id) {
  const entries = []
  let leaf = null
  const find = id => entries.find(e => e.id === id)
  const add = draft => {
    const entry = { ...draft, id: 'e' + entries.length, parentId: leaf }
    if (draft.type === 'context_edit' && !(editable(find(draft.targetId)) && branch().some(e => e.id === draft.targetId))) throw new Error('no editable entry: ' + JSON.stringify(draft))
    if (draft.type === 'compaction' && !draft.firstKeptEntryId) entry.firstKeptEntryId = entry.id
    entries.push(entry)
    leaf = entry.id
    return entry
  }
  const branch = () => {
    const path = []
    for (let e = find(leaf); e; e = find(e.parentId)) path.unshift(e)
    return path
  }
  const shown = entry => {
    const roles = { custom_message: 'custom', compaction: 'compactionSummary', branch_summary: 'branchSummary' }
    return entry.message ? [entry.message] : roles[entry.type] ? [{ ...entry, role: roles[entry.type] }] : []
  }
  const buildSessionProjection = () => {
    const path = branch()
    const at = path.findLastIndex(e => e.type === 'compaction')
    const kept = path.findIndex(e => e.id === path[at]?.firstKeptEntryId)
    const left = at < 0 ? path : [path[at], ...path.slice(kept < 0 ? at : kept, at), ...path.slice(at + 1)]
    const edits = new Map(left.filter(e => e.type === 'context_edit').map(e => [e.targetId, e.replacement]))
    const all = left.map((sourceEntry, i) => {
      const edit = edits.get(sourceEntry.id)
      const hidden = edit === null || (sourceEntry.type === 'compaction' && i > 0)
      return { sourceEntry, messages: hidden ? [] : shown(sourceEntry).map(m => (edit ? { ...m, content: edit.content } : m)) }
    })
    return { entries: all, messages: all.flatMap(e => e.messages) }
  }
  return {
    entries,
    add,
    message: message => add({ type: 'message', message }),
    goBack: to => void (leaf = to),
    manager: { getSessionId: () => id, getBranch: branch, getEntries: () => [...entries], buildSessionProjection },
  }
}

// played is the extension with what pi gives it.
export async function played(plugin, id, contextWindow) {
  const { default: extension } = await import(plugin)
  const handlers = {}
  const tools = {}
  const logged = []
  const s = session(id)
  extension({
    on: (event, f) => void (handlers[event] = f),
    registerTool: t => void (tools[t.name] = t),
    getActiveTools: () => ['bash'],
    getAllTools: () => [{ name: 'bash', description: 'Runs a command.', parameters: { type: 'object' } }],
  })
  const ctx = {
    hasUI: true,
    ui: { notify: s => void logged.push(s) },
    model: { id: 'm', contextWindow, maxTokens: 2000 },
    getSystemPrompt: () => 'You read parts.',
    sessionManager: s.manager,
  }
  // step is a call of the shell with its result: the numbered part of the task.
  const step = i => {
    const call = 'call_' + i
    s.message({ role: 'assistant', stopReason: 'toolUse', content: [{ type: 'thinking', thinking: 'I go on.', thinkingSignature: 'seal' }, { type: 'text', text: 'Part ' + i }, { type: 'toolCall', id: call, name: 'bash', arguments: { command: './part ' + i } }] })
    const text = i % 5 === 0 ? 'exit 1' : `part ${i}: the code is K${i * 7919}\n` + `line of part ${i}\n`.repeat(400)
    s.message({ role: 'toolResult', toolCallId: call, toolName: 'bash', isError: i % 5 === 0, content: [{ type: 'text', text }] })
  }
  const turnEnd = async entries => {
    const made = await handlers.turn_end({ outcome: 'completed', entries, context: { contextEntries: s.manager.buildSessionProjection().entries } }, ctx)
    for (const draft of made?.entries ?? []) s.add({ ...draft, ...(draft.type === 'compaction' && { fromHook: true }) })
    return made?.entries ?? []
  }
  const compact = () => handlers.session_before_compact({ preparation: { tokensBefore: 1 }, reason: 'threshold' }, ctx)
  const recall = query => tools.recall.execute('c', { query }, undefined, undefined, ctx).then(r => r.content[0].text, err => 'error: ' + err.message)
  return { s, logged, step, turnEnd, compact, recall }
}
