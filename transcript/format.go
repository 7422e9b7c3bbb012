package transcript

// Format is the format of a file.
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

// formats are all formats, in the order in which people should be shown them.
var formats = []struct {
	Format
	read func(*importJob) ([]Transcript, error)
}{
	{ClaudeCode, readClaudeCode}, {Codex, readCodex}, {Pi, readPi}, {OpenCode, readOpenCode},
	{GeminiCLI, readGeminiCLI}, {KimiCode, readKimiCode}, {OpenHands, readOpenHands},
	{OpenAIChat, readRequests}, {Anthropic, readRequests}, {Responses, readRequests}, {Gemini, readRequests}, {AISDK, readAISDK},
	{Inspect, readChatLike}, {SWEAgent, readChatLike}, {Tau2, readChatLike}, {ToolBench, readToolBench},
}

// Formats returns every format that can be read, in the order in which people
// should be shown them.
func Formats() []Format {
	list := make([]Format, len(formats))
	for i, f := range formats {
		list[i] = f.Format
	}
	return list
}
