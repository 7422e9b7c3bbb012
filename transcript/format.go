package transcript

// Format names what a file holds.
type Format string

// The formats. Session files of agents come first, then request bodies and
// message lists, then the files of benchmarks and frameworks.
const (
	ClaudeCode Format = "claude-code"
	Codex      Format = "codex"
	Pi         Format = "pi"
	OpenCode   Format = "opencode"
	GeminiCLI  Format = "gemini-cli"
	KimiCode   Format = "kimi-code"
	OpenHands  Format = "openhands"

	OpenAIChat Format = "openai-chat"
	Anthropic  Format = "anthropic"
	Responses  Format = "responses"
	Gemini     Format = "gemini"
	AISDK      Format = "ai-sdk"

	Inspect   Format = "inspect"
	SWEAgent  Format = "swe-agent"
	Tau2      Format = "tau2"
	ToolBench Format = "toolbench"
)

// Formats returns every format that can be read, in the order in which people
// should be shown them.
func Formats() []Format {
	return []Format{
		ClaudeCode, Codex, Pi, OpenCode, GeminiCLI, KimiCode, OpenHands,
		OpenAIChat, Anthropic, Responses, Gemini, AISDK,
		Inspect, SWEAgent, Tau2, ToolBench,
	}
}

// readers read the formats. The map is never written to.
var readers = map[Format]func(*importJob) ([]Transcript, error){
	ClaudeCode: readClaudeCode,
	Codex:      readCodex,
	Pi:         readPi,
	OpenCode:   readOpenCode,
	KimiCode:   readKimiCode,
	OpenHands:  readOpenHands,
	AISDK:      readAISDK,
	Responses:  readRequests,
	GeminiCLI:  readGeminiCLI,
	Inspect:    readChatLike,
	Tau2:       readChatLike,
	SWEAgent:   readChatLike,
	ToolBench:  readToolBench,
	OpenAIChat: readRequests,
	Anthropic:  readRequests,
	Gemini:     readRequests,
}

func knownFormats() string {
	return joinFormats(Formats())
}
