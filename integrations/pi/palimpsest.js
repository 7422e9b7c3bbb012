// pi's conversation goes to Palimpsest's daemon after each turn, and what comes back says
// which of its messages stay, which go and what stands in their place: that becomes
// context edits in pi's session, or a compaction where pi lets nobody edit what changes.
// All decisions are the daemon's; pi's history and its files stay whole. Whatever fails, pi
// goes on as it does without us.
import { answer, byID, prepare, said, text, tools } from './palimpsest/daemon.js'
import { blocks, remade, told } from './palimpsest/messages.js'

// MARK names what we wrote into a session: the details of a compaction, and an entry that
// says how many of the context edits after it are ours.
const MARK = 'palimpsest'

const roles = { custom_message: 'custom', compaction: 'compactionSummary', branch_summary: 'branchSummary' }
const messageOf = entry => entry.message ?? { ...entry, role: roles[entry.type] }

// editable are the messages whose content pi lets us edit.
const editable = m => ['user', 'assistant', 'toolResult', 'custom'].includes(m.role)

// conversation is what the daemon is told of the branch that pi's user is on: its messages
// as they are without our own edits and compactions, and the names of its threads, the
// newest first. Where it is not any more what the daemon was told (pi or somebody else
// compacted or edited it, or the user went back), it goes on in a thread of its own; in
// those before only what such a compaction hid is looked for.
function conversation(sessions) {
  const path = sessions.getBranch()
  const own = new Set(path.flatMap((e, i) => (e.type === 'custom' && e.customType === MARK ? path.slice(i + 1, i + 1 + (e.data?.edits ?? 0)) : [])))
  const compacted = e => e.type === 'compaction' && !e.details?.[MARK]
  const edits = e => e.type === 'context_edit' && !own.has(e)

  const name = 'pi.' + sessions.getSessionId()
  const first = new Map() // the first entry after each
  for (const e of sessions.getEntries?.() ?? []) if (e.parentId !== undefined && !first.has(e.parentId)) first.set(e.parentId, e.id)
  const threads = [name]
  for (const e of path) {
    if (compacted(e)) threads.unshift(name)
    const back = first.has(e.parentId) && first.get(e.parentId) !== e.id
    if (compacted(e) || edits(e) || back) threads[0] = name + '.' + e.id
  }

  const begin = path.findLast(compacted)
  const at = path.indexOf(begin)
  const kept = path.findIndex(e => e.id === begin?.firstKeptEntryId)
  const left = begin ? [begin, ...path.slice(kept < 0 ? at : kept, at), ...path.slice(at + 1)] : path
  const edited = new Map(path.filter(edits).map(({ targetId, replacement: r }) => [targetId, typeof r === 'string' || Array.isArray(r) ? { content: r } : r]))
  const messages = left.flatMap(e => {
    if ((e.type === 'compaction' && e !== begin) || edited.get(e.id) === null) return []
    const m = { ...messageOf(e), ...edited.get(e.id) }
    const form = told(e.id, m)
    return form ? [{ id: e.id, m, form }] : []
  })
  return { messages, threads, newest: path.findLast(e => e.type === 'compaction') }
}

// summed is all before a message after the edits, as one text.
function summed(messages, changes, at) {
  const flat = parts => [...said({ parts }), ...parts.flatMap(p => (p.type === 'tool_call' ? [`calls ${p.tool} ${p.arguments}`] : []))].join('\n')
  const texts = messages.slice(0, at + 1).flatMap(({ id, form }, i) => {
    const e = changes.get(id)
    const before = (e?.insert_before ?? []).map(n => flat(n.parts))
    const content = i === at || e?.omit ? '' : flat(e?.content ?? form.parts)
    return content ? [...before, `[${form.role}] ${content}`] : before
  })
  return texts.filter(s => s.trim()).join('\n\n')
}

// compaction is one of pi's of what the edits leave: all before the first message from
// which on none goes and none is put in, as one text. It is nothing where that says no more
// than the one that pi has.
function compaction({ messages, newest }, changes) {
  const last = is => messages.findLastIndex(({ id, m }) => is(changes.get(id) ?? {}, m))
  let at = Math.max(last((e, m) => e.omit || (e.content && !editable(m))) + 1, last(e => e.insert_before?.length > 0))
  while (messages[at]?.m.role === 'toolResult' || messages[at]?.m.role === roles.compaction) at++
  if (at >= messages.length || changes.get('')?.insert_before?.length > 0) throw new Error('no message would stay')
  const summary = summed(messages, changes, at)
  const firstKeptEntryId = messages[at].id
  if (!summary || (summary === newest?.summary && firstKeptEntryId === newest.firstKeptEntryId)) return undefined
  return { summary, firstKeptEntryId, details: { [MARK]: true } }
}

