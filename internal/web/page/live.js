// Where the view comes from, and who is asked to change it: the file itself, or the
// daemon that serves the page.
const live = (() => {
  const served = !$('data');
  const texts = new Map();
  let source = { kind: 'file', current: 0 }, watching = null, home = { threads: [], sessions: [] }, key = '';
  try { key = sessionStorage.getItem('palimpsest-key') || ''; } catch { /* then it is asked for */ }
  state.source = source;

  // ask sends a request. A daemon with keys asks for one, once.
  async function ask(method, path, body, o = {}) {
    const headers = { Accept: 'application/json' };
    if (key) headers.Authorization = 'Bearer ' + key;
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    if (o.match !== undefined) headers['If-Match'] = '"' + o.match + '"';
    const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal: o.signal, cache: 'no-store' });
    if (answer.status === 401) {
      let why = '';
      if (key) try { why = (await answer.json()).detail || ''; } catch { /* no reason given */ }
      await askKey(why);
      return ask(method, path, body, o);
    }
    if (!answer.ok) {
      let problem = {};
      try { problem = await answer.json(); } catch { /* not the daemon's */ }
      const err = new Error(problem.detail || problem.title || 'the daemon answered ' + answer.status);
      err.status = answer.status;
      err.type = problem.type || '';
      throw err;
    }
    if (o.raw) return answer;
    return (answer.headers.get('Content-Type') || '').includes('json') ? answer.json() : answer.text();
  }
  let asking = null;
  function askKey(why) {
    if (asking) return asking;
    asking = new Promise((resolve) => {
      $('ask-why').textContent = why;
      $('ask-key').value = '';
      $('ask').showModal();
      $('ask-form').onsubmit = (e) => {
        e.preventDefault();
        key = $('ask-key').value.trim();
        try { sessionStorage.setItem('palimpsest-key', key); } catch { /* it lasts as long as the page */ }
        $('ask-key').value = '';
        $('ask').close();
        asking = null;
        resolve();
      };
    });
    return asking;
  }
  $('ask').addEventListener('cancel', (e) => e.preventDefault());

  const at = (id) => '/v1/threads/' + encodeURIComponent(id);
  const failed = (err) => { if (err.name !== 'AbortError') tell(err.message || String(err)); };
  const can = (what) => source.kind === 'thread' && (what === 'read' || !state.preview);

  // sure asks, once the question before is closed: that is told only some time after the key.
  let asked = Promise.resolve();
  function sure(what, text) {
    return asked = asked.then(() => {
      $('sure-what').textContent = what;
      $('sure-text').textContent = text;
      $('sure').returnValue = 'no';
      $('sure').showModal();
      return new Promise((resolve) => $('sure').addEventListener('close', () => resolve($('sure').returnValue === 'yes'), { once: true }));
    });
  }

  // load shows the thread or session as it is, or under a plan. An answer that comes
  // behind what was asked for later shows nothing.
  let loads = 0, looking = 0; // looking is the load of a plan that is under way
  async function load(plan) {
    const mine = ++loads;
    looking = plan === undefined ? 0 : mine;
    if (source.kind === 'thread') {
      const answer = await ask('GET', at(source.id) + '/view' + (plan === undefined ? '' : '?plan=' + plan), undefined, { raw: true }).catch((err) => { looking = 0; throw err; });
      const v = await answer.json();
      if (mine !== loads) return;
      looking = 0;
      source.version = v.version;
      source.current = Number((answer.headers.get('ETag') || '').replaceAll('"', '').split('.')[1] || v.plan_version);
      texts.clear();
      state.preview = plan !== undefined && plan !== source.current ? 'Plan ' + plan + ', not in force' : null;
      look(v);
      $('try-use').hidden = true;
    } else if (source.kind === 'session') {
      const v = await ask('POST', '/v1/sessions/' + encodeURIComponent(source.id) + '/view', source.asked || {});
      if (mine !== loads) return;
      look(v);
    }
    for (const el of document.querySelectorAll('[data-served]')) el.hidden = source.kind === 'file';
    $('copy-prompt').hidden = source.kind !== 'thread';
    if ($('try').hidden) fillTry();
  }

  async function changed(path, body, done) {
    try {
      const p = await ask('POST', at(source.id) + path, body, { match: source.current });
      tell(done);
      await load();
      return p;
    } catch (err) {
      failed(err);
      if (/(stale-version|version-conflict)$/.test(err.type)) await load().catch(failed);
    }
  }
  const chosen = () => {
    if (state.chosen < 0) return null;
    const i = state.side === 'log' ? state.chosen : counterpart('prompt', state.chosen);
    return i >= 0 ? state.view.messages[i] : null;
  };

  // watch follows the events of the thread, and looks for new messages with each sign
  // of life that the stream gives.
  async function watch() {
    if (watching) watching.abort();
    const mine = watching = new AbortController(), id = source.id;
    $('live').hidden = false;
    let last = '';
    for (let pause = 1000; !mine.signal.aborted; pause = Math.min(pause * 2, 15000)) {
      try {
        const headers = { Accept: 'text/event-stream' };
        if (key) headers.Authorization = 'Bearer ' + key;
        if (last) headers['Last-Event-ID'] = last;
        const answer = await fetch(at(id) + '/events', { headers, signal: mine.signal, cache: 'no-store' });
        if (!answer.ok) throw new Error(String(answer.status));
        $('live').classList.remove('off');
        pause = 1000;
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        for (;;) {
          const { value, done } = await reader.read();
          if (done) break;
          for (const m of value.matchAll(/^id: (\d+)$/gm)) last = m[1];
          await refresh(mine);
        }
      } catch { if (mine.signal.aborted) return; }
      $('live').classList.add('off');
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
  async function refresh(mine) {
    const elsewhere = () => state.preview || looking || document.hidden;
    if (elsewhere()) return;
    const t = await ask('GET', at(source.id), undefined, { signal: mine.signal });
    if (mine.signal.aborted || t.version === source.version && t.plan_version === source.current || elsewhere()) return;
    await load();
  }

  // the preview
  let limits = [1000, 200000];
  async function fillTry() {
    if (!$('try-policy').options.length) {
      const about = await ask('GET', '/page.json');
      $('try-policy').append(make('option', { value: '' }, source.kind === 'thread' ? 'the daemon’s own' : 'auto'), ...about.policies.map((p) => make('option', { value: p }, p)));
      $('try-favor').append(make('option', { value: '' }, 'its own'), ...about.favors.map((p) => make('option', { value: p }, p)));
    }
    const v = state.view;
    limits = [Math.min(v.tokens_before, Math.max(1000, v.fixed_tokens + 500)), Math.max(v.tokens_before, 2000)];
    $('try-favor').parentElement.hidden = source.kind !== 'thread';
    const budget = Math.round((v.budget && v.budget < limits[1] ? v.budget : Math.max(limits[0], v.tokens_after < v.tokens_before ? v.tokens_after : v.tokens_before / 2)) / 100) * 100;
    $('try-budget').value = budget;
    $('try-range').value = 100 * (budget - limits[0]) / (limits[1] - limits[0] || 1);
  }
  const wanted = () => {
    const q = { budget: Math.max(1, Math.round(Number($('try-budget').value) || 0)) };
    if ($('try-policy').value) q.policy = $('try-policy').value;
    if ($('try-favor').value) { q.favor = $('try-favor').value; q.policy = q.policy || 'auto'; }
    return q;
  };
  let tries = 0, sliding = 0;
  // leave ends the preview: one whose answer is still to come shows nothing any more.
  function leave() {
    tries++;
    clearTimeout(sliding);
    const was = state.preview;
    state.preview = null;
    return was;
  }
  async function preview() {
    const mine = ++tries, q = wanted();
    $('try-note').textContent = '…';
    try {
      const v = source.kind === 'thread' ? await ask('POST', at(source.id) + '/preview', q) : await ask('POST', '/v1/sessions/' + encodeURIComponent(source.id) + '/view', q);
      if (mine !== tries) return;
      loads++;
      state.preview = 'Preview, not in force';
      texts.clear();
      look(v);
      $('try-use').hidden = source.kind !== 'thread';
      $('try-note').textContent = short(v.tokens_after) + ' tokens' + (v.tokens_after > q.budget ? ': over the budget by ' + number(v.tokens_after - q.budget) : '');
    } catch (err) {
      if (mine === tries) $('try-note').textContent = err.message;
    }
  }
  function openTry() {
    $('try').hidden = !$('try').hidden;
    if ($('try').hidden) back(); else { tab('session'); $('try-budget').focus(); $('try-budget').select(); }
  }
  async function back() {
    $('try').hidden = true;
    $('try-note').textContent = '';
    if (leave()) await load().catch(failed);
    lists.log.el.focus();
  }
  $('try-open').addEventListener('click', openTry);
  $('try-close').addEventListener('click', back);
  $('try').addEventListener('submit', (e) => { e.preventDefault(); preview(); });
  $('try').addEventListener('keydown', (e) => { if (e.key === 'Escape') { e.preventDefault(); e.stopPropagation(); back(); } });
  $('try-range').addEventListener('input', () => {
    $('try-budget').value = Math.round((limits[0] + (limits[1] - limits[0]) * $('try-range').value / 100) / 100) * 100;
    clearTimeout(sliding);
    sliding = setTimeout(preview, 250);
  });
  for (const id of ['try-policy', 'try-favor']) $(id).addEventListener('change', preview);
  $('try-use').addEventListener('click', async () => {
    const q = wanted();
    if (!await sure('Put this plan in force?', 'The next request of this thread is made under it. Nothing is lost: the log stays, and the plan can be undone.')) return;
    leave();
    if (await changed('/compact', q, 'The plan is in force')) { $('try').hidden = true; lists.log.el.focus(); }
  });
  $('copy-prompt').addEventListener('click', async () => {
    try {
      const q = { step: {} };
      if (state.view.plan_version !== source.current) q.plan_version = state.view.plan_version;
      copy(JSON.stringify((await ask('POST', at(source.id) + '/render', q)).prompt, null, 2), 'Prompt');
    } catch (err) { failed(err); }
  });

  // the lists at home
  function rows(items, empty, cells, heads, open) {
    if (!items.length) return make('p', { class: 'none' }, empty);
    return make('table', {}, make('tr', {}, heads.map((h) => make('th', { class: /Size|Messages|Tokens/.test(h) ? 'n' : '' }, h))),
      items.map((item) => make('tr', {}, cells(item).map((cell, n) => n === 0
        ? make('td', { class: 'wide' }, make('button', { class: 'link', onclick: () => { location.hash = open(item); } }, cell || item.id))
        : make('td', { class: /Size|Messages|Tokens/.test(heads[n]) ? 'n' : '' }, cell)))));
  }
  const most = 500; // rows of a table, which takes its time to draw
  function showHome(q = '') {
    const has = (item) => !q || JSON.stringify(item).toLowerCase().includes(q.toLowerCase());
    const found = home.threads.filter(has);
    const none = !home.all ? 'Not all threads were read.' : q ? 'No thread matches.' : 'No threads yet: point an agent at this daemon, or compact a file.';
    $('threads').replaceChildren(rows(found.slice(0, most), none,
      (t) => [t.about && t.about.title, (t.labels && t.labels.agent) || '', t.about && t.about.model, t.about && t.about.api, number(t.version), t.about && t.about.compacted_at ? short(t.about.tokens_before) + ' → ' + short(t.about.tokens_after) : '', t.about && t.about.compacted_at ? ago(t.about.compacted_at) : 'never', ago(t.changed_at)],
      ['Title', 'Agent', 'Model', 'API', 'Messages', 'Tokens', 'Last compaction', 'Changed'], (t) => '#/thread/' + encodeURIComponent(t.id)));
    if (found.length) $('threads').append(make('p', { class: 'totals' }, plural(found.length, 'thread') + ' with ' + plural(found.reduce((n, t) => n + t.version, 0), 'message') + '; compacted: ' + number(found.filter((t) => t.plan_version).length)));
    if (found.length > most) $('threads').append(make('p', { class: 'none' }, 'These are the newest ' + most + ' of ' + number(found.length) + ': a search finds the others.'));
    $('sessions').replaceChildren(rows(home.sessions.filter(has), q ? 'No session matches.' : 'No sessions of agents were found.',
      (s) => [s.title, s.agent, short(s.bytes).replace(/[kM]?$/, ' $&B'), s.project || '', ago(s.changed_at)], ['Title', 'Agent', 'Size', 'Project', 'Changed'], (s) => '#/session/' + encodeURIComponent(s.id)));
  }
  async function goHome() {
    if (watching) watching.abort();
    watching = null;
    state.view = null;
    leave();
    $('live').hidden = true;
    $('try').hidden = true;
    for (const el of document.querySelectorAll('[data-served]')) el.hidden = true;
    $('copy-command').hidden = true;
    $('title').textContent = 'What your agents said, and what their models get';
    $('meta').textContent = '';
    document.title = 'Palimpsest';
    tab('home');
    const here = source;
    home = { threads: [], sessions: [], all: false };
    try {
      let cursor = '';
      do { // they come by their ids: the newest may be the last
        const page = await ask('GET', '/v1/threads?about=yes&limit=50' + (cursor ? '&cursor=' + encodeURIComponent(cursor) : ''));
        if (source !== here) return;
        home.threads.push(...page.items);
        cursor = page.next || '';
        home.threads.sort((a, b) => Date.parse(b.changed_at || 0) - Date.parse(a.changed_at || 0));
        home.all = !cursor;
        showHome($('search').value.trim());
      } while (cursor);
    } catch (err) { failed(err); }
    try {
      const { items } = await ask('GET', '/v1/sessions');
      if (source !== here) return;
      home.sessions = items;
      $('sessions-box').hidden = false;
    } catch { $('sessions-box').hidden = true; }
    showHome($('search').value.trim());
  }
  async function route() {
    const [, kind, id] = location.hash.split('/');
    $('search').value = '';
    state.query = '';
    state.kind = '';
    state.record = -1;
    state.chosen = -1;
    leave();
    loads++;
    $('found').textContent = '';
    if (kind !== 'thread' && kind !== 'session' || !id) { source = state.source = { kind: 'home', current: 0 }; return goHome(); }
    const here = source = state.source = { kind, id: decodeURIComponent(id), current: 0 };
    state.view = null;
    $('try-policy').replaceChildren();
    $('try-favor').replaceChildren();
    try {
      await load();
      if (source !== here) return;
      tab('session');
      lists.log.el.focus();
      if (kind === 'thread') watch();
    } catch (err) {
      if (source !== here) return;
      failed(err);
      location.hash = '#/';
    }
  }
  addEventListener('hashchange', route);

  const text = (name, path, own) => {
    if (own !== undefined || !served || source.kind !== 'thread') return Promise.resolve(own || '');
    if (!texts.has(name)) {
      const asked = ask('GET', at(source.id) + path);
      texts.set(name, asked);
      asked.catch(() => { if (texts.get(name) === asked) texts.delete(name); }); // the next look asks again
    }
    return texts.get(name);
  };
  return {
    served, can,
    start: route,
    text: (msg) => text('m' + msg.id, '/text?message=' + encodeURIComponent(msg.id), msg.text),
    partText: (part, n) => text('p' + n, '/text?part=' + n + '&plan=' + state.view.plan_version, part.text),
    artifact: (id) => ask('GET', at(source.id) + '/artifacts/' + encodeURIComponent(id) + '/content').catch(async (err) => {
      if (err.status !== 404) throw err; // it was not stored apart: the log has it all
      const r = state.view.records.findIndex((x) => x.artifact_id === id);
      return (await Promise.all(state.m.members[r].map((i) => live.text(state.view.messages[i])))).join('\n\n');
    }).catch((err) => err.message),
    diff: (a, b) => ask('GET', at(source.id) + '/diff?from=' + a + '&to=' + b),
    search: async (q) => {
      if (source.kind !== 'thread') return null;
      try { return new Set((await ask('GET', at(source.id) + '/recall?limit=100&q=' + encodeURIComponent(q))).items.map((h) => h.message_id)); } catch { return null; }
    },
    look: (version) => load(version).then(() => tab('session'), failed),
    undo: async (version) => {
      if (!await sure(version ? 'Put plan ' + version + ' in force?' : 'Show everything again?', 'It becomes a new version of the plan, which can be undone in turn. The log stays as it is.')) return;
      await changed('/undo', { version }, version ? 'Plan ' + version + ' is in force' : 'Everything is shown as it was said');
    },
    expand: async () => {
      const msg = chosen();
      if (!msg || msg.record < 0) return;
      await changed('/expand', { message_id: msg.id }, 'Shown again as it was said');
    },
    pin: async () => {
      const msg = chosen();
      if (msg) await changed('/pin', { message_id: msg.id, free: !!msg.pinned }, msg.pinned ? 'Unpinned' : 'Pinned: no plan takes it away');
    },
    filterHome: showHome,
    keys: () => source.kind !== 'thread' ? { v: openTry } : {
      v: openTry, e: () => can('write') && live.expand(), p: () => can('write') && live.pin(), o: () => panel.artifact(),
      u: () => can('write') && source.current > 0 && live.undo(source.current - 1),
    },
  };
})();
