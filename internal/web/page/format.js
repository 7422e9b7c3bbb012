// Words, numbers and elements.
const $ = (id) => document.getElementById(id);
const number = (n) => Math.round(n).toLocaleString('en-US');
const short = (n) => {
  const a = Math.abs(n);
  if (a >= 999500) return (n / 1e6).toFixed(a >= 9.95e6 ? 0 : 1) + 'M';
  if (a >= 9950) return Math.round(n / 1000) + 'k';
  if (a >= 1000) return (n / 1000).toFixed(1) + 'k';
  return String(Math.round(n));
};
const plural = (n, word) => number(n) + ' ' + word + (n === 1 ? '' : 's');
const money = (n) => '$' + (n >= 100 ? number(n) : n.toFixed(n >= 1 ? 2 : 4));
const share = (a, b) => b > 0 ? Math.round(100 * a / b) + ' %' : '';
const ago = (time) => {
  const t = Date.parse(time);
  if (!(t > 0)) return '';
  const min = (Date.now() - t) / 60000;
  if (min < 1) return 'now';
  if (min < 60) return Math.floor(min) + ' min ago';
  if (min < 48 * 60) return Math.floor(min / 60) + ' h ago';
  return plural(Math.floor(min / 1440), 'day') + ' ago';
};
// because is a record's reason, in words for people who know no cuts.
const because = (r) => (r.reason || '').replace(/^(before the cut|older than what stays whole)/, () => 'it is older than the newest ' + number(r.newer || 0) + ' tokens, which stay');
const turns = (r) => r.first_turn === r.last_turn ? 'turn ' + r.first_turn : 'turns ' + r.first_turn + '–' + r.last_turn;

// make builds an element. Text becomes text and never markup.
function make(tag, props, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === false || value === null) continue;
    if (name === 'class') el.className = value;
    else if (name.startsWith('on')) el.addEventListener(name.slice(2), value);
    else el.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== false) el.append(child);
  return el;
}

// marked is a text as nodes, with each place of what is searched for marked, up to 500.
function marked(text, query) {
  const out = [], lower = text.toLowerCase(), q = query.toLowerCase();
  let at = 0;
  if (q && lower.length === text.length) for (let i = lower.indexOf(q); i >= 0 && out.length < 1000; i = lower.indexOf(q, at)) {
    out.push(text.slice(at, i), make('mark', {}, text.slice(i, i + q.length)));
    at = i + q.length;
  }
  out.push(text.slice(at));
  return out;
}

// kinds are what can become of a message, in the order of the legend.
const kinds = {
  summarize: { word: 'summarised', verb: 'A summary stands in its place.' },
  externalize: { word: 'offloaded', verb: 'It is kept outside; a pointer with a few words stands in its place.' },
  clear: { word: 'cleared', verb: 'Only its key figures stand in its place.' },
  drop: { word: 'dropped', verb: 'Nothing stands in its place.' },
  include: { word: 'kept', verb: 'The model gets it as it was said.' },
};
// folderOf is the folder that most of the paths in the texts are below, with its last slash; empty for none.
function folderOf(texts) {
  const paths = texts.flatMap((t) => t.match(/(?<![\w./~-])~?\/[\w.@+-]+\/[\w.@+/-]*/) || []);
  let folder = '';
  for (let next; ; folder = next) {
    const below = new Map();
    for (const p of paths) if (p.startsWith(folder)) {
      const f = p.slice(0, p.indexOf('/', folder.length + 1) + 1);
      below.set(f, (below.get(f) || 0) + 1);
    }
    below.delete('');
    const most = [...below].sort((a, b) => b[1] - a[1])[0];
    if (!most || most[1] < 0.6 * paths.length) return folder;
    next = most[0];
  }
}
const colourOf = (action) => action === 'include' ? 'kept' : action;
const people = { user: 'user', assistant: 'agent', tool: 'tool', system: 'system', harness: 'harness', tools: 'tools', compaction: 'summary' };

let telling = 0;
function tell(text) {
  $('told').textContent = text;
  clearTimeout(telling);
  telling = setTimeout(() => { $('told').textContent = ''; }, 5000);
}
async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make('textarea', { 'aria-hidden': 'true' });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  tell(what + ' copied');
}
