"""An agent loop over Palimpsest's daemon (palimpsest serve), with the standard library only.

The daemon keeps the conversation: each step sends what is new and gets the request for the
model, compacted if that is due. run() takes the two functions that are yours: model(request)
asks the provider and returns its response as a dict, use(name, arguments) runs a tool. The
requests here are those of Anthropic's Messages API.
"""
import json
import time
import urllib.error
import urllib.parse
import urllib.request

DAEMON = 'http://127.0.0.1:7433'
KEY = ''  # of `palimpsest keys add`, where the daemon has keys


class TooLong(Exception):
    """For model() to raise when the provider rejects the request as too long."""


class Refused(Exception):
    """An answer of the daemon that is no success: its status, the kind of problem, what it says."""

    def __init__(self, status, text):
        try:
            problem = json.loads(text)
        except ValueError:
            problem = {}  # it is not the daemon that answers here
        self.status, self.kind = status, problem.get('type', '').rpartition('#')[2]
        super().__init__(f'{status}: {problem.get("detail") or text[:200]}')


def call(path, body=None, version=None):
    """Asks the daemon. At a limit (429), and while it cannot answer (503), it is asked again: with a
    version in If-Match, a call that was made already changes nothing. All else is the caller's."""
    asked = urllib.request.Request(DAEMON + path, None if body is None else json.dumps(body).encode())
    asked.add_header('Content-Type', 'application/json')
    if KEY:
        asked.add_header('Authorization', 'Bearer ' + KEY)
    if version is not None:
        asked.add_header('If-Match', f'"{version}"')
    for left in (3, 2, 1, 0):
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as err:
            if err.code not in (429, 503) or left == 0:
                raise Refused(err.code, err.read().decode(errors='replace')) from None
            time.sleep(float(err.headers.get('Retry-After') or 1))


def run(thread, base, task, model, use, window=200_000):
    """Works on a task until the model calls no tool any more, and returns its last response. base is
    the request without messages; system and tools should not change from step to step."""
    at = '/v1/threads/' + urllib.parse.quote(thread, safe='')
    try:
        version = call('/v1/threads', {'id': thread})['version']
    except Refused as err:
        if err.kind != 'exists':
            raise
        version = call(at)['version']  # the conversation goes on
    new = [{'role': 'user', 'content': task}]
    while True:
        step = {'api': 'anthropic', 'window': window, 'body': {**base, 'messages': new}}
        made = call(at + '/prepare', step, version)
        try:
            response = model(made['body'])
        except TooLong:  # compacted harder, once
            made = call(at + '/overflowed', {**step, 'body': {**base, 'messages': []}})
            response = model(made['body'])
        version = call(at + '/finish', {'api': 'anthropic', 'response': response}, made['version'])['version']
        calls = [b for b in response['content'] if b['type'] == 'tool_use']
        if not calls:
            return response
        new = [{'role': 'user', 'content': [
            {'type': 'tool_result', 'tool_use_id': c['id'], 'content': result(at, c, use)} for c in calls]}]


def result(at, c, use):
    """The result of a call. Once something was removed, requests offer the model two tools of the
    daemon's, recall and read_artifact, whose calls it answers."""
    if c['name'] not in ('recall', 'read_artifact'):
        return use(c['name'], c['input'])
    told = call(at + '/answer', {'type': 'tool_call', 'call_id': c['id'], 'tool': c['name'], 'arguments': json.dumps(c['input'])})
    return '\n'.join(p['text'] for p in told['parts'][0]['content'] if p['type'] == 'text')