// wanted is what messages have to say after the edits: null for nothing; those that are not
// in it say what they say by themselves. A message that is put in stands at the end of the
// user's message before it: in an answer it would stand before its reasoning. It is nothing
// where pi has no place for a change.
function wanted(messages, changes) {
  const all = new Map()
  let place // the last of the user's messages that stays, or the first that goes
  for (const { id, m } of [...messages, { id: '' }]) {
    const { insert_before: before = [], omit, content } = changes.get(id) ?? {}
    if ((before.length > 0 && !place) || ((omit || content) && !editable(m))) return undefined
    if (before.length > 0) all.set(place.id, [...((all.has(place.id) ? all.get(place.id) : blocks(place.m.content)) ?? []), ...before.flatMap(said).map(text)])
    if (omit) all.set(id, null)
    else if (content) all.set(id, remade(blocks(m.content), content))
    if ((m?.role === 'user' || m?.role === 'custom') && (!omit || !place)) place = { id, m }
  }
  return all
}

// drafts are the entries that make of what the model sees what the edits say: context edits
// where that is possible after the compaction that pi has, else with one of ours.
function drafts(talk, edits, shown) {
  const { messages, newest } = talk
  const changes = byID(edits, messages.map(({ id }) => id))
  // What a compaction says before the first message that it keeps is not put in again.
  const after = ({ firstKeptEntryId: id }) => new Map(changes).set(id, { ...changes.get(id), insert_before: [] })
  const place = made => messages.findIndex(({ id }) => id === made.firstKeptEntryId)
  const own = newest?.details?.[MARK] ? newest : undefined
  let at = own ? place(own) : 0
  let want = own ? at >= 0 && summed(messages, changes, at) === own.summary && wanted(messages.slice(at), after(own)) : wanted(messages, changes)
  const made = want ? undefined : compaction(talk, changes)
  if (made) {
    at = place(made)
    want = wanted(messages.slice(at), after(made))
  }
  if (!want) return []
  const now = new Map(shown.map(p => [p.sourceEntry.id, p.messages]))
  const changed = messages.slice(at).flatMap(({ id, m }) => {
    if (!editable(m) || !now.has(id)) return []
    const content = want.has(id) ? want.get(id) : blocks(m.content)
    const before = now.get(id).length === 0 ? null : blocks(now.get(id)[0].content)
    if (JSON.stringify(content) === JSON.stringify(before)) return []
    return [{ type: 'context_edit', targetId: id, replacement: content && { content } }]
  })
  const mark = changed.length > 0 ? [{ type: 'custom', customType: MARK, data: { edits: changed.length } }] : []
  return [...mark, ...changed, ...(made ? [{ type: 'compaction', ...made }] : [])]
}

export default function (pi) {
  // asked is what the daemon says to what the model would see next.
  async function asked({ messages, threads }, ctx, more) {
    const offered = new Set(pi.getActiveTools())
    const base = {
      model: ctx.model?.id,
      system: [{ text: ctx.getSystemPrompt() }],
      tools: pi.getAllTools().filter(t => offered.has(t.name)).map(t => ({ name: t.name, description: t.description, schema: t.parameters })),
    }
    const size = { ...(ctx.model?.contextWindow > 0 && { window: ctx.model.contextWindow }), ...(ctx.model?.maxTokens > 0 && { output: ctx.model.maxTokens }) }
    return prepare(threads[0], { ...size, ...more, base, messages: messages.map(({ form }) => form) })
  }

  // tried does what pi does without us where it fails.
  async function tried(ctx, act) {
    try {
      return await act()
    } catch (err) {
      try {
        if (ctx.hasUI) ctx.ui.notify('palimpsest: ' + err.message, 'warning')
        else console.error('palimpsest: ' + err.message)
      } catch {} // the session has been replaced meanwhile
      return undefined
    }
  }

  pi.on('turn_end', (event, ctx) =>
    tried(ctx, async () => {
      // What others write at this turn stands: it is seen at the next one.
      if (event.outcome !== 'completed' || event.entries.some(e => e.type === 'compaction')) return undefined
      const others = new Set(event.entries.map(e => e.targetId))
      const talk = conversation(ctx.sessionManager)
      const shown = event.context.contextEntries.filter(p => !others.has(p.sourceEntry.id))
      const made = drafts(talk, await asked(talk, ctx), shown)
      return made.length > 0 ? { entries: [...event.entries, ...made] } : undefined
    }),
  )

  pi.on('session_before_compact', (event, ctx) =>
    tried(ctx, async () => {
      const talk = conversation(ctx.sessionManager)
      const edits = await asked(talk, ctx, { force: true, instructions: event.customInstructions })
      const changes = byID(edits, talk.messages.map(({ id }) => id))
      const made = compaction(talk, changes)
      // At pi's threshold, ours that stands says more than pi's own words would: those lose the task.
      if (!made && event.reason === 'threshold' && talk.newest?.details?.[MARK]) return { cancel: true }
      if (!made) throw new Error('there is nothing to take out')
      return { compaction: { ...made, tokensBefore: event.preparation.tokensBefore } }
    }),
  )

  for (const t of tools) {
    pi.registerTool({
      name: t.name,
      label: t.name,
      description: t.description,
      parameters: t.schema,
      async execute(id, params, _signal, _onUpdate, ctx) {
        return { content: [text(await answer(conversation(ctx.sessionManager).threads, t, id, params))], details: {} }
      },
    })
  }
}
