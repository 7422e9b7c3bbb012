// pi's conversation goes to Palimpsest's daemon after each turn, and what comes back says
// which of its messages stay, which go and what stands in their place: that becomes
// context edits in pi's session. All decisions are the daemon's; pi's history and its
// files stay whole. Whatever fails, pi goes on as it does without us.
import { answer, byID, prepare, said, text, tools } from './palimpsest/daemon.js'
import { blocks, remade, told as form } from './palimpsest/messages.js'

// told is an entry of pi's session in the daemon's form, nothing for what the model does
// not see.
function told(entry) {
  const roles = { custom_message: 'custom', compaction: 'compactionSummary', branch_summary: 'branchSummary' }
  return form(entry.id, entry.message ?? { ...entry, role: roles[entry.type] })
}

const own = entry => blocks(entry.type === 'custom_message' ? entry.content : (entry.message?.content ?? []))

const editable = entry => entry.type === 'custom_message' || entry.type === 'message'
const asks = entry => editable(entry) && entry.message?.role !== 'toolResult' && entry.message?.role !== 'assistant'

// wanted is what entries have to say after the edits: null for nothing; those that are not
// in it say what they say by themselves. A message that is put in stands at the end of the
// user's message before it: in an answer it would stand before its reasoning.
function wanted(entries, edits) {
  const changes = byID(edits, entries.map(e => e.id))
  const all = new Map()
  let place // the last of the user's messages that stays, or the first that goes
  const insert = list => {
    if (!list?.length) return
    if (!place) throw new Error('there is no message of the user for a summary')
    const before = all.has(place.id) ? (all.get(place.id) ?? []) : own(place)
    all.set(place.id, [...before, ...list.flatMap(said).map(text)])
  }
  for (const entry of entries.filter(editable)) {
    const e = changes.get(entry.id)
    insert(e?.insert_before)
    if (e?.omit) all.set(entry.id, null)
    else if (e?.content) all.set(entry.id, remade(own(entry), e.content))
    if (asks(entry) && (!e?.omit || !place)) place = entry
  }
  insert(changes.get('')?.insert_before)
  return all
}

// drafts are the context edits that make of what the model sees what is wanted.
function drafts(projected, want) {
  return projected.flatMap(({ sourceEntry: entry, messages }) => {
    if (!editable(entry) || !told(entry)) return []
    const content = want.has(entry.id) ? want.get(entry.id) : own(entry)
    const shown = messages.length === 0 ? null : blocks(messages[0].content)
    if (JSON.stringify(content) === JSON.stringify(shown)) return []
    return [{ type: 'context_edit', targetId: entry.id, replacement: content === null ? null : { content } }]
  })
}

// summed is a compaction of pi's of what the edits leave: all before the first entry
// from which on none goes, as one text.
function summed(entries, edits, tokensBefore) {
  const heard = entries.filter(told)
  const changes = byID(edits, heard.map(e => e.id))
  let at = heard.findLastIndex(e => changes.get(e.id)?.omit) + 1
  while (heard[at]?.message?.role === 'toolResult') at++
  if (at === 0 || at >= heard.length) throw new Error('there is nothing to take out')
  const flat = parts => said({ parts }).join('\n')
  const texts = heard.slice(0, at + 1).flatMap((entry, i) => {
    const e = changes.get(entry.id)
    const m = told(entry)
    const before = (e?.insert_before ?? []).map(n => flat(n.parts))
    return i === at || e?.omit ? before : [...before, `[${m.role}] ${flat(e?.content ?? m.parts)}`]
  })
  return { summary: texts.filter(Boolean).join('\n\n'), firstKeptEntryId: heard[at].id, tokensBefore }
}

// threads are the names of a conversation's threads, the newest first. What was before a
// compaction of pi's is one text after it: the conversation goes on in a thread of its own.
function threads(ctx) {
  const session = 'pi.' + ctx.sessionManager.getSessionId()
  const compactions = ctx.sessionManager.getBranch().filter(e => e.type === 'compaction')
  return [session, ...compactions.map(e => session + '.' + e.id)].reverse()
}

export default function (pi) {
  // asked is what the daemon says to what the model would see next.
  async function asked(projected, ctx, more) {
    const offered = new Set(pi.getActiveTools())
    const base = {
      model: ctx.model?.id,
      system: [{ text: ctx.getSystemPrompt() }],
      tools: pi.getAllTools().filter(t => offered.has(t.name)).map(t => ({ name: t.name, description: t.description, schema: t.parameters })),
    }
    const size = { ...(ctx.model?.contextWindow > 0 && { window: ctx.model.contextWindow }), ...(ctx.model?.maxTokens > 0 && { output: ctx.model.maxTokens }) }
    const messages = projected.flatMap(p => (p.sourceEntry.type === 'compaction' && p.messages.length === 0 ? [] : (told(p.sourceEntry) ?? [])))
    return prepare(threads(ctx)[0], { ...size, ...more, base, messages })
  }

  // tried does what pi does without us where it fails.
  async function tried(ctx, act) {
    try {
      return await act()
    } catch (err) {
      if (ctx.hasUI) ctx.ui.notify('palimpsest: ' + err.message, 'warning')
      else console.error('palimpsest: ' + err.message)
      return undefined
    }
  }

  pi.on('turn_end', (event, ctx) =>
    tried(ctx, async () => {
      if (event.outcome !== 'completed') return undefined
      const projected = event.context.contextEntries
      const made = drafts(projected, wanted(projected.map(p => p.sourceEntry), await asked(projected, ctx)))
      return made.length > 0 ? { entries: [...event.entries, ...made] } : undefined
    }),
  )

  pi.on('session_before_compact', (event, ctx) =>
    tried(ctx, async () => {
      const projected = ctx.sessionManager.buildSessionProjection().entries
      const edits = await asked(projected, ctx, { force: true, instructions: event.customInstructions })
      return { compaction: summed(projected.map(p => p.sourceEntry), edits, event.preparation.tokensBefore) }
    }),
  )

  for (const t of tools) {
    pi.registerTool({
      name: t.name,
      label: t.name,
      description: t.description,
      parameters: t.schema,
      async execute(id, params, _signal, _onUpdate, ctx) {
        return { content: [text(await answer(threads(ctx), t, id, params))], details: {} }
      },
    })
  }
}
