// What happens when.
function choose(side, n, reveal) {
  if (!state.view) return;
  state.side = side;
  state.chosen = n;
  state.hover = null;
  $('tip').hidden = true;
  if (n >= 0 && reveal) {
    const other = counterpart(side, n);
    lists[side].reveal(n);
    if (other >= 0) lists[side === 'log' ? 'prompt' : 'log'].reveal(other);
  }
  panel.show();
  redraw();
  if (n >= 0 && reveal) requestAnimationFrame(() => { lists[side].reveal(n); redraw(); }); // the panel may have taken room
}

function hover(what, event) {
  const same = what && state.hover ? what.side === state.hover.side && what.n === state.hover.n : what === state.hover;
  if (!same) { state.hover = what; redraw(); }
  const tip = $('tip');
  if (!what || !event) { tip.hidden = true; return; }
  const v = state.view, item = what.side === 'log' ? v.messages[what.n] : v.prompt[what.n];
  const action = actionOf(v, item.record), r = item.record >= 0 ? v.records[item.record] : null;
  tip.replaceChildren(make('b', {}, (item.role === 'tool' && item.tool ? item.tool : people[item.role] || item.role) + ', ' + plural(item.tokens, 'token') + ', ' + kinds[action].word),
    what.side === 'log' ? item.label : labelOf(v, item), r && r.reason ? make('div', {}, 'because ' + because(r)) : '');
  tip.hidden = false;
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = Math.max(6, Math.min(event.clientX + 14, innerWidth - w - 8)) + 'px';
  tip.style.top = Math.max(6, Math.min(event.clientY + 14, innerHeight - h - 8)) + 'px';
}

function figures() {
  const v = state.view, m = state.m;
  const sum = make('div', { class: 'sum' }, short(v.tokens_before), make('i', {}, '→'), short(v.tokens_after), make('span', {}, v.tokens_after < v.tokens_before ? 'tokens, ' + share(v.tokens_before - v.tokens_after, v.tokens_before) + ' less' : 'tokens, nothing removed' + (v.budget ? ': they fit ' + short(v.budget) : '')));
  const chips = make('div', { class: 'kinds', role: 'group', 'aria-label': 'What became of the messages' });
  for (const [name, k] of Object.entries(kinds)) {
    const f = m.kinds[name];
    if (!f.messages) continue;
    const dot = make('span', { class: 'dot' });
    dot.style.background = 'var(--' + colourOf(name) + ')';
    chips.append(make('button', { class: 'kind', 'data-kind': name, 'aria-pressed': state.kind === name, title: k.verb, onclick: () => { state.kind = state.kind === name ? '' : name; figures(); refilter(); } },
      dot, make('b', {}, k.word), make('em', {}, number(f.messages) + (name === 'include' ? ' · ' + short(f.before) : ' · ' + short(f.before) + ' → ' + short(f.after)))));
  }
  const notes = (v.notes || []).map((n) => make('li', {}, n));
  const noted = notes.length ? make('details', { class: 'notes' }, make('summary', {}, plural(notes.length, 'note') + ' of the model'), make('ul', {}, ...notes)) : '';
  if (m.again.size) {
    const size = [...m.again].reduce((n, i) => n + v.messages[i].tokens, 0);
    chips.append(make('button', { class: 'kind', 'data-kind': 'again', 'aria-pressed': state.kind === 'again', title: 'Looked up or read once more after a compaction had taken it.', onclick: () => { state.kind = state.kind === 'again' ? '' : 'again'; figures(); refilter(); } },
      make('b', {}, 'looked up again'), make('em', {}, number(m.again.size) + ' · ' + short(size))));
  }
  if (v.cached) {
    const paid = (of) => v.steps.slice(0, -1).reduce((n, s) => n + (s[of] || 0), 0), whole = money(paid('whole_usd')), sent = money(paid('sent_usd'));
    sum.append(make('span', { title: 'What all requests so far cost, with the prompt cache of the provider' }, 'input so far ' + sent + (sent === whole ? '' : '; without compaction ' + whole)));
  }
  showRoom();
  $('figures').replaceChildren(sum, chips, noted, state.preview ? make('span', { class: 'banner' }, state.preview) : '');
  $('picture').setAttribute('aria-label', number(v.tokens_before) + ' tokens were said, the model gets ' + number(v.tokens_after) + ': ' +
    Object.entries(kinds).filter(([n]) => m.kinds[n].messages).map(([n, k]) => plural(m.kinds[n].messages, 'message') + ' ' + k.word).join(', '));
}

