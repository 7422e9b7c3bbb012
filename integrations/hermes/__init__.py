"""Hermes' context engine: before each request the messages go to Palimpsest's daemon, and
what comes back says which of them stay, which go and what stands in their place. All
decisions are the daemon's, and Hermes' own history is not changed by a request. Whatever
fails, the request goes out as Hermes has it, and a compression leaves it as it is.

Only what Python brings with it is needed."""

import hashlib
import json
import logging
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

try:
    from agent.context_engine import ContextEngine
except ImportError:  # outside of Hermes
    ContextEngine = object

PROGRAM = 'palimpsest'
# A daemon that must be started reads its store first; one that cannot start is not asked
# for at each call. All in seconds.
STARTING = 8
AGAIN = 30
ANSWER = 30

log = logging.getLogger(__name__)

TOOLS = {
    'recall': ('query', 'Search what was removed from this conversation to make room.', 'Words to search for'),
    'read_artifact': ('artifact_id', 'Read in full what a placeholder of this conversation points to.', 'The id that the placeholder names'),
}


class Refused(Exception):
    """The daemon answers, and says no."""

    def __init__(self, status, detail):
        super().__init__(detail)
        self.status = status


class Daemon:
    """Finds the daemon, and asks it. It may be used from several threads at once."""

    def __init__(self):
        self._lock = threading.Lock()
        self._at = None
        self._tried = None
        # The daemon is on this machine: no proxy of the user's stands before it.
        self._open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

    def __deepcopy__(self, memo):
        return self  # engines that Hermes copies for its agents share it

    def _running(self, gone=None):
        with self._lock:
            if self._at is not None and self._at is not gone:
                return self._at
            self._at = None
            if self._tried is not None and time.monotonic() - self._tried < AGAIN:
                raise OSError('the daemon did not start before')
            self._tried = time.monotonic()
            out = subprocess.run([PROGRAM, 'daemon'], capture_output=True, timeout=STARTING, check=True).stdout
            at = json.loads(out)
            self._at, self._tried = {'url': at['url'], 'key': at['key']}, None
            return self._at

    def ask(self, path, body):
        """Asks the daemon; one that has ended since is started again."""
        data = json.dumps(body).encode()
        gone = None
        for left in (2, 1, 0):
            at = self._running(gone)
            headers = {'Content-Type': 'application/json', 'Authorization': 'Bearer ' + at['key']}
            request = urllib.request.Request(at['url'] + path, data, headers)
            try:
                with self._open(request, timeout=ANSWER) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as err:
                raise Refused(err.code, _detail(err)) from err
            except TimeoutError:
                raise
            except OSError as err:
                if left == 0 or isinstance(getattr(err, 'reason', None), TimeoutError):
                    raise
                gone = at

    def edits(self, thread, step):
        """What to do with the messages of a conversation, in the order of its thread."""
        path = '/v1/threads/%s/prepare' % urllib.parse.quote(thread, safe='')
        step = dict(step, edits=True)
        try:
            made = self.ask(path, step)
        except Refused as err:
            if err.status != 404:
                raise
            self.ask('/v1/threads', {'id': thread})
            made = self.ask(path, step)
        # A daemon that knows nothing of edits answers with the whole request.
        if not isinstance(made.get('version'), int) or made.get('body') or (made.get('prompt') or {}).get('messages'):
            raise ValueError('the daemon gives no edits: is it of an older version?')
        edits = made.get('edits') or []
        gone = {e.get('message_id') for e in edits if e.get('omit')}
        if step['messages'] and all(m['id'] in gone for m in step['messages']) and not any(e.get('insert_before') for e in edits):
            raise ValueError('the daemon leaves nothing')
        return edits

    def answer(self, thread, name, call, args):
        """What the daemon answers to a call of a tool."""
        key = TOOLS[name][0]
        part = {'type': 'tool_call', 'call_id': call, 'tool': name, 'arguments': json.dumps({key: args.get(key)})}
        said = self.ask('/v1/threads/%s/answer' % urllib.parse.quote(thread, safe=''), part)
        return '\n'.join(p['text'] for p in said['parts'][0]['content'] if p.get('text'))


def _detail(err):
    try:
        return json.load(err)['detail']
    except Exception:  # it is what a proxy or another program says
        return 'the daemon answers %d' % err.code


def _text(s):
    return {'type': 'text', 'text': s}


