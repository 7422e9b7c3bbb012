// The picture: the log on the left and the prompt on the right, in the same scale of
// tokens, and between them bands that say what became of each message.
const picture = (() => {
  const canvas = $('picture'), ctx = canvas.getContext('2d');
  const top = 4, foot = 18, role = 12, gap = 3, fate = 16;
  let width = 0, height = 0, scale = 0, colours = null, links = [], left = 0, still = null, due = false;

  function read() {
    const css = getComputedStyle(document.documentElement);
    colours = {};
    for (const name of ['bg', 'card', 'line', 'ink', 'dim', 'faint', 'accent', 'kept', 'clear', 'summarize', 'externalize', 'drop', 'user', 'assistant', 'tool', 'other']) colours[name] = css.getPropertyValue('--' + name).trim();
  }
  const roleColour = (r) => colours[r === 'user' ? 'user' : r === 'assistant' ? 'assistant' : r === 'tool' ? 'tool' : 'other'];
  const fateColour = (action) => colours[colourOf(action)];
  const y = (tokens) => top + tokens * scale;

  // link makes the bands from the log to the prompt, and joins neighbours.
  function link(v, m) {
    links = [];
    const seen = new Map();
    if (m.head > 0) links.push({ action: 'include', a0: 0, a1: m.head, b0: 0, b1: m.head, record: -1, first: -1 });
    v.messages.forEach((msg, i) => {
      const action = actionOf(v, msg.record), p = m.parts[i], own = p >= 0 && v.prompt[p].from === i;
      let b0 = null, b1 = null;
      if (p >= 0) {
        b0 = m.from[p];
        b1 = m.from[p + 1];
        if (!own && msg.record >= 0) { // one of several that the part stands for: its share of it
          const r = seen.get(msg.record) || { used: 0, all: m.members[msg.record].reduce((n, j) => n + v.messages[j].tokens, 0) || 1 };
          const size = b1 - b0;
          b1 = b0 + size * (r.used + msg.tokens) / r.all;
          b0 += size * r.used / r.all;
          r.used += msg.tokens;
          seen.set(msg.record, r);
        } else if (own && msg.record >= 0 && v.records[msg.record].messages > 1 && m.ofRecord[msg.record].length === 1) {
          const r = { used: msg.tokens, all: m.members[msg.record].reduce((n, j) => n + v.messages[j].tokens, 0) || 1 };
          b1 = b0 + (b1 - b0) * r.used / r.all;
          seen.set(msg.record, r);
        }
      }
      const last = links[links.length - 1];
      const joins = last && last.action === action && last.first >= 0 && (action === 'include' || action === 'drop' || last.record === msg.record || msg.tokens * scale < 3) &&
        (b0 === null ? last.b0 === null : last.b0 !== null && Math.abs(last.b1 - b0) < 0.5);
      if (joins) {
        last.a1 = m.at[i + 1];
        last.b1 = b1;
        last.count++;
        if (last.record !== msg.record) last.record = -1;
      } else {
        links.push({ action, a0: m.at[i], a1: m.at[i + 1], b0, b1, record: msg.record, first: i, count: 1 });
      }
    });
  }

  function band(c, k, alpha) {
    const x0 = left + role + gap + fate + 1, x1 = width - role - gap - fate - 1, mid = (x0 + x1) / 2;
    const a0 = y(k.a0), a1 = Math.max(y(k.a1), a0 + 0.4);
    c.fillStyle = fateColour(k.action);
    c.globalAlpha = alpha;
    c.beginPath();
    if (k.b0 === null) { // nothing of it is in the prompt
      const end = x0 + (x1 - x0) * 0.34, c0 = (a0 + a1) / 2;
      const fade = c.createLinearGradient(x0, 0, end, 0);
      fade.addColorStop(0, fateColour(k.action));
      fade.addColorStop(1, 'transparent');
      c.fillStyle = fade;
      c.moveTo(x0, a0);
      c.quadraticCurveTo((x0 + end) / 2, a0, end, c0);
      c.quadraticCurveTo((x0 + end) / 2, a1, x0, a1);
    } else {
      const b0 = y(k.b0), b1 = Math.max(y(k.b1), b0 + 0.4);
      c.moveTo(x0, a0);
      c.bezierCurveTo(mid, a0, mid, b0, x1, b0);
      c.lineTo(x1, b1);
      c.bezierCurveTo(mid, b1, mid, a1, x0, a1);
    }
    c.fill();
    c.globalAlpha = 1;
  }

  // column draws one side, a pixel row at a time where messages are smaller than that.
  function column(c, items, start, x, wide, colour, apart) {
    let from = null, what = null, to = 0;
    const flush = () => {
      if (what === null) return;
      c.fillStyle = what;
      c.fillRect(x, from, wide, Math.max(to - from - (apart && to - from > 5 ? 1 : 0), 0.6));
    };
    for (let i = 0; i < items.length; i++) {
      const a = y(start[i]), b = y(start[i + 1]), k = colour(items[i]);
      if (k === what && (!apart || b - from < 1.5 || b - a < 1)) { to = b; continue; }
      flush();
      from = a; to = b; what = k;
    }
    flush();
  }

  function resize() {
    const box = $('picture-box').getBoundingClientRect(), dense = Math.min(window.devicePixelRatio || 1, 2);
    if (box.width < 10 || box.height < 10) return false;
    width = box.width; height = box.height;
    if (canvas.width !== Math.round(width * dense) || canvas.height !== Math.round(height * dense)) {
      canvas.width = Math.round(width * dense);
      canvas.height = Math.round(height * dense);
    }
    ctx.setTransform(dense, 0, 0, dense, 0, 0);
    return true;
  }

  // base draws what hover and choice do not change.
  function base() {
    const v = state.view, m = state.m;
    still = document.createElement('canvas');
    still.width = canvas.width; still.height = canvas.height;
    const c = still.getContext('2d'), dense = canvas.width / width;
    c.setTransform(dense, 0, 0, dense, 0, 0);
    left = 34;
    scale = (height - top - foot) / m.total;
    link(v, m);
    for (const k of links) band(c, k, state.kind && state.kind !== k.action ? 0.05 : k.action === 'include' ? 0.28 : 0.5);
    const xr = width - role;
    c.fillStyle = colours.other;
    if (m.head > 0) { c.fillRect(left, y(0), role, m.head * scale - 1); c.fillRect(left + role + gap, y(0), fate, m.head * scale - 1); }
    column(c, v.messages, m.at, left, role, (msg) => roleColour(msg.role), true);
    column(c, v.messages, m.at, left + role + gap, fate, (msg) => fateColour(actionOf(v, msg.record)));
    column(c, v.prompt, m.from, xr - gap - fate, fate, (p) => p.from < 0 && p.record < 0 ? colours.other : fateColour(actionOf(v, p.record)), true);
    column(c, v.prompt, m.from, xr, role, (p) => roleColour(p.role), true);
    turnsAndMarks(c, v, m);
    words(c, v, m);
  }

  function turnsAndMarks(c, v, m) {
    c.font = '10px system-ui, sans-serif';
    c.textAlign = 'right';
    c.textBaseline = 'middle';
    let lastText = -99, lastLine = -99, turn = -1;
    v.messages.forEach((msg, i) => {
      if (msg.turn === turn) return;
      turn = msg.turn;
      const at = y(m.at[i]);
      if (at - lastLine > 3) {
        c.fillStyle = colours.line;
        c.fillRect(left - 5, at, 5, 1);
        lastLine = at;
      }
      if (turn > 0 && at - lastText > 13) {
        c.fillStyle = colours.faint;
        c.fillText(String(turn), left - 8, at + 5);
        lastText = at;
      }
    });
    for (const mark of v.marks) {
      const at = y(m.at[mark.at]);
      c.fillStyle = colours.ink;
      c.fillRect(left - 4, at - 0.5, role + gap + fate + 8, 1.5);
      c.beginPath();
      c.moveTo(left - 9, at); c.lineTo(left - 4.5, at - 4.5); c.lineTo(left, at); c.lineTo(left - 4.5, at + 4.5);
      c.fill();
      c.textAlign = 'left';
      write(c, mark.trigger === 'clear' ? 'the user began anew' : 'the agent compacted', left + role + gap + fate + 8, at);
      c.textAlign = 'right';
    }
    const lines = [[v.budget, 'budget'], [v.window, 'window']];
    for (const [tokens, word] of lines) {
      if (!(tokens > 0) || tokens > m.total * 1.001) continue;
      const at = Math.round(y(tokens)) + 0.5;
      c.strokeStyle = colours.accent;
      c.setLineDash([4, 3]);
      c.beginPath();
      c.moveTo(width - role - gap - fate - 58, at); c.lineTo(width, at);
      c.stroke();
      c.setLineDash([]);
      c.fillStyle = colours.accent;
      c.textAlign = 'right';
      write(c, word + ' ' + short(tokens), width - role - gap - fate - 6, at + 8);
    }
  }

  // write draws a text that can be read on any band.
  function write(c, text, x, at) {
    c.save();
    c.globalAlpha = 0.7;
    c.strokeStyle = colours.bg;
    c.lineWidth = 2.5;
    c.lineJoin = 'round';
    c.strokeText(text, x, at);
    c.restore();
    c.fillText(text, x, at);
  }

  // words name the widest bands of each kind, with as many lines as fit between the columns.
  function words(c, v, m) {
    const x0 = left + role + gap + fate + 8, most = width - role - gap - fate - 6 - x0, named = new Set();
    let end = y(m.from[v.prompt.length]); // below it on the right stands what was removed
    for (const tokens of [v.budget, v.window].sort((a, b) => a - b)) if (tokens <= m.total * 1.001 && y(tokens) > end - 2 && y(tokens) < end + 50) end = y(tokens);
    const line = (text, at) => { if (c.measureText(text).width <= most - (at > end && at < end + 55 ? 50 : 0)) write(c, text, x0, at); };
    c.textAlign = 'left';
    c.textBaseline = 'middle';
    const blocks = links.filter((k) => k.action !== 'include' && (k.a1 - k.a0) * scale > 26).sort((a, b) => (b.a1 - b.a0) - (a.a1 - a.a0));
    for (const k of blocks) {
      if (named.size > 7) break;
      named.add(k);
      let at = (y(k.a0) + y(k.a1)) / 2;
      for (const mark of v.marks) if (Math.abs(y(m.at[mark.at]) - at - 6) < 26) at = y(m.at[mark.at]) + 26; // its words stand there
      c.fillStyle = colours.ink;
      c.font = '600 12px system-ui, sans-serif';
      write(c, kinds[k.action].word, x0, at - 7);
      c.globalAlpha = 0.78;
      c.font = '11px system-ui, sans-serif';
      line(plural(k.count, 'message') + ', ' + short(k.a1 - k.a0) + ' → ' + short(k.b0 === null ? 0 : k.b1 - k.b0), at + 7);
      if (k.record >= 0 && (k.a1 - k.a0) * scale > 60) line(because(v.records[k.record]).split(';')[0], at + 22);
      c.globalAlpha = 1;
    }
    const room = height - foot - end;
    if (room > 60) {
      c.textAlign = 'right';
      c.fillStyle = colours.dim;
      c.font = '12px system-ui, sans-serif';
      write(c, short(v.tokens_before - v.tokens_after) + ' tokens', width, end + 24);
      write(c, 'removed', width, end + 40);
      if (room > 110) ['select a part', 'to read why'].forEach((text, n) => write(c, text, width, height - foot - 20 + 16 * n));
    }
  }

  function outline(v, m, side, n) {
    const t = tied(side, n);
    const rects = [];
    for (const i of t.messages) rects.push(['a', m.at[i], m.at[i + 1]]);
    for (const p of t.parts) rects.push(['b', m.from[p], m.from[p + 1]]);
    const wanted = links.filter((k) => k.first >= 0 && (t.record >= 0 ? k.record === t.record : false));
    for (const k of wanted) band(ctx, k, 0.5);
    if (!wanted.length && t.parts.size && t.messages.size) {
      const i = [...t.messages], p = [...t.parts], spread = i.length === 1 || p.length === 1;
      if (spread) for (const j of i.slice(0, 400)) band(ctx, { action: actionOf(v, t.record), a0: m.at[j], a1: m.at[j + 1], b0: m.from[m.parts[j]], b1: m.from[m.parts[j] + 1] }, 0.7);
    }
    ctx.fillStyle = colours.ink;
    let lastA = -9, lastB = -9;
    for (const [col, a, b] of rects) { // a bracket beside each column
      const from = y(a), size = Math.max((b - a) * scale, 2);
      if (col === 'a') { if (from + size - lastA < 1) continue; ctx.fillRect(left - 3, from, 2, size); lastA = from + size; }
      else { if (from + size - lastB < 1) continue; ctx.fillRect(width - role - gap - fate - 4, from, 2, size); lastB = from + size; }
    }
  }

  function paint() {
    due = false;
    if (!state.view || !resize()) return;
    if (!colours) read();
    if (!still || still.width !== canvas.width || still.height !== canvas.height) base();
    ctx.save();
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    ctx.drawImage(still, 0, 0);
    ctx.restore();
    if (state.chosen >= 0) outline(state.view, state.m, state.side, state.chosen);
    if (state.hover) outline(state.view, state.m, state.hover.side, state.hover.n);
    // what the lists show now
    ctx.fillStyle = colours.faint;
    for (const [list, rows, start, x] of [[lists.log, state.logRows, state.m.at, left - 1], [lists.prompt, state.promptRows, state.m.from, width - role - gap - fate - 2]]) {
      const [a, b] = list.shown();
      if (!rows.length || a >= rows.length) continue;
      const from = y(start[rows[a]]), to = y(start[rows[Math.min(b, rows.length - 1)] + 1]);
      ctx.globalAlpha = 0.55;
      ctx.fillRect(x, from, 1, Math.max(to - from, 3));
      ctx.globalAlpha = 1;
    }
  }
  const draw = () => { if (!due) { due = true; requestAnimationFrame(paint); } };

  // under finds what lies at a place: of the log left of the middle, else of the prompt.
  function under(event) {
    if (!state.view) return null;
    const box = canvas.getBoundingClientRect(), tokens = (event.clientY - box.top - top) / scale;
    const side = event.clientX - box.left < width / 2 ? 'log' : 'prompt';
    const start = side === 'log' ? state.m.at : state.m.from;
    if (tokens < start[0] || tokens >= start[start.length - 1]) return null;
    let lo = 0, hi = start.length - 2;
    while (lo < hi) { const mid = (lo + hi + 1) >> 1; if (start[mid] <= tokens) lo = mid; else hi = mid - 1; }
    return { side, n: lo };
  }
  canvas.addEventListener('mousemove', (e) => hover(under(e), e));
  canvas.addEventListener('mouseleave', () => hover(null));
  canvas.addEventListener('click', (e) => { const u = under(e); if (u) choose(u.side, u.n, true); });

  return {
    draw,
    fresh() { still = null; draw(); },
    recolour() { colours = null; still = null; draw(); },
  };
})();
