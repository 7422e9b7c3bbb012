"""Plays a model to examples/python/loop.py: loop.py LOOP DAEMON PARTS writes what it was asked
and what became of the task. The model knows only what is in the request."""
import importlib.util
import json
import re
import sys

sys.dont_write_bytecode = True  # beside the example
spec = importlib.util.spec_from_file_location('loop', sys.argv[1])
loop = importlib.util.module_from_spec(spec)
spec.loader.exec_module(loop)
loop.DAEMON, loop.KEY, parts = sys.argv[2], 'k', int(sys.argv[3])
waited = []
loop.time.sleep = waited.append

requests, looked, refused = [], [], []
tools = [{'name': 'part', 'description': 'Read a part.', 'input_schema': {'type': 'object', 'properties': {'n': {'type': 'integer'}}}}]
base = {'model': 'm', 'max_tokens': 1000, 'system': 'You read parts.', 'tools': tools}


def use(name, arguments):
    n = arguments['n']
    return f'part {n}: the code is K{n * 7919}\n' + f'line of part {n}\n' * 400


def model(request):
    requests.append(request)
    text = json.dumps(request['messages'])
    if len(requests) == 5:
        raise loop.TooLong
    read = int(re.findall(r'"n": (\d+)', text)[-1]) if '"n": ' in text else 0
    code = re.search(r'the code is (K7919)\b', text)
    if read < parts:
        call = {'name': 'part', 'input': {'n': read + 1}}
    elif 'recall' in [t['name'] for t in request['tools']] and not looked:
        call = {'name': 'recall', 'input': {'query': 'the code of part 1'}}
        looked.append(call)
    else:
        looked.append(request['messages'][-1]['content'])
        return said([{'type': 'text', 'text': 'The code of part 1 is ' + (code[1] if code else 'lost')}])
    return said([{'type': 'text', 'text': 'Next.'}, {'type': 'tool_use', 'id': f'call_{len(requests)}', **call}])


def said(content):
    return {'type': 'message', 'role': 'assistant', 'content': content, 'usage': {'input_tokens': 100, 'output_tokens': 10}}


def fails(*arguments):
    try:
        loop.run(*arguments, model, use)
    except loop.Refused as err:
        refused.append({'status': err.status, 'kind': err.kind, 'says': str(err)})


thread = 'a task/1'
last = loop.run(thread, base, 'Read all parts.', model, use, window=20_000)
count = len(requests)
again = loop.run(thread, base, 'And once more: which code?', model, use, window=20_000)
fails('another', {**base, 'messages': 7, 'system': 7}, 'Read.')
loop.DAEMON += '/nothing'
fails('another', base, 'Read.')
json.dump({
    'requests': requests[:count], 'looked': json.dumps(looked[1]), 'last': last['content'][0]['text'], 'again': again['content'][0]['text'],
    'resumed': requests[count], 'refused': refused, 'waited': waited,
}, sys.stdout)
