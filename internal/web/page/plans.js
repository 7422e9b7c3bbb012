// Over time: the requests, the money, the plans.
const overtime = (() => {
  let at = -1, marks = [0, 0];
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

  function plot(canvas, steps, lines, format) {
    const box = canvas.getBoundingClientRect(), dense = Math.min(window.devicePixelRatio || 1, 2);
    if (box.width < 20) return;
    canvas.width = box.width * dense; canvas.height = box.height * dense;
    const c = canvas.getContext('2d'), w = box.width, h = box.height, padL = 54, padR = 14, padT = 14, padB = 22;
    c.setTransform(dense, 0, 0, dense, 0, 0);
    const v = state.view;
    let most = 0;
    for (const l of lines) for (const y of l.values) most = Math.max(most, y);
    for (const [tokens] of format === short ? [[v.budget], [v.window]] : []) if (tokens > 0 && tokens < most * 1.6) most = Math.max(most, tokens);
    most = most * 1.06 || 1;
    const X = (i) => padL + (steps.length < 2 ? 0 : i / (steps.length - 1)) * (w - padL - padR), Y = (n) => h - padB - n / most * (h - padT - padB);
    c.font = '11px system-ui, sans-serif';
    c.fillStyle = css('faint'); c.strokeStyle = css('line'); c.lineWidth = 1; c.textAlign = 'right'; c.textBaseline = 'middle';
    const unit = 10 ** Math.floor(Math.log10(most / 3)), jump = [1, 2, 5, 10].map((n) => n * unit).find((n) => most / n <= 5) || unit * 10;
    for (let n = 0; n <= most; n += jump) {
      c.beginPath(); c.moveTo(padL, Math.round(Y(n)) + 0.5); c.lineTo(w - padR, Math.round(Y(n)) + 0.5); c.stroke();
      c.fillText(format(n), padL - 8, Y(n));
    }
    c.textAlign = 'center';
    c.fillText('first request', padL + 34, h - 9);
    c.fillText('newest', w - padR - 20, h - 9);
    const index = (pos) => { let n = steps.findIndex((s) => s.at >= pos); return n < 0 ? steps.length - 1 : n; };
    for (const mark of v.marks) { c.fillStyle = css('ink'); c.globalAlpha = 0.5; c.fillRect(X(index(mark.at)), padT, 1, h - padT - padB); c.globalAlpha = 1; }
    for (const p of v.plans) { c.fillStyle = css('summarize'); c.globalAlpha = 0.6; c.fillRect(X(index(p.at)) - 0.5, padT, 1.5, h - padT - padB); c.globalAlpha = 1; }
    if (format === short) for (const [tokens, word] of [[v.budget, 'budget'], [v.window, 'window']]) {
      if (!(tokens > 0) || tokens > most) continue;
      c.strokeStyle = css('accent'); c.setLineDash([5, 4]); c.beginPath(); c.moveTo(padL, Y(tokens)); c.lineTo(w - padR, Y(tokens)); c.stroke(); c.setLineDash([]);
      c.fillStyle = css('accent'); c.textAlign = 'left'; c.fillText(word, padL + 6, Y(tokens) - 8);
    }
    for (const l of lines) {
      c.strokeStyle = css(l.colour); c.lineWidth = 2; c.lineJoin = 'round'; c.beginPath();
      l.values.forEach((n, i) => { if (i) c.lineTo(X(i), Y(n)); else c.moveTo(X(i), Y(n)); });
      if (l.values.length === 1) c.lineTo(w - padR, Y(l.values[0]));
      c.stroke();
      if (l.fill) { c.lineTo(X(l.values.length - 1), Y(0)); c.lineTo(X(0), Y(0)); c.globalAlpha = 0.12; c.fillStyle = css(l.colour); c.fill(); c.globalAlpha = 1; }
    }
    if (at >= 0 && at < steps.length) {
      c.fillStyle = css('ink'); c.fillRect(X(at), padT, 1, h - padT - padB);
      for (const l of lines) { c.beginPath(); c.arc(X(at) + 0.5, Y(l.values[at]), 4, 0, 7); c.fillStyle = css(l.colour); c.fill(); }
    }
    canvas.at = (x) => Math.max(0, Math.min(steps.length - 1, Math.round((x - padL) / (w - padL - padR) * (steps.length - 1))));
  }

  const added = (list) => { let sum = 0; return list.map((n) => sum += n); };
  function draw() {
    const v = state.view;
    if (!v || $('time').hidden) return;
    const steps = v.steps;
    plot($('tokens'), steps, [{ values: steps.map((s) => s.whole), colour: 'kept' }, { values: steps.map((s) => s.sent), colour: 'externalize', fill: true }], short);
    const priced = v.cached && v.plans.some((p) => p.at < v.messages.length);
    $('money-box').hidden = !priced;
    const whole = added(steps.map((s) => s.whole_usd || 0)), sent = added(steps.map((s) => s.sent_usd || 0));
    if (priced) plot($('money'), steps, [{ values: whole, colour: 'kept' }, { values: sent, colour: 'externalize', fill: true }], (n) => n ? money(n) : '0');
    if (at >= 0 && steps[at]) {
      const s = steps[at];
      $('step').textContent = 'Request ' + (at + 1) + ' of ' + steps.length + (at === steps.length - 1 ? ', the next: ' + number(s.sent) + ' tokens to be sent, ' : ': ' + number(s.sent) + ' tokens sent, ') + number(s.whole) + ' with nothing removed' + (priced ? '; so far ' + money(sent[at]) + ', ' + money(whole[at]) + ' had nothing been compacted' : '');
    } else $('step').textContent = 'Point at a request, or use ← and →.';
    $('tokens').setAttribute('aria-label', plural(steps.length, 'request') + '; the newest takes ' + number(v.tokens_after) + ' tokens, ' + number(v.tokens_before) + ' with nothing removed');
  }
  const keyline = (el, pairs) => el.replaceChildren(...pairs.map(([colour, word]) => { const i = make('i'); i.style.background = 'var(--' + colour + ')'; return make('span', {}, i, word); }));

  function show() {
    const v = state.view;
    if (!v) return;
    keyline($('tokens-key'), [['externalize', 'sent, at last the next request'], ['kept', 'with nothing removed'], ['summarize', 'a plan'], ...(v.marks.length ? [['ink', 'the agent compacted by itself']] : [])]);
    keyline($('money-key'), [['externalize', 'with plans'], ['kept', 'without']]);
    const can = live.can('write');
    const table = make('table', {}, make('tr', {}, ...['', 'Made', 'By', 'What it does', 'Tokens', 'Prefix kept, tokens', ''].map((t, i) => make('th', { class: i === 4 || i === 5 ? 'n' : '' }, t))));
    v.plans.slice().reverse().forEach((p) => {
      const what = Object.entries(p.records || {}).map(([a, n]) => plural(n, 'record') + ' ' + (kinds[a] ? kinds[a].word : a)).join(', ') || 'shows everything';
      const acts = make('div', { class: 'acts' });
      if (p.version > 0 && live.can('read')) {
        acts.append(make('button', { onclick: () => live.look(p.version) }, 'Look'));
        acts.append(make('button', { onclick: () => mark(p.version), 'data-compare': p.version, 'aria-pressed': marks.includes(p.version) }, 'Compare'));
        if (can && p.version !== state.source.current) acts.append(make('button', { onclick: () => live.undo(p.version) }, 'Put in force'));
      }
      table.append(make('tr', { class: p.version === v.plan_version && p.version > 0 ? 'now' : '' },
        make('td', {}, p.version || 'new'), make('td', {}, ago(p.created_at)), make('td', {}, p.policy || ''), make('td', {}, what),
        make('td', { class: 'n' }, short(p.tokens_before || v.tokens_before) + ' → ' + short(p.tokens_after) + (p.counter ? ' ' + p.counter : '')),
        make('td', { class: 'n' }, short(p.prefix_tokens)), make('td', {}, acts)));
    });
    const none = make('p', { class: 'none' }, 'No plan was made yet: the model gets everything as it was said.');
    const parts = [v.plans.length ? table : none], now = $('plans').children;
    if (v.plans.length && can && state.source.current > 0) parts.push(make('div', { class: 'acts' }, make('button', { id: 'undo-all', onclick: () => live.undo(0) }, 'Show everything again')));
    // What is the same stays: somebody may be pointing at it.
    if (parts.length !== now.length || parts.some((part, i) => !part.isEqualNode(now[i]))) $('plans').replaceChildren(...parts);
    draw();
  }

  // mark chooses the plans to compare: two, the last two that were asked for.
  async function mark(version) {
    marks = [marks[1], version];
    for (const b of document.querySelectorAll('[data-compare]')) b.setAttribute('aria-pressed', marks.includes(Number(b.dataset.compare)));
    const [a, b] = marks[0] === version ? [0, version] : marks;
    const d = await live.diff(a, b);
    const word = (ref) => kinds[ref.action] ? kinds[ref.action].word : ref.action;
    const groups = new Map();
    const index = new Map(state.view.messages.map((m, i) => [m.id, i]));
    for (const c of d.changes) {
      const key = word(c.from) + ' → ' + word(c.to);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(c.message_id);
    }
    $('diff').replaceChildren(make('h2', {}, (a ? 'Plan ' + a : 'No plan') + ' and plan ' + b + ': ' + (d.changes.length ? plural(d.changes.length, 'message') + ' treated differently' : 'the model is shown the same')),
      make('table', {}, [...groups].map(([key, ids]) => make('tr', {}, make('td', {}, key), make('td', { class: 'n' }, plural(ids.length, 'message')),
        make('td', { class: 'wide' }, ids.slice(0, 5).map((id) => index.has(id) ? make('div', {}, make('button', { class: 'link', onclick: () => { tab('session'); choose('log', index.get(id), true); } }, state.view.messages[index.get(id)].label || id)) : null))))));
  }

  for (const canvas of [$('tokens'), $('money')]) {
    canvas.addEventListener('mousemove', (e) => { if (canvas.at) { at = canvas.at(e.clientX - canvas.getBoundingClientRect().left); draw(); } });
    canvas.addEventListener('keydown', (e) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[e.key];
      if (!by || !state.view) return;
      e.preventDefault();
      at = Math.max(0, Math.min(state.view.steps.length - 1, (at < 0 ? state.view.steps.length : at) + by));
      draw();
    });
  }
  return { show, draw };
})();
