// The two lists. Only the rows that are seen are there.
const rowHeight = 30;

function list(el, side) {
  const spacer = make('div'), pool = [];
  let rows = [], due = false, first = 0, last = 0;
  spacer.style.width = '1px';
  el.append(spacer);

  function slot(n) {
    if (pool[n]) return pool[n];
    const row = make('div', { class: 'row', role: 'option' });
    const cells = {};
    for (const name of ['turn', 'who', 'label', 'bar', 'size']) { cells[name] = make('span', { class: name }); row.append(cells[name]); }
    cells.fill = make('i');
    cells.bar.append(cells.fill);
    el.append(row);
    pool[n] = { row, cells };
    return pool[n];
  }

  function fill(s, at, marks) {
    const v = state.view, n = rows[at], { row, cells } = s;
    const item = side === 'log' ? v.messages[n] : v.prompt[n];
    const action = actionOf(v, item.record), own = side === 'log' || item.record < 0 && item.from >= 0;
    const turn = side === 'log' ? item.turn : item.from >= 0 ? v.messages[item.from].turn : 0;
    const before = at > 0 ? (side === 'log' ? v.messages[rows[at - 1]].turn : v.prompt[rows[at - 1]].from >= 0 ? v.messages[v.prompt[rows[at - 1]].from].turn : 0) : -1;
    let names = 'row ' + item.role;
    if (turn !== before && at > 0) names += ' first';
    if (side === 'log' && action !== 'include') names += ' gone ' + action;
    if (!own) names += ' stand';
    if (marks.chosen === n) names += ' chosen';
    else if ((side === 'log' ? marks.tied.messages : marks.tied.parts).has(n)) names += ' tied';
    else if (marks.hover && (side === 'log' ? marks.hover.messages : marks.hover.parts).has(n)) names += ' hover';
    row.className = names;
    row.id = side + '-' + n;
    row.dataset.n = n;
    row.setAttribute('aria-setsize', rows.length);
    row.setAttribute('aria-posinset', at + 1);
    row.setAttribute('aria-selected', marks.chosen === n);
    row.style.transform = 'translateY(' + at * rowHeight + 'px)';
    if (action === 'include') row.style.removeProperty('--kind'); else row.style.setProperty('--kind', 'var(--' + action + ')');
    cells.turn.textContent = turn !== before && turn > 0 ? turn : '';
    const tool = item.role === 'tool' ? item.tool || (item.from >= 0 && v.messages[item.from].tool) || '' : '', label = side === 'log' ? item.label : labelOf(v, item);
    cells.who.textContent = tool || people[item.role] || item.role;
    const words = (item.pinned ? '◆ ' : '') + (tool && label.startsWith(tool + ' ') ? label.slice(tool.length + 1) : label) || '(nothing readable)', near = state.m.folder ? words.replaceAll(state.m.folder, '') : words;
    if (state.query) cells.label.replaceChildren(...marked(words, state.query)); else cells.label.textContent = near;
    cells.fill.style.width = Math.max(2, 100 * Math.sqrt(item.tokens / state.m.largest)) + '%';
    cells.size.textContent = short(item.tokens);
    row.hidden = false;
  }

  function paint() {
    due = false;
    if (!state.view) return;
    const seen = Math.max(el.clientHeight, rowHeight);
    first = Math.max(0, Math.floor(el.scrollTop / rowHeight) - 4);
    last = Math.min(rows.length, Math.ceil((el.scrollTop + seen) / rowHeight) + 4);
    const marks = {
      chosen: state.side === side ? state.chosen : -1,
      tied: tied(state.side, state.chosen),
      hover: state.hover ? tied(state.hover.side, state.hover.n) : null,
    };
    for (let at = first, n = 0; at < last; at++, n++) fill(slot(n), at, marks);
    for (let n = Math.max(0, last - first); n < pool.length; n++) pool[n].row.hidden = true;
    if (state.side === side && state.chosen >= 0) el.setAttribute('aria-activedescendant', side + '-' + state.chosen); else el.removeAttribute('aria-activedescendant');
    picture.draw();
  }
  const draw = () => { if (!due) { due = true; requestAnimationFrame(paint); } };
  el.addEventListener('scroll', draw, { passive: true });
  const of = (e) => { const row = e.target.closest('.row'); return row ? Number(row.dataset.n) : -1; };
  el.addEventListener('mousemove', (e) => { const n = of(e); hover(n >= 0 ? { side, n } : null); });
  el.addEventListener('mouseleave', () => hover(null));
  el.addEventListener('click', (e) => { const n = of(e); if (n >= 0) choose(side, n, true); });
  el.addEventListener('keydown', (e) => {
    const at = state.side === side ? rows.indexOf(state.chosen) : -1;
    const page = Math.max(1, Math.floor(el.clientHeight / rowHeight) - 1);
    const to = { ArrowDown: at + 1, j: at + 1, ArrowUp: at < 0 ? 0 : at - 1, k: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: rows.length - 1 }[e.key];
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (to !== undefined && rows.length) {
      e.preventDefault();
      choose(side, rows[Math.min(Math.max(to, 0), rows.length - 1)], true);
    } else if (e.key === 'ArrowRight' && side === 'log' || e.key === 'ArrowLeft' && side === 'prompt') {
      const other = side === 'log' ? lists.prompt : lists.log, n = counterpart(side, state.side === side ? state.chosen : -1);
      e.preventDefault();
      pick(side === 'log' ? 'prompt' : 'log');
      other.el.focus();
      if (n >= 0) choose(side === 'log' ? 'prompt' : 'log', n, true);
    } else if (e.key === 'Enter' && state.chosen >= 0) {
      e.preventDefault();
      $('panel').focus();
    }
  });
  return {
    el, draw,
    rows(next) {
      rows = next;
      for (const s of pool) s.row.hidden = true; // a row far down would keep the list long
      spacer.style.height = rows.length * rowHeight + 'px';
      draw();
    },
    shown: () => [Math.floor(el.scrollTop / rowHeight), Math.ceil((el.scrollTop + el.clientHeight) / rowHeight) - 1],
    // reveal scrolls to a row, if it is not seen.
    reveal(n) {
      const at = rows.indexOf(n);
      if (at < 0) return;
      const seen = el.clientHeight, from = at * rowHeight;
      if (from < el.scrollTop + rowHeight || from > el.scrollTop + seen - 2 * rowHeight) el.scrollTop = Math.max(0, from - seen / 3);
    },
  };
}
const lists = { log: list($('log'), 'log'), prompt: list($('prompt'), 'prompt') };

function redraw() { lists.log.draw(); lists.prompt.draw(); picture.draw(); }