def _parts(content):
    """A message's content as parts; what is no text is told as what it is."""
    if isinstance(content, str):
        return [_text(content)] if content else []
    out = []
    for p in content or []:
        if p.get('type') == 'image_url':
            url = p['image_url']['url']
            head, _, data = url.partition(';base64,')
            mime = head[5:] if data else 'image/png'
            out.append({'type': 'media', 'media': 'image', 'mime': mime, **({'data': data} if data else {'url': url})})
        elif p.get('text'):
            out.append(_text(p['text']))
    return out


def _told(m):
    """A message of a chat in the daemon's form; None for what is none of the conversation."""
    role = m.get('role')
    if role == 'user':
        parts = _parts(m.get('content'))
    elif role == 'assistant':
        parts = _parts(m.get('content')) + [
            {'type': 'tool_call', 'call_id': c['id'], 'tool': c['function']['name'], 'arguments': c['function'].get('arguments') or '{}'}
            for c in m.get('tool_calls') or []
        ]
        if m.get('reasoning_content'):
            parts.insert(0, {'type': 'reasoning', 'text': m['reasoning_content']})
    elif role == 'tool':
        parts = [{'type': 'tool_result', 'call_id': m['tool_call_id'], 'outcome': 'success', 'content': _parts(m.get('content')) or [_text('(no text)')]}]
    else:
        return None
    return {'role': role, 'parts': parts} if parts else None


def _summary(m, summaries):
    return m.get('role') == 'user' and isinstance(m.get('content'), str) and m['content'] in summaries


def _named(messages, summaries):
    """The messages that the daemon is told with their places. Hermes' have no ids: a call
    and its result are known by the call's id, all else by what it says and what stands
    before it, and at last by its number. Summaries of an earlier compression are the
    daemon's own."""
    times, all, last = {}, [], ''
    for at, m in enumerate(messages):
        told = _told(m)
        if told is None or _summary(m, summaries):
            continue
        calls = [p['call_id'] for p in told['parts'] if p.get('call_id')]
        key = '%s:%s' % (told['role'], calls[0] if calls else _digest(json.dumps(told, sort_keys=True)))
        id = key if calls or not last else '%s.%s' % (key, _digest(last))
        times[id] = times.get(id, 0) + 1
        if times[id] > 1:
            id += '#%d' % times[id]
        all.append((at, dict(told, id=id)))
        last = key
    return all


def _digest(s):
    return hashlib.sha256(s.encode()).hexdigest()[:16]


def _remade(m, content):
    """A message that says something else now. Its pictures and its calls are its own."""
    if content and content[0].get('type') == 'tool_result':
        content = content[0].get('content') or []
    pictures = [p for p in m['content'] if p.get('type') == 'image_url'] if isinstance(m.get('content'), list) else []
    said = []
    for p in content:
        if p['type'] == 'text':
            said.append(_text(p['text']))
        elif p['type'] == 'media' and pictures:
            said.append(pictures.pop(0))
    plain = all(p['type'] == 'text' for p in said)
    out = dict(m, content='\n'.join(p['text'] for p in said) if plain else said)
    if m.get('tool_calls'):
        arguments = {p['call_id']: p.get('arguments') or '{}' for p in content if p['type'] == 'tool_call'}
        out['tool_calls'] = [dict(c, function=dict(c['function'], arguments=arguments[c['id']])) for c in m['tool_calls'] if c['id'] in arguments]
        if not out['tool_calls']:
            del out['tool_calls']
    return out


def _edited(messages, named, edits, summaries):
    """The messages after the edits, and the summaries among them; what did not change is
    Hermes' own, and earlier summaries stand where the edits have them now."""
    place = {told['id']: at for at, told in named}
    before, change, waiting, first = {}, {}, [], []
    for e in edits:
        at = place.get(e.get('message_id'))
        gone = e.get('message_id') and at is None
        for m in e.get('insert_before') or []:
            texts = [p for part in m['parts'] for p in (part.get('content') or [] if part['type'] == 'tool_result' else [part])]
            said = '\n'.join(p['text'] for p in texts if p.get('type') == 'text' and p.get('text'))
            # Where Hermes has lost the beginning it comes first.
            (first if gone and not change else waiting).append(said)
        if at is not None:  # what Hermes has no longer is put before the next that has an edit
            before[at], waiting = waiting, []
            change[at] = e
    before[len(messages)] = waiting
    if first:
        at = named[0][0] if named else len(messages)
        before[at] = first + before.get(at, [])
    out = []
    for at, m in enumerate(messages + [None]):
        # A summary is the user's: it stands in no answer's name.
        out += [{'role': 'user', 'content': s} for s in before.get(at, []) if s]
        e = change.get(at, {})
        if m is None or e.get('omit') or _summary(m, summaries):
            continue
        out.append(_remade(m, e['content']) if e.get('content') else m)
    return out, {s for all in before.values() for s in all if s}


