// Package config holds the settings of the daemon in one table: flags, names in the
// environment, keys of the file, defaults and documentation all come from it.
//
// A flag overrides the environment, the environment the file, and the file the default.
// Every value knows where it comes from.
package config

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/dsn"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// Setting is something that can be set. Its name is also that of the flag (--max-body)
// and of the key in the file (max-body); in the environment it is PALIMPSEST_MAX_BODY.
type Setting struct {
	Name    string
	Default string // always a valid value
	// ValueName names the value in help texts, such as ADDRESS.
	ValueName string
	// Usage says what it is for, in one sentence.
	Usage string
	// Values are all values, if they are few; nil otherwise.
	Values []string

	env   string             // the name in the environment, if it is not the usual one
	check func(string) error // nil accepts every text
	// in is the value that means in any folder what a relative path means in dir; nil for
	// values that are no paths.
	in          func(dir, text string) string
	hasPassword bool
}

// Env is the name of the setting in the environment.
func (s Setting) Env() string {
	if s.env != "" {
		return s.env
	}
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

const envPrefix = "PALIMPSEST_"

// MasterEnv may hold master keys themselves. It is not a setting, so that its value is
// never shown. MasterFileEnv names a file of master keys.
const (
	MasterEnv     = envPrefix + "MASTER_KEY"
	MasterFileEnv = envPrefix + "MASTER_KEY_FILE"
)

// Settings is the table, in the order in which people see it.
func Settings() []Setting {
	return []Setting{
		{Name: "listen", Default: "127.0.0.1:7433", ValueName: "ADDRESS", check: checkAddress,
			Usage: "listen on this address; one that other machines can reach requires API keys. Empty listens only on the socket"},
		{Name: "socket", ValueName: "FILE", in: fileIn,
			Usage: "listen on this Unix socket too. Only you can open it, so it needs no key; the address then requires one (palimpsest daemon prints one for the run). Empty is no socket"},
		{Name: "idle", Default: "0", ValueName: "DURATION", check: checkIdle,
			Usage: "end after this long without a request or a background job; 0 never ends"},
		{Name: "store", ValueName: "STORE", hasPassword: true, in: dsn.In,
			Usage: "keep everything here, keys too: a SQLite FILE, postgres://USER:PASSWORD@HOST/NAME, or memory: (until the daemon stops); empty is palimpsest.db in palimpsest's data directory"},
		{Name: "master-key", ValueName: "FILE", env: MasterFileEnv, in: fileIn,
			Usage: "encrypt what is kept, with keys that the master key in this file wraps (or the one in " + MasterEnv + ")"},
		{Name: "tls-cert", ValueName: "FILE", in: fileIn,
			Usage: "speak TLS with the certificate in this file (PEM, followed by its issuers), read again when it changes; empty is plain HTTP"},
		{Name: "tls-key", ValueName: "FILE", in: fileIn,
			Usage: "the key of that certificate (PEM)"},
		{Name: "policy", Default: "auto", ValueName: "POLICY", in: policyIn,
			Usage: "when and how threads are compacted: a file (see \"palimpsest policy\"), or auto, notes, ladder, session, timeline, workstream, loop"},
		{Name: "favor", ValueName: "WHAT", Values: policy.Favors(),
			Usage: "when the policy auto compacts and how much it keeps: quality (near the window, half of it), balanced (from 64,000 tokens on, half of that) or cost (when it costs least); empty is the policy's own, else balanced"},
		{Name: "summarizer", ValueName: "CHAIN",
			Usage: "who writes summaries, such as anthropic:claude-haiku-4-5,extractive, instead of what the policy says; agent is the model of the agent behind the proxy, asked with the agent's key"},
		{Name: "counter", Default: "auto", ValueName: "NAME",
			Usage: "count tokens with this counter: o200k, cl100k, claude, gemini, chars/4, …; auto is the policy's, else each model's own, o200k for unknown ones"},
		{Name: "recall", Default: "tools", ValueName: "HOW", Values: []string{"off", "tools"},
			Usage: "how a model reaches what was removed, in steps that bring their own tools: with the tools read_artifact and recall, whose calls …/answer answers (tools), or not at all (off)"},
		{Name: "context-tools", Default: "off", ValueName: "HOW", Values: []string{"off", "on"},
			Usage: "with recall tools: offer the model, from the first request on, context_status (how much room is left), context_note (notes that stand behind summaries) and compact_now: on, or off"},
		{Name: "context-reminder", Default: "off", ValueName: "HOW", Values: []string{"off", "on"},
			Usage: "with context-tools: tell the model once before each compaction that a tenth of the room up to it is left: on, or off"},
		{Name: "inject", Default: "0", ValueName: "TOKENS", check: parses(ParseTokens),
			Usage: "with recall tools: show this many tokens of removed messages that match the user's last message next to it; 0 shows none"},
		{Name: "mcp", Default: "read", ValueName: "HOW", Values: []string{"off", "read", "write"},
			Usage: "what agents may do at /mcp, by the Model Context Protocol and the rights of their key: search and read threads (read), also compact them (write), or nothing (off)"},
		{Name: "embedder", ValueName: "MODEL",
			Usage: "search what was removed by meaning too, with vectors of this model, such as openai:text-embedding-3-small; empty searches by words alone"},
		{Name: "measure", Default: "off", ValueName: "HOW", Values: []string{"off", "on"},
			Usage: "ask the Anthropic and Gemini APIs, with the keys in the environment, for the size of large requests that the counter can only estimate: on, or off"},
		{Name: "quality", Default: "on", ValueName: "HOW", Values: []string{"off", "on"},
			Usage: "watch for agents that miss what was removed, and report them in events and metrics: on, or off"},
		{Name: "anthropic-upstream", ValueName: "URL", hasPassword: true,
			Usage: "send requests for the Anthropic API to this base URL, without /v1; empty is the provider's own"},
		{Name: "openai-upstream", ValueName: "URL", hasPassword: true,
			Usage: "send requests for the OpenAI APIs to this base URL, with /v1; empty is the provider's own"},
		{Name: "gemini-upstream", ValueName: "URL", hasPassword: true,
			Usage: "send requests for the Gemini API to this base URL, without a version; empty is the provider's own"},
		{Name: "emulate", ValueName: "APIS", check: checkAPIs,
			Usage: "answer agents' requests for native compaction here, for upstreams of these APIs that do not support it: anthropic, openai, or both joined by a comma; empty passes the requests on"},
		{Name: "proxy", Default: "tools", ValueName: "HOW", Values: []string{"off", "plain", "tools"},
			Usage: "pass agents' requests on to their provider, compacted: with the tools read_artifact and recall once something was removed (tools), without them (plain), or not at all (off)"},
		{Name: "memory", ValueName: "BYTES", check: parses(parseBytes),
			Usage: "how much memory the process may use; further requests are answered with 503 and Retry-After. Empty is the limit of its control group, else half of the machine. GOMEMLIMIT, if it is not set, and the next four settings follow from it"},
		{Name: "proxy-memory", ValueName: "BYTES", check: parses(parseBytes),
			Usage: "how much of agents' conversations to keep in memory between their steps, for all tenants together; the rest is read from the store again. Empty is an eighth of memory, at most 256MB"},
		{Name: "proxy-tenant-memory", ValueName: "BYTES", check: parses(parseBytes),
			Usage: "of that at most this much for each tenant; empty is half of it"},
		{Name: "proxy-bodies", ValueName: "BYTES", check: parses(parseBytes),
			Usage: "how many bytes of request bodies to work on at once, of agents and of the API; further requests are answered with 503 and Retry-After. Empty is an eighth of memory, at most 512MB"},
		{Name: "tenant-bodies", ValueName: "BYTES", check: parses(parseBytes),
			Usage: "of that at most this much for each tenant; empty is half of it"},
		{Name: "tenant-requests", Default: "500", ValueName: "N", check: parses(parseCount),
			Usage: "how many requests of a tenant to work on at once, including those of its agents; further ones are answered with 429 and Retry-After"},
		{Name: "tenant-rate", Default: "0", ValueName: "N", check: parses(parseCount),
			Usage: "requests per second of all keys of a tenant together, and twice as many at once; further ones are answered with 429 and Retry-After. 0 is unlimited"},
		{Name: "tenant-disk", Default: "0", ValueName: "BYTES", check: parses(parseBytes),
			Usage: "how much a tenant may store; further writes are refused, and requests of its agents pass unchanged. 0 is unlimited; memory: has no such limit"},
		{Name: "tenant-spending", Default: "0", ValueName: "TOKENS", check: parses(ParseTokens),
			Usage: "tokens an hour that models may be asked for a tenant, for summaries and decisions; beyond that they are made without a model. 0 is unlimited"},
		{Name: "window", Default: "0", ValueName: "TOKENS", check: parses(ParseTokens),
			Usage: "the context window of every model, also of one in the table of models, in threads and behind the proxy. If a provider names a smaller window when it refuses a request, that one is used instead; a larger one is not. 0 is each model's own: that of the table, or what a provider names, and before that the policy's own limits"},
		{Name: "models", ValueName: "FILE", in: fileIn,
			Usage: "a file of models that adds to or replaces the built-in table"},
		{Name: "session-folders", ValueName: "AGENT=FOLDER,…", check: checkFolders, in: foldersIn,
			Usage: "find sessions in these folders of agents too, such as claude-code=/mnt/old/.claude,codex=/mnt/old/.codex, besides their usual ones and those that their own variables name"},
		{Name: "session-exclude", ValueName: "FOLDER,…", in: filesIn,
			Usage: "find no sessions of projects in these folders; what the index of sessions held of them goes when it is used next"},
		{Name: "max-body", Default: "64MB", ValueName: "BYTES", check: parses(parseBytes),
			Usage: "the largest request"},
		{Name: "max-depth", Default: "200", ValueName: "LEVELS", check: checkDepth,
			Usage: "how deep the JSON of a request may nest, at most 1000"},
		{Name: "rate", Default: "200", ValueName: "N", check: parses(parseCount),
			Usage: "requests per second of a key, or of an address where there are no keys"},
		{Name: "burst", Default: "400", ValueName: "N", check: parses(parseCount),
			Usage: "requests that a key or an address may make at once"},
		{Name: "max-streams", Default: "100", ValueName: "N", check: parses(parseCount),
			Usage: "how many streams of events a tenant may hold open"},
		{Name: "patience", Default: "30s", ValueName: "DURATION", check: parses(parseDuration),
			Usage: "how long a request waits for a running compaction of its thread, if the policy makes requests wait (workstream) or if it cannot be sent without"},
		{Name: "lease", Default: "2s", ValueName: "DURATION", check: parses(parseDuration),
			Usage: "a process that compacts a thread gives a sign of life four times in this time. A request that needs the compaction makes it itself after this long without one, and another process takes the compaction over after 15 times this long"},
		{Name: "drain", Default: "30s", ValueName: "DURATION", check: parses(parseDuration),
			Usage: "how long requests may take to finish when the daemon stops"},
		{Name: "mask-secrets", Default: "on", ValueName: "HOW", Values: []string{"off", "on"},
			Usage: "mask keys, tokens and passwords in what leaves the machine: pages of explain, handoffs, sessions of --into, logs: on, or off. What is stored stays whole"},
		{Name: "weekly", Default: "off", ValueName: "HOW", Values: []string{"off", "on"},
			Usage: "add to what palimpsest shows without a command a line of how much less than the whole conversation the compactions of the last seven days left: on, or off"},
		{Name: "log-level", Default: "info", ValueName: "LEVEL", Values: []string{"debug", "info", "warn", "error"},
			Usage: "write log records from this level on: debug, info, warn, error"},
		{Name: "log-format", Default: "text", ValueName: "FORMAT", Values: []string{"text", "json"},
			Usage: "write log records as text or json, to standard error"},
	}
}

// fileIn is Setting.in of a file.
func fileIn(dir, text string) string {
	if text == "" || filepath.IsAbs(text) {
		return text
	}
	return filepath.Join(dir, text)
}

// filesIn is Setting.in of a list of files.
func filesIn(dir, text string) string {
	all := List(text)
	for i, file := range all {
		all[i] = fileIn(dir, file)
	}
	return strings.Join(all, ",")
}

// List is the value of a setting that is a list, joined by commas.
func List(text string) (all []string) {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// foldersIn is Setting.in of a list of agents with folders.
func foldersIn(dir, text string) string {
	all := List(text)
	for i, one := range all {
		if agent, folder, ok := strings.Cut(one, "="); ok {
			all[i] = agent + "=" + fileIn(dir, folder)
		}
	}
	return strings.Join(all, ",")
}

func checkFolders(text string) error {
	for _, one := range List(text) {
		agent, folder, _ := strings.Cut(one, "=")
		if transcript.Format(agent).Place().Sub == "" || folder == "" {
			return errors.New("want AGENT=FOLDER of an agent whose sessions are found (palimpsest sessions --help), such as claude-code=/mnt/old/.claude")
		}
	}
	return nil
}

// policyIn is Setting.in of a policy, which may be a name instead.
func policyIn(dir, text string) string {
	if _, err := policyfile.ByName(text); err == nil {
		return text
	}
	file := fileIn(dir, text)
	if info, err := os.Stat(file); policyfile.LooksLikeFile(text) || err == nil && !info.IsDir() {
		return file
	}
	return text
}

func checkAPIs(text string) error {
	_, err := native.APIs(strings.Split(text, ","))
	return err
}

// checkAddress accepts no address too.
func checkAddress(text string) error {
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text[strings.LastIndexByte(text, ':')+1:])
	if !strings.Contains(text, ":") || err != nil || n < 0 || n > 65535 {
		return errors.New("want an address with a port, such as 127.0.0.1:7433")
	}
	return nil
}

// parseBytes reads 1000, 64KB, 64MB and 1GB, in powers of 1024.
func parseBytes(text string) (int, error) {
	digits := strings.ToUpper(strings.TrimSpace(text))
	unit := 1
	for suffix, size := range map[string]int{"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30} {
		if rest, ok := strings.CutSuffix(digits, suffix); ok {
			digits, unit = strings.TrimSpace(rest), size
			break
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > 1<<40/unit {
		return 0, errors.New("want a number of bytes above 0, such as 64MB")
	}
	return n * unit, nil
}

// maxTokens is the largest number that ParseTokens reads.
const maxTokens = 1 << 40

// errTokens is the error of ParseTokens.
var errTokens = errors.New("want a number of tokens, such as 200000, 200k or 1m")

// ParseTokens reads 32000, 32_000, 32,000, 32k (thousands) and 1.5m (millions).
func ParseTokens(text string) (int, error) {
	digits, unit := strings.ToLower(strings.ReplaceAll(text, "_", "")), 1
	if rest, ok := strings.CutSuffix(digits, "k"); ok {
		digits, unit = rest, 1_000
	} else if rest, ok := strings.CutSuffix(digits, "m"); ok {
		digits, unit = rest, 1_000_000
	}
	groups := strings.Split(digits, ",")
	for _, group := range groups[1:] {
		if len(group) != 3 {
			return 0, errTokens // 1,5m may be meant as 1.5m
		}
	}
	digits = strings.Join(groups, "")
	if strings.Trim(digits, "0123456789.") != "" || unit == 1 && strings.Contains(digits, ".") {
		return 0, errTokens
	}
	x, err := strconv.ParseFloat(digits, 64)
	if x *= float64(unit); err != nil || x > maxTokens {
		return 0, errTokens
	}
	return int(math.Round(x)), nil
}

func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1<<30 {
		return 0, errors.New("want a whole number above 0")
	}
	return n, nil
}

// checkDepth allows no more than is read of any JSON.
func checkDepth(text string) error {
	if n, err := parseCount(text); err != nil || n > rawjson.MaxDepth {
		return fmt.Errorf("want a whole number from 1 to %d", rawjson.MaxDepth)
	}
	return nil
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, errors.New("want a duration above 0, such as 30s or 2m")
	}
	return d, nil
}

// checkIdle accepts 0, which is never, however it is written.
func checkIdle(text string) error {
	if d, err := time.ParseDuration(text); err != nil || d < 0 {
		return errors.New("want a duration such as 15m, or 0 for never")
	}
	return nil
}

// parses is a check that accepts what parse can read.
func parses[T any](parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		_, err := parse(text)
		return err
	}
}
