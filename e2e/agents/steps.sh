#!/usr/bin/env bash
# Lets each client read 60 parts of 8 KB with its own tool through palimpsest serve, in a window of
# 60,000 tokens, and state the codes of all of them: from the prompt, or by one search each. Prints the
# table that stands in e2e/agents/results.md, and says of each row what it lacks. Not part of CI: it
# installs the clients as run.sh does, whose variables (WORK, BUILD, STEPS, WINDOW) hold here too.
#
#   e2e/agents/steps.sh               all of them
#   e2e/agents/steps.sh claude pi     two
#
# A row holds if nothing was refused, .95 of the codes were stated, at most every sixth request
# was compacted, and .80 of the prompts came from the cache where the client marks what is to be kept.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
clients=(claude codex codex-http opencode opencode-openai pi gemini qwen kimi kilo cline
  sdk-anthropic sdk-openai-chat sdk-openai-responses sdk-google sdk-ai-anthropic sdk-ai-openai sdk-agents sdk-langgraph)
[[ $# -eq 0 ]] || clients=("$@")
exec 3>&1
table=$(TROUBLE=0 WAYS=serve FACTS=${STEPS:-60} "$here/run.sh" "${clients[@]}" | tee /dev/fd/3)
awk -F ' *[|] *' '
  NR > 2 && NF > 15 {
    split($11, facts, " ")
    lacks = ""
    if ($6 > 0) lacks = lacks " " $6 " refused;"
    if (facts[1] < .95 * facts[3]) lacks = lacks " codes " $11 ";"
    if ($14 * 6 > $5) lacks = lacks " " $14 " compactions in " $5 " requests;"
    if ($9 !~ /marks/ && $9 < .80) lacks = lacks " " $9 " from the cache;"
    if (lacks != "") { print $2 ":" lacks; bad = 1 }
  }
  END { exit bad }' <<<"$table"