// showRoom says what the prompt goes to, how much is free, and when the next compaction is due.
function showRoom() {
  const v = state.view, words = { system: 'system', tools: 'tools', rules: 'must stay (rules, pins, last turn)', summary: 'summary', recent: 'recent' };
  const colours = { system: 'system', tools: 'tools', rules: 'user', summary: 'summarize', recent: 'kept' };
  const limit = v.compacts_at || v.budget || v.window, whole = Math.max(v.tokens_after, limit || 0);
  const bar = make('div', { class: 'room-bar', 'aria-hidden': 'true' }), key = make('p', { class: 'keyline' });
  for (const [name, word] of Object.entries(words)) {
    const tokens = state.m.rooms[name];
    if (!tokens) continue;
    const piece = make('i', { title: word }), dot = make('i', { class: 'dot' });
    piece.style.width = 100 * tokens / whole + '%';
    piece.style.background = dot.style.background = 'var(--' + colours[name] + ')';
    bar.append(piece);
    key.append(make('span', {}, dot, word + ' ', make('b', {}, short(tokens)), ' ' + share(tokens, v.tokens_after)));
  }
  if (limit > v.tokens_after) key.append(make('span', {}, 'free ', make('b', {}, short(limit - v.tokens_after)), ' of ' + (v.compacts_at ? '' : v.budget ? 'the budget of ' : 'the window of ') + short(limit)));
  if (v.compacts_at) key.append(make('span', {}, due(v)));
  if (v.side && v.side.length) key.append(make('span', { title: v.side.map((s) => plural(s.messages, 'message') + ': ' + s.title).join('\n') }, plural(v.side.length, 'other conversation') + ' of sub-agents or branches'));
  $('room').replaceChildren(bar, key);
}

// due says when the policy compacts, at the pace of the last requests.
function due(v) {
  const left = v.compacts_at - v.tokens_after, grown = v.steps.slice(-20).map((s) => s.sent).reduce((list, n, i, all) => i && n > all[i - 1] ? [...list, n - all[i - 1]] : list, []);
  if (left <= 0) return 'the next request is compacted';
  if (!grown.length) return 'compacts at ' + short(v.compacts_at);
  return 'compacts at ' + short(v.compacts_at) + ', in about ' + plural(Math.max(1, Math.round(left * grown.length / grown.reduce((a, b) => a + b))), 'request');
}

function refilter() {
  filter();
  lists.log.rows(state.logRows);
  lists.prompt.rows(state.promptRows);
  $('found').textContent = state.query ? state.logRows.length + ' of ' + state.view.messages.length : '';
  if (state.chosen >= 0) lists[state.side].reveal(state.chosen);
  picture.fresh();
}

// look shows a view; what was chosen stays, where it is still there.
function look(v) {
  const was = state.view && state.chosen >= 0 && state.side === 'log' ? state.view.messages[state.chosen].id : '';
  const end = state.view && lists.log.el.scrollTop + lists.log.el.clientHeight > state.view.messages.length * rowHeight - rowHeight;
  state.view = v;
  state.m = derive(v);
  if (state.record >= v.records.length) state.record = -1;
  if (state.kind && !(state.kind === 'again' ? state.m.again.size : state.m.kinds[state.kind].messages)) state.kind = '';
  $('title').textContent = v.title || v.thread_id;
  document.title = (v.title || v.thread_id) + ' · Palimpsest';
  $('meta').textContent = [v.agent, v.model, v.policy && 'policy ' + v.policy, plural(v.messages.length, 'message'), plural(v.messages.length ? v.messages[v.messages.length - 1].turn : 0, 'turn'), 'counted with ' + v.counter].filter(Boolean).join(' · ');
  $('copy-command').hidden = !v.command;
  figures();
  state.chosen = was ? v.messages.findIndex((m) => m.id === was) : -1;
  refilter();
  panel.show();
  if (end && live.served) requestAnimationFrame(() => { lists.log.el.scrollTop = 1e9; lists.prompt.el.scrollTop = 1e9; });
  overtime.show();
  if (!look.first) { look.first = performance.now(); requestAnimationFrame(() => requestAnimationFrame(() => performance.mark('first-picture'))); }
}

function tab(name) {
  state.tab = name;
  const home = name === 'home';
  for (const id of ['session', 'time', 'home']) $(id).hidden = id !== name;
  for (const id of ['session', 'time']) $('tab-' + id).setAttribute('aria-selected', id === name);
  $('figures').hidden = home;
  $('room').hidden = name !== 'session';
  document.body.classList.toggle('at-home', home);
  if (name === 'time') overtime.show();
  if (name === 'session') redraw();
}

