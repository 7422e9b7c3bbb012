#!/usr/bin/env bash
# Runs real agents with `palimpsest mcp` as their MCP server, against the scripted
# provider in ./upstream, and prints the table that stands in e2e/agents/results.md: which
# tools each agent offers its model, and whether a search comes back. Not part of CI.
#
#   e2e/agents/mcp.sh               claude, codex, opencode and gemini
#   WORK=DIR e2e/agents/mcp.sh      agents that run.sh has installed in DIR are taken
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
packages=(claude @anthropic-ai/claude-code@2.1.329 codex @openai/codex@0.169.0 opencode opencode-ai@1.18.33 gemini @google/gemini-cli@0.61.0)

if [[ ${1:-} != --inside ]]; then
  work=${WORK:-$(mktemp -d "${TMPDIR:-/tmp}/agents.XXXXXX")}
  [[ -n ${WORK:-} ]] || trap 'rm -rf "$work"' EXIT
  (cd "$root" && go build -o "$work/palimpsest" ./cmd/palimpsest)
  (cd "$root/e2e" && go build -o "$work/upstream" ./agents/upstream)
  for ((i = 0; i < ${#packages[@]}; i += 2)); do
    dir=$work/${packages[i]}
    [[ ! -d $dir/node_modules ]] || continue
    mkdir -p "$dir" && echo '{"private":true}' >"$dir/package.json"
    (cd "$dir" && npm install --cache "$work/cache" --no-audit --no-fund --loglevel=error "${packages[i + 1]}") >"$dir/install.log" 2>&1
  done
  mkdir -p "$work/inspector" && echo '{"private":true}' >"$work/inspector/package.json"
  (cd "$work/inspector" && npm install --cache "$work/cache" --no-audit --no-fund --loglevel=error "@modelcontextprotocol/inspector@0.15.0") >"$work/inspector/install.log" 2>&1
  inside=(bash "$here/mcp.sh" --inside "$work")
  if unshare -rn true 2>/dev/null; then
    unshare -rn bash -c 'ip link set lo up && exec "$@"' - "${inside[@]}"
  else
    echo "no network namespace here: the agents could reach more than loopback" >&2
    "${inside[@]}"
  fi
  exit
fi

work=$2
task='What did we decide about the retry backoff? Search the earlier sessions.'
echo '| agent | tools offered | one is called | a search came back |'
echo '|---|---|---|---|'
for ((i = 0; i < ${#packages[@]}; i += 2)); do
  name=${packages[i]} bin=$work/${packages[i]}/node_modules/.bin/${packages[i]} log=$work/mcp-${packages[i]}
  rm -rf "$log" && mkdir -p "$log/task" "$log/home/.claude/projects/-src-shipq" "$log/home/.codex" "$log/home/.gemini"
  cp "$root/testdata/sessions/fix-retry.claude-code.jsonl" "$log/home/.claude/projects/-src-shipq/91bfefb2-9533-4bcc-8bfc-f00dd138f269.jsonl"
  "$work/upstream" -url "$log/url" -dump "$log" -ask 'retry backoff jitter' -row "| $name ${packages[i + 1]##*@}" >"$log/row" 2>"$log/upstream.log" &
  server=$!
  until [[ -s $log/url ]]; do sleep 0.1; done
  base=$(cat "$log/url")
  vars=(PATH="$work:$PATH" HOME="$log/home" TERM=dumb ANTHROPIC_API_KEY=sk-ant-fake OPENAI_API_KEY=sk-fake CODEX_API_KEY=sk-fake GEMINI_API_KEY=fake
    ANTHROPIC_BASE_URL="$base" GOOGLE_GEMINI_BASE_URL="$base" IS_SANDBOX=1 DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 MCP_CONNECTION_NONBLOCKING=0
    OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1 NO_COLOR=1 CI=1 GEMINI_CLI_TRUST_WORKSPACE=true)
  # The settings that docs/agents.md shows, and a headless run.
  case $name in
  claude)
    setup=("$bin" mcp add --scope user palimpsest -- palimpsest mcp)
    cmd=("$bin" -p --model claude-sonnet-4-5 --dangerously-skip-permissions "$task") ;;
  codex)
    setup=("$bin" mcp add palimpsest -- palimpsest mcp)
    cmd=("$bin" -c "openai_base_url=\"$base/v1\"" exec -m gpt-5.2 --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox "$task") ;;
  opencode)
    setup=(sh -c 'printf "{\"mcp\":{\"palimpsest\":{\"type\":\"local\",\"command\":[\"palimpsest\",\"mcp\"]}}}" >opencode.json')
    vars+=(OPENCODE_CONFIG_CONTENT="{\"provider\":{\"anthropic\":{\"options\":{\"baseURL\":\"$base/v1\"}}}}")
    cmd=("$bin" run -m anthropic/claude-sonnet-4-5 "$task") ;;
  gemini)
    setup=("$bin" mcp add --scope user palimpsest palimpsest mcp)
    echo '{"security":{"auth":{"selectedType":"gemini-api-key"}}}' >"$log/home/.gemini/settings.json"
    cmd=("$bin" --yolo -m gemini-2.5-pro -p "$task") ;;
  esac
  (cd "$log/task" && env -i "${vars[@]}" timeout 120 "${setup[@]}" </dev/null >"$log/setup" 2>&1) || echo "$name: the setup line failed" >&2
  (cd "$log/task" && env -i "${vars[@]}" timeout 300 "${cmd[@]}" </dev/null >"$log/out" 2>"$log/err") || echo "$name: exit $?" >&2
  kill -TERM $server && wait $server || true
  cat "$log/row"
done

# The reference inspector asks for the tools and calls one, over both transports.
vars=(PATH="$PATH" HOME="$work/mcp-claude/home")
env -i "${vars[@]}" "$work/palimpsest" serve --listen 127.0.0.1:0 --store memory: 2>"$work/serve.log" &
server=$!
until at=$(grep -o -m1 'http://127\.0\.0\.1:[0-9]*' "$work/serve.log"); do sleep 0.1; done
for target in "$work/palimpsest mcp" "$at/mcp --transport http"; do
  # shellcheck disable=SC2086 # words of a command
  inspect() { env -i "${vars[@]}" timeout 60 "$work/inspector/node_modules/.bin/mcp-inspector" --cli $target "$@"; }
  tools=$(inspect --method tools/list | grep -c '^      "name"' || true)
  called=$(inspect --method tools/call --tool-name sessions | grep -c '"isError": true' || true)
  echo "inspector 0.15.0, ${target##* }: $tools tools, $called errors"
done
kill -TERM $server && wait $server || true
