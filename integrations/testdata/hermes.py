"""Plays Hermes: hermes.py PLUGIN PARTS writes what the engine did of each request. The
abstract class has what Hermes asks of an engine, from its description."""
import abc
import copy
import importlib.util
import json
import logging
import sys
import types

plugin, parts = sys.argv[1], int(sys.argv[2])


class ContextEngine(abc.ABC):
    context_length = 0

    @property
    @abc.abstractmethod
    def name(self): ...

    @abc.abstractmethod
    def update_from_response(self, usage): ...

    @abc.abstractmethod
    def should_compress(self, prompt_tokens=None): ...

    @abc.abstractmethod
    def compress(self, messages, current_tokens=None, focus_topic=None, force=False, memory_context=''): ...

    def select_context(self, request_messages, *, conversation_messages=None, incoming_message=None, budget_tokens=0):
        return None

    def clone_for_agent(self):
        return copy.deepcopy(self)


module = types.ModuleType('agent.context_engine')
module.ContextEngine = ContextEngine
sys.modules['agent'] = types.ModuleType('agent')
sys.modules['agent.context_engine'] = module

logged = []
logging.getLogger().addHandler(type('Kept', (logging.Handler,), {'emit': lambda self, r: logged.append(r.getMessage())})())

spec = importlib.util.spec_from_file_location('palimpsest', plugin)
loaded = importlib.util.module_from_spec(spec)
spec.loader.exec_module(loaded)
engines = []
loaded.register(types.SimpleNamespace(register_context_engine=engines.append))
engine = engines[0].clone_for_agent()
engine.update_model('m', 20000)
engine.on_session_start('s1', hermes_home='/', platform='cli', model='m', context_length=20000)

history = []


def ask():
    request = [{'role': 'system', 'content': 'You read parts.'}] + history
    before = json.dumps(request)
    made = engine.select_context(request, conversation_messages=history, incoming_message=None, budget_tokens=20000)
    engine.update_from_response({'prompt_tokens': len(before) // 4, 'completion_tokens': 5, 'total_tokens': len(before) // 4 + 5})
    return {'own': json.dumps(request) == before, 'same': made is None, 'messages': seen(request if made is None else made)}


def seen(messages):
    return [{'role': m['role'], 'text': m.get('content') or '', 'calls': [c['id'] for c in m.get('tool_calls', [])], 'answers': m.get('tool_call_id', '')} for m in messages]


def part(i):
    text = 'part %d: the code is K%d\n' % (i, i * 7919) + 'line of part %d\n' % i * 400
    call = {'id': 'call_%d' % i, 'type': 'function', 'function': {'name': 'terminal', 'arguments': '{"command":"./part %d"}' % i}}
    return [
        {'role': 'assistant', 'content': None if i % 3 else 'Part %d.' % i, 'tool_calls': [call]},
        {'role': 'tool', 'tool_call_id': call['id'], 'content': text},
    ]


history.append({'role': 'user', 'content': 'Read all parts. Never change a file.'})
steps = [ask()]
for i in range(1, parts + 1):
    history += part(i)
    steps.append(ask())
full = engine.should_compress()


def recall():
    return json.loads(engine.handle_tool_call('recall', {'query': '"the code is K7919"'}, messages=history))


recalled = recall()
sent = []
send = engine._daemon.ask
engine._daemon.ask = lambda path, body: sent.append(body) or send(path, body)
# Hermes keeps what a compression leaves, under another name, and goes on.
whole = list(history)
history[:] = engine.compress(history, current_tokens=19000, focus_topic='the codes', force=True)
compressed = {'own': history == whole, 'messages': seen(history), 'count': engine.compression_count}
engine.on_session_start('s2', boundary_reason='compression', old_session_id='s1')
history += part(parts + 1)
after = ask()
print(json.dumps({
    'name': engine.name, 'steps': steps, 'full': full, 'recalled': recalled, 'compressed': compressed, 'after': after, 'later': recall(),
    'focus': sent[0].get('instructions', ''), 'tools': [t['name'] for t in engine.get_tool_schemas()], 'unknown': json.loads(engine.handle_tool_call('rm', {})), 'logged': logged,
}))
