// The panel: figures and texts of what is chosen, and what can be done with it.
const panel = (() => {
  const el = $('panel');
  let asked = 0;

  const fact = (word, value) => value ? make('li', {}, word + ' ', make('b', {}, value)) : null;
  const act = (text, key, onclick, why) => make('button', { onclick, title: key ? text + ' (' + key + ')' : why || text, 'data-act': text }, text);

  function head(kind, text, acts) {
    const dot = make('span', { class: 'dot' });
    dot.style.background = 'var(--' + colourOf(kind) + ')';
    return make('header', {}, dot, make('h2', {}, text), make('span', { class: 'grow' }), acts, act('Close', 'Esc', () => { const side = state.side; choose(side, -1); lists[side].el.focus(); }));
  }

  function body(title, kind, text, cut) {
    const pre = make('pre', { class: kind ? 'stand' : '' });
    if (kind) pre.style.setProperty('--kind', 'var(--' + kind + ')');
    pre.replaceChildren(...marked(text === undefined ? '…' : text || '(nothing readable)', state.query));
    const box = make('div', {}, make('h3', {}, title + (cut ? ' (shortened in this file)' : '')), pre);
    box.pre = pre;
    return box;
  }

  function show() {
    const v = state.view, open = v && state.chosen >= 0;
    $('session').classList.toggle('open', !!open);
    el.hidden = !open;
    if (!open) { el.replaceChildren(); return; }
    const side = state.side, n = state.chosen, turn = ++asked;
    const item = side === 'log' ? v.messages[n] : v.prompt[n];
    const i = side === 'log' ? n : counterpart('prompt', n), p = side === 'log' ? state.m.parts[n] : n;
    const record = item.record >= 0 ? v.records[item.record] : null, action = actionOf(v, item.record), k = kinds[action];
    const msg = i >= 0 ? v.messages[i] : null, part = p >= 0 ? v.prompt[p] : null;
    const title = record ? k.word[0].toUpperCase() + k.word.slice(1) + ' · ' + (record.messages > 1 ? plural(record.messages, 'message') + ' · ' : '') + turns(record)
      : msg ? (msg.pinned ? 'Kept, pinned' : 'Kept') + ' · turn ' + msg.turn : labelOf(v, item);
    const facts = make('ul', { class: 'facts' },
      msg && fact('said by', (people[msg.role] || msg.role) + (msg.tool ? ' ' + msg.tool : '') + (msg.failed ? ', failed' : '')),
      record ? fact('tokens', number(record.tokens_before) + ' → ' + number(record.tokens_after) + ', frees ' + number(record.tokens_before - record.tokens_after)) : fact('tokens', number(item.tokens)),
      record && record.messages > 1 && msg && fact('this message', number(msg.tokens)),
      record && fact('proposed by', record.strategy), record && fact('record', record.path), record && fact('artifact', record.artifact_id),
      msg && msg.time && fact('at', new Date(msg.time).toLocaleString()));
    const acts = make('div', { class: 'acts' });
    if (record && live.can('write')) acts.append(act('Show again', 'e', () => live.expand()));
    if (msg && live.can('write')) acts.append(act(msg.pinned ? 'Unpin' : 'Pin', 'p', () => live.pin()));
    if (record && record.artifact_id && live.can('read')) acts.append(act('Open artifact', 'o', () => artifact(record.artifact_id)));
    if (record && record.messages > 1) acts.append(act(state.record === item.record ? 'All messages' : 'Only these messages', 'f', () => only()));
    if (msg) acts.append(act('Copy text', 'c', async () => copy(await live.text(msg, i), 'Text')));
    const texts = make('div', { class: 'texts' });
    const parts = [];
    if (msg) parts.push([body('What was said', '', msg.text, msg.cut), () => live.text(msg, i)]);
    if (part && (part.record >= 0 || part.from < 0)) {
      const box = body(part.record >= 0 ? 'What the model gets instead' : 'What the model gets', colourOf(action), part.text, part.cut);
      parts.push([box, () => live.partText(part, p)]);
    }
    if (side === 'prompt') parts.reverse();
    texts.append(...parts.map((x) => x[0]));
    el.replaceChildren(head(action, title, acts), make('p', { class: 'why' }, record ? (because(record) ? 'Because ' + because(record) + '. ' : '') + k.verb : msg ? k.verb : ''), facts, texts);
    el.scrollTop = 0;
    for (const [box, ask] of parts) ask().then((text) => { if (turn === asked) box.pre.replaceChildren(...marked(text || '(nothing readable)', state.query)); }, (err) => { if (turn === asked) box.pre.textContent = String(err.message || err); });
  }

  async function artifact(id) {
    const text = await live.artifact(id);
    const box = body('Artifact ' + id, 'externalize', text);
    el.querySelector('.texts').prepend(box);
    box.scrollIntoView({ block: 'nearest' });
  }

  function only() {
    const r = state.view && state.chosen >= 0 ? (state.side === 'log' ? state.view.messages : state.view.prompt)[state.chosen].record : -1;
    state.record = state.record === r ? -1 : r;
    refilter();
    show();
  }
  return {
    show, only,
    artifact() { const r = state.chosen >= 0 ? (state.side === 'log' ? state.view.messages : state.view.prompt)[state.chosen].record : -1; if (r >= 0 && state.view.records[r].artifact_id && live.can('read')) artifact(state.view.records[r].artifact_id); },
  };
})();
