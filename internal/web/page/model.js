// The model of the page: a view, what is derived from it once, and what is chosen.
const state = {
  view: null, m: null, side: 'log', chosen: -1, hover: null, kind: '', record: -1, query: '', hits: null,
  logRows: [], promptRows: [], preview: null, source: null, tab: 'session',
};

// derive finds what goes with what: for each message the parts of the prompt that
// stand for it, for each side where its tokens begin.
function derive(v) {
  const m = { at: [], from: [], kinds: {}, largest: 1, tied: new Map() };
  m.parts = v.messages.map(() => -1);
  m.ofRecord = v.records.map(() => []);
  m.members = v.records.map(() => []);
  v.prompt.forEach((p, n) => {
    if (p.record >= 0) m.ofRecord[p.record].push(n);
    if (p.from >= 0) m.parts[p.from] = n;
  });
  v.messages.forEach((msg, i) => {
    if (msg.record < 0) return;
    m.members[msg.record].push(i);
    if (m.parts[i] < 0 && m.ofRecord[msg.record].length) m.parts[i] = m.ofRecord[msg.record][0];
  });
  for (const name of Object.keys(kinds)) m.kinds[name] = { messages: 0, before: 0, after: 0 };
  const head = v.prompt.reduce((n, p) => p.from < 0 && p.record < 0 && (p.role === 'system' || p.role === 'tools') ? n + p.tokens : n, 0);
  m.head = head;
  let sum = head;
  v.messages.forEach((msg, i) => {
    m.at[i] = sum;
    sum += msg.tokens;
    const k = m.kinds[actionOf(v, msg.record)];
    k.messages++;
    k.before += msg.tokens;
    m.largest = Math.max(m.largest, msg.tokens);
  });
  m.at.push(sum);
  sum = 0;
  v.prompt.forEach((p, n) => {
    m.from[n] = sum;
    sum += p.tokens;
    if (p.role !== 'system' && p.role !== 'tools' || p.from >= 0) m.kinds[actionOf(v, p.record)].after += p.tokens;
  });
  m.from.push(sum);
  m.folder = folderOf(v.messages.map((msg) => msg.label));
  let newer = 0; // tokens that stay behind a record
  for (const msg of v.messages.slice().reverse()) {
    if (msg.record < 0) newer += msg.tokens;
    else v.records[msg.record].newer ??= newer;
  }
  m.rooms = rooms(v);
  m.again = again(v);
  m.total = Math.max(m.at[v.messages.length], m.from[v.prompt.length], 1);
  return m;
}

// rooms are what the tokens of the prompt go to.
function rooms(v) {
  const out = { system: 0, tools: 0, rules: 0, summary: 0, recent: 0 };
  for (const p of v.prompt) {
    const msg = p.from >= 0 ? v.messages[p.from] : null;
    const to = !msg && p.record < 0 ? (p.role === 'tools' ? 'tools' : p.role === 'system' ? 'system' : 'summary') :
      p.record >= 0 ? 'summary' : msg.pinned || msg.role === 'system' || msg.role === 'harness' ? 'rules' : 'recent';
    out[to] += p.tokens;
  }
  return out;
}

// again are the results that bring back what a compaction took: look-ups, and what was read
// before it and is read once more behind it.
function again(v) {
  const cuts = [...v.plans.map((p) => p.at), ...v.marks.map((mark) => mark.at)].sort((a, b) => a - b), seen = new Map(), found = new Set();
  let behind = 0;
  v.messages.forEach((msg, i) => {
    while (behind < cuts.length && cuts[behind] <= i) behind++;
    if (msg.role !== 'tool' || !msg.tool) return;
    const key = msg.tool + ' ' + msg.label, before = seen.get(key);
    if (/recall|read_artifact/.test(msg.tool) || before !== undefined && before < behind && /read|view|fetch|grep|glob|search/i.test(msg.tool)) found.add(i);
    seen.set(key, behind);
  });
  return found;
}
const actionOf = (v, record) => record < 0 ? 'include' : v.records[record].action;

// labelOf is what a part of the prompt is called.
function labelOf(v, p) {
  if (p.record >= 0) {
    const r = v.records[p.record];
    if (r.messages > 1) return kinds[r.action].word[0].toUpperCase() + kinds[r.action].word.slice(1) + ': ' + plural(r.messages, 'message') + ', ' + turns(r);
    return v.messages[r.first].label || p.label || '';
  }
  if (p.role === 'system' && p.from < 0) return 'System prompt';
  if (p.role === 'tools') return 'Tools that the model is offered';
  return p.from >= 0 ? v.messages[p.from].label : p.label || '';
}

// rows are what the two lists show: all, or what a filter leaves.
function filter() {
  const v = state.view, q = state.query.toLowerCase();
  const wanted = (i) => {
    const msg = v.messages[i];
    if (state.kind === 'again' ? !state.m.again.has(i) : state.kind && actionOf(v, msg.record) !== state.kind) return false;
    if (state.record >= 0 && msg.record !== state.record) return false;
    return !q || msg.label.toLowerCase().includes(q) || (msg.text || '').toLowerCase().includes(q) || (state.hits && state.hits.has(msg.id));
  };
  const all = !q && !state.kind && state.record < 0;
  state.logRows = [];
  v.messages.forEach((_, i) => { if (all || wanted(i)) state.logRows.push(i); });
  if (q) { // what has the words themselves goes before what only fits them
    const exact = (i) => hit(v.messages[i].label + '\n' + (v.messages[i].text || ''));
    state.logRows = [...state.logRows.filter(exact), ...state.logRows.filter((i) => !exact(i))];
  }
  const seen = new Set(state.logRows.map((i) => state.m.parts[i]));
  state.promptRows = [];
  v.prompt.forEach((p, n) => { if (all || seen.has(n) || q && ((p.text || '') + labelOf(v, p)).toLowerCase().includes(q)) state.promptRows.push(n); });
}

// hit reports whether a text has what is searched for, in these words.
const hit = (text) => text.toLowerCase().includes(state.query.toLowerCase());

// tied is what goes with what is hovered or chosen: messages and parts.
function tied(side, n) {
  const known = state.m.tied, key = n < 0 ? '' : side + n;
  if (!known.has(key)) {
    if (known.size > 20) known.clear();
    known.set(key, tie(side, n));
  }
  return known.get(key);
}
function tie(side, n) {
  const v = state.view, m = state.m;
  if (n < 0) return { record: -1, messages: new Set(), parts: new Set() };
  const record = side === 'log' ? v.messages[n].record : v.prompt[n].record;
  if (record >= 0) return { record, messages: new Set(m.members[record]), parts: new Set(m.ofRecord[record]) };
  const i = side === 'log' ? n : v.prompt[n].from;
  const p = side === 'log' ? m.parts[n] : n;
  return { record, messages: new Set(i >= 0 ? [i] : []), parts: new Set(p >= 0 ? [p] : []) };
}
// counterpart is where the other side shows the same.
function counterpart(side, n) {
  if (n < 0) return -1;
  if (side === 'log') return state.m.parts[n];
  const p = state.view.prompt[n];
  return p.record >= 0 ? (p.from >= 0 ? p.from : state.view.records[p.record].first) : p.from;
}
