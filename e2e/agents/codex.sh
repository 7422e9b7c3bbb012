#!/usr/bin/env bash
# Runs Codex through palimpsest run with a limit far below the window, so that it compacts by
# itself, and prints the table that stands in e2e/agents/results.md. Not part of CI: it installs
# Codex from the npm registry into a folder that is removed at the end.
#
#   e2e/agents/codex.sh                    all rows
#   STEPS=20 e2e/agents/codex.sh 0.171.0   20 steps of one version
#
# A row is a version, how Codex asks, and who compacts:
#   provider    the provider, at the item compaction_trigger
#   palimpsest  this proxy, in its place (--emulate openai)
#   codex       Codex itself, by a question to the model; the summary leaves out every code
#
# STEPS       parts of 8 KB that Codex has to read (30)
# LIMIT       seconds that one run may take (300)
# PALIMPSEST  the program, in place of the one built here
# WORK        a folder to install into and keep, instead of one that is removed
set -euo pipefail

steps=${STEPS:-30} limit=${LIMIT:-300}
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)

if [[ ${1:-} != --inside ]]; then
  versions=("$@")
  [[ $# -gt 0 ]] || versions=(0.169.0 0.171.0)
  work=${WORK:-$(mktemp -d "${TMPDIR:-/tmp}/codex.XXXXXX")}
  [[ -n ${WORK:-} ]] || trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/cache"
  if [[ -n ${PALIMPSEST:-} ]]; then cp "$PALIMPSEST" "$work/palimpsest"; else (cd "$root" && go build -o "$work/palimpsest" ./cmd/palimpsest); fi
  (cd "$root/e2e" && go build -o "$work/upstream" ./agents/upstream)
  for version in "${versions[@]}"; do
    dir=$work/$version
    [[ ! -d $dir/node_modules ]] || continue
    mkdir -p "$dir"
    echo '{"private":true}' >"$dir/package.json"
    (cd "$dir" && npm install --cache "$work/cache" --no-audit --no-fund --loglevel=error "@openai/codex@$version") >"$dir/install.log" 2>&1
  done
  inside=(bash "$here/codex.sh" --inside "$work" "${versions[@]}")
  if unshare -rnm true 2>/dev/null; then
    unshare -rnm bash -c 'ip link set lo up && exec "$@"' - "${inside[@]}"
  else
    echo "no network namespace here: Codex could reach more than loopback" >&2
    "${inside[@]}"
  fi
  exit
fi

work=$2
shift 2
task="Run ./part 1, then ./part 2, and so on up to ./part $steps, each with your shell tool. Then tell me the codes of the first three parts. Never change a file."

# one prints a row: VERSION websocket|http provider|palimpsest|codex
one() {
  local version=$1 how=$2 who=$3 log=$work/$1-$2-$3 status=0 server base name=OpenAI ours=() upstream=() codex=()
  rm -rf "$log" && mkdir -p "$log/home/.codex" "$log/task"
  printf '#!/bin/sh\nexec "%s" part "$1"\n' "$work/upstream" >"$log/task/part"
  chmod +x "$log/task/part"
  case $who in
  palimpsest) ours=(--emulate openai) upstream=(-plain) ;;
  codex) name=plain upstream=(-vague) ;; # Codex asks a provider of another name for no compaction
  esac
  "$work/upstream" -url "$log/url" -dump "$log" -steps "$steps" "${upstream[@]}" -row "| codex $version | $how | $who" >"$log/row" 2>"$log/upstream.log" &
  server=$!
  until [[ -s $log/url ]]; do sleep 0.1; done
  base=$(cat "$log/url")
  codex=("$work/$version/node_modules/.bin/codex")
  # A provider of one's own is asked over HTTP.
  [[ $how == websocket ]] || codex=(sh -c 'codex=$1; shift; exec "$codex" -c "model_providers.own={name=\"'"$name"'\",base_url=\"$OPENAI_BASE_URL\",wire_api=\"responses\",env_key=\"OPENAI_API_KEY\"}" -c model_provider=own "$@"' - "${codex[0]}")
  echo 'model_auto_compact_token_limit = 25000' >"$log/home/.codex/config.toml"
  (cd "$log/task" && env -i PATH="$PATH" HOME="$log/home" TERM=dumb NO_COLOR=1 OPENAI_API_KEY=sk-fake CODEX_API_KEY=sk-fake \
    timeout "$limit" "$work/palimpsest" run "${ours[@]}" --openai-upstream "$base/v1" -- "${codex[@]}" exec -m gpt-5.2 --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox "$task" \
    </dev/null >"$log/out" 2>"$log/err") || status=$?
  kill -TERM "$server" && wait "$server" || true
  told=no
  grep -q 'All parts are read' "$log/out" && told=yes
  echo "$(cat "$log/row") | $told | $status |"
}

echo '| agent | over | who compacts | steps | requests | refused | largest request (tokens) | same prefix as the step before | from the cache | task ended | facts | lookups | own summaries | answer printed | exit |'
echo '|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|'
for version in "$@"; do
  for how in websocket http; do
    for who in provider palimpsest; do one "$version" "$how" "$who"; done
  done
  one "$version" http codex
done