class Palimpsest(ContextEngine):
    """The engine. Hermes reads the attributes."""

    threshold_percent = 0.75
    protect_first_n = 0
    protect_last_n = 0
    emit_automatic_compaction_status = True

    @property
    def name(self):
        return 'palimpsest'

    def __init__(self, daemon=None):
        self._daemon = daemon or Daemon()
        self._session = 'unnamed'
        self._summaries = frozenset()  # that a compression left in Hermes' history
        self._model = ''
        self.context_length = 0
        self.threshold_tokens = 0
        self.on_session_reset()

    def _step(self, messages, window):
        named = _named(messages, self._summaries)
        system = [{'text': p['text']} for m in messages if m.get('role') in ('system', 'developer') for p in _parts(m.get('content')) if p.get('text')]
        base = {'model': self._model, 'system': system, 'tools': [{'name': name} for name in TOOLS]}
        step = {'base': base, 'messages': [told for _, told in named]}
        if window > 0:
            step['window'] = int(window)
        return named, step

    def _thread(self):
        return 'hermes.' + self._session

    def select_context(self, request_messages, *, conversation_messages=None, incoming_message=None, budget_tokens=0):
        try:
            named, step = self._step(request_messages, budget_tokens or self.context_length)
            edits = self._daemon.edits(self._thread(), step)
            return _edited(request_messages, named, edits, self._summaries)[0] if edits else None
        except Exception as err:
            log.warning('palimpsest: %s', err)
            return None

    def compress(self, messages, current_tokens=None, focus_topic=None, force=False, memory_context=''):
        try:
            named, step = self._step(messages, self.context_length)
            step['force'] = True
            if focus_topic:
                step['instructions'] = focus_topic
            edits = self._daemon.edits(self._thread(), step)
            if not edits:
                return messages
            made, summaries = _edited(messages, named, edits, self._summaries)
            self._summaries |= summaries
            if made != messages:
                self.compression_count += 1
            return made
        except Exception as err:
            log.warning('palimpsest: %s', err)
            return messages

    def should_compress(self, prompt_tokens=None):
        # What is sent is made smaller before each request. Beyond that there is something to
        # do only where the daemon did not answer.
        prompt_tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        return 0 < self.threshold_tokens <= prompt_tokens

    def update_from_response(self, usage):
        self.last_prompt_tokens = usage.get('prompt_tokens') or 0
        self.last_completion_tokens = usage.get('completion_tokens') or 0
        self.last_total_tokens = usage.get('total_tokens') or self.last_prompt_tokens + self.last_completion_tokens

    def update_model(self, model, context_length, *args, **kwargs):
        self._model = model or ''
        self.context_length = context_length or 0
        self.threshold_tokens = int(self.context_length * self.threshold_percent)

    def on_session_start(self, session_id, **kwargs):
        # After a compression the conversation goes on under another name.
        if kwargs.get('boundary_reason') != 'compression':
            self._session, self._summaries = session_id, frozenset()
        self.context_length = kwargs.get('context_length') or self.context_length
        self._model = kwargs.get('model') or self._model

    def on_session_reset(self):
        self.last_prompt_tokens = self.last_completion_tokens = self.last_total_tokens = 0
        self.compression_count = 0

    def get_tool_schemas(self):
        return [
            {'name': name, 'description': description, 'parameters': {'type': 'object', 'properties': {key: {'type': 'string', 'description': says}}, 'required': [key]}}
            for name, (key, description, says) in TOOLS.items()
        ]

    def handle_tool_call(self, name, args, **kwargs):
        if name not in TOOLS:
            return json.dumps({'error': 'there is no tool ' + name})
        try:
            return json.dumps({'result': self._daemon.answer(self._thread(), name, kwargs.get('tool_call_id') or name, args)})
        except Exception as err:
            return json.dumps({'error': str(err)})


def register(ctx):
    ctx.register_context_engine(Palimpsest())