function pick(name) {
  $('session').dataset.pick = name;
  for (const b of document.querySelectorAll('[data-pick]')) if (b.tagName === 'BUTTON') b.setAttribute('aria-selected', b.dataset.pick === name);
  redraw();
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  picture.recolour();
  overtime.draw();
}
const system = matchMedia('(prefers-color-scheme: dark)');
function remembered() { try { return localStorage.getItem('palimpsest-theme') || ''; } catch { return ''; } }
function turnTheme() {
  const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  try { localStorage.setItem('palimpsest-theme', next); } catch { /* a file has nowhere to keep it */ }
  theme(next);
}

const keysList = [
  ['↑ ↓', 'go through the log or the prompt'], ['→ ←', 'from the log to what stands in the prompt, and back'], ['Enter', 'read the details'],
  ['n N', 'the next and the last record'], ['/', 'search'], ['f', 'only the messages of this record'], ['c', 'copy the text'],
  ['1 2', 'the session, over time'], ['t', 'light or dark'], ['Esc', 'close, clear'], ['?', 'this list'],
];
const servedKeys = [['e', 'show again what the record hides'], ['p', 'pin the message'], ['o', 'open the artifact'], ['u', 'undo the last plan'], ['v', 'preview a plan']];

// step goes to the next record of the prompt, or the one before.
function stepRecord(by) {
  const v = state.view, from = state.side === 'log' ? state.chosen : counterpart('prompt', state.chosen);
  const here = from >= 0 ? v.messages[from].record : -1;
  for (let i = from + by; i >= 0 && i < v.messages.length; i += by) {
    const r = v.messages[i].record;
    if (r >= 0 && r !== here && (!state.kind || v.records[r].action === state.kind)) { choose('log', v.records[r].first, true); return; }
  }
}

document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
  if (e.key === 'Escape') {
    if (typing) { if (e.target.id === 'search') { e.target.value = ''; search(); } lists.log.el.focus(); } else if (state.chosen >= 0) { choose(state.side, -1); lists[state.side].el.focus(); } else if (state.kind || state.record >= 0) { state.kind = ''; state.record = -1; figures(); refilter(); }
    return;
  }
  if (typing) return;
  const acts = {
    '/': () => { $('search').focus(); $('search').select(); }, '?': () => $('keys').showModal(), t: turnTheme,
    1: () => state.view && tab('session'), 2: () => state.view && tab('time'),
  };
  if (state.view && state.tab === 'session') Object.assign(acts, { n: () => stepRecord(1), N: () => stepRecord(-1), f: () => panel.only(), c: () => { const b = document.querySelector('[data-act="Copy text"]'); if (b) b.click(); } });
  if (live.served) Object.assign(acts, live.keys());
  if (acts[e.key]) { e.preventDefault(); acts[e.key](); }
});

let searching = 0;
function search() {
  state.query = $('search').value.trim();
  state.hits = null;
  if (state.tab === 'home') { live.filterHome(state.query); return; }
  if (!state.view) return;
  refilter();
  clearTimeout(searching);
  if (live.served && state.query.length > 1) searching = setTimeout(async () => {
    const asked = state.query, hits = await live.search(asked);
    if (asked === state.query && hits) { state.hits = hits; refilter(); }
  }, 200);
}
$('search').addEventListener('input', search);
$('search').addEventListener('keydown', (e) => {
  if (e.key !== 'Enter' && e.key !== 'ArrowDown' || !state.view || !state.logRows.length) return;
  e.preventDefault();
  lists.log.el.focus();
  choose('log', state.logRows[0], true);
});
$('tab-session').addEventListener('click', () => tab('session'));
$('tab-time').addEventListener('click', () => tab('time'));
$('theme').addEventListener('click', turnTheme);
$('help').addEventListener('click', () => $('keys').showModal());
$('copy-command').addEventListener('click', () => copy(state.view.command, 'Command'));
for (const b of document.querySelectorAll('.pick button')) b.addEventListener('click', () => pick(b.dataset.pick));
system.addEventListener('change', () => { if (!remembered()) theme(system.matches ? 'dark' : 'light'); });
new ResizeObserver(() => { picture.fresh(); redraw(); overtime.draw(); }).observe($('picture-box'));
addEventListener('resize', () => { overtime.draw(); redraw(); });

theme(remembered() || (system.matches ? 'dark' : 'light'));
pick('picture');
$('keys-list').append(make('dl', {}, [...keysList, ...(live.served ? servedKeys : [])].map(([k, what]) => [make('dt', {}, k.split(' ').map((x) => make('kbd', {}, x))), make('dd', {}, what)]).flat()));
const embedded = $('data');
if (embedded) {
  tab('session');
  look(JSON.parse(embedded.textContent));
  $('brand').removeAttribute('href');
} else live.start();
