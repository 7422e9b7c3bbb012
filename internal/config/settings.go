// Package config is the settings of the daemon: one table, from which come the
// flags, the names in the environment, the keys of the file, the defaults and the
// documentation.
//
// A flag goes before the environment, the environment before the file, and the
// file before the default. Every value knows where it comes from.
package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/proxy/native"
)

// Setting is something that can be set. Its name is that of the flag (--max-body)
// and of the key in the file (max-body); in the environment it is in capitals,
// with underscores, and with PALIMPSEST_ in front (PALIMPSEST_MAX_BODY).
type Setting struct {
	Name string
	// Default is the value where nobody sets one; empty may be a value too.
	Default string
	// ValueName names the value in help texts, such as ADDRESS.
	ValueName string
	// Usage says what it is for, in one sentence.
	Usage string

	// env is the name in the environment where the usual one is taken.
	env string
	// values are all that it may be, where these can be counted.
	values []string
	// check reports why a text is no value; nil takes every text.
	check func(text string) error
	// show hides what is secret in a value; nil shows it as it is.
	show func(text string) string
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

// Settings is the table, in the order in which people are shown it.
func Settings() []Setting {
	return []Setting{
		{Name: "listen", Default: "127.0.0.1:7433", ValueName: "ADDRESS", check: orText("", checkAddress),
			Usage: "listen on this address; one that others can reach needs keys. Empty listens at the socket alone"},
		{Name: "socket", ValueName: "FILE",
			Usage: "listen on this Unix socket too, which only you can open, in a folder that only you can enter: it needs no key, and the address then wants one (`palimpsest daemon` prints one for the run); empty has none"},
		{Name: "idle", Default: "0", ValueName: "DURATION", check: orText("0", parses(parseDuration)),
			Usage: "end when there was no request and no background job for so long; 0 never does"},
		{Name: "store", ValueName: "STORE", show: WithoutPassword,
			Usage: "keep everything here, keys too: a SQLite FILE, postgres://USER:PASSWORD@HOST/NAME, or memory: (until the daemon stops); empty is palimpsest.db in palimpsest's data directory"},
		{Name: "master-key", ValueName: "FILE", env: MasterFileEnv,
			Usage: "encrypt what is kept, with keys that the master key in this file wraps (or the one in " + MasterEnv + ")"},
		{Name: "tls-cert", ValueName: "FILE",
			Usage: "speak TLS with the certificate in this file (PEM, its issuers behind it), read anew when it changes; empty is plain HTTP"},
		{Name: "tls-key", ValueName: "FILE",
			Usage: "the key of that certificate (PEM)"},
		{Name: "policy", Default: "auto", ValueName: "POLICY",
			Usage: "when and how threads are compacted: a file (see \"palimpsest policy\"), or auto, ladder, session, timeline, workstream, loop"},
		{Name: "favor", ValueName: "WHAT", check: orText("", oneOf(policy.Favors()...)),
			Usage: "when the policy auto compacts and how much it keeps: quality (near the window, half of it), balanced (from 64,000 tokens on, half of that) or cost (where it costs least); empty is the policy's own, else balanced"},
		{Name: "summarizer", ValueName: "CHAIN",
			Usage: "who writes summaries, such as anthropic:claude-haiku-4-5,extractive, in place of what the policy says; agent is the own model of an agent behind the proxy, asked with the agent's key"},
		{Name: "counter", Default: "auto", ValueName: "NAME",
			Usage: "count tokens with this counter: o200k, cl100k, claude, gemini, chars/4, …; auto is the policy's, or else o200k for threads and each model's own for agents behind the proxy"},
		{Name: "recall", Default: "tools", ValueName: "HOW", values: []string{"off", "tools"},
			Usage: "what prompts offer to reach what was removed, where a step brings tools of its own: read_artifact and recall, whose calls …/answer answers (tools), or nothing (off)"},
		{Name: "inject", Default: "0", ValueName: "TOKENS", check: parses(ParseTokens),
			Usage: "show so many tokens of removed messages that match the user's last one beside it, where recall is tools; 0 shows none"},
		{Name: "mcp", Default: "read", ValueName: "HOW", values: []string{"off", "read", "write"},
			Usage: "what agents may do at /mcp, by the Model Context Protocol and the rights of their key: search and read threads (read), compact them too (write), or nothing (off)"},
		{Name: "embedder", ValueName: "MODEL",
			Usage: "find what was removed by meaning too, with vectors of this model, such as openai:text-embedding-3-small; empty searches by words alone"},
		{Name: "measure", Default: "off", ValueName: "HOW", values: []string{"off", "on"},
			Usage: "ask the Anthropic and Gemini APIs, with the keys in the environment, how large a large request is where the counter only estimates: on, or off"},
		{Name: "quality", Default: "on", ValueName: "HOW", values: []string{"off", "on"},
			Usage: "watch threads for agents that miss what was removed, and tell of them in events and metrics: on, or off"},
		{Name: "anthropic-upstream", ValueName: "URL", show: WithoutPassword,
			Usage: "send what agents ask the Anthropic API to this base URL, without /v1; empty is the provider's own"},
		{Name: "openai-upstream", ValueName: "URL", show: WithoutPassword,
			Usage: "send what agents ask the OpenAI APIs to this base URL, with /v1; empty is the provider's own"},
		{Name: "gemini-upstream", ValueName: "URL", show: WithoutPassword,
			Usage: "send what agents ask the Gemini API to this base URL, without a version; empty is the provider's own"},
		{Name: "emulate", ValueName: "APIS", check: checkAPIs,
			Usage: "do what agents ask of native compaction here, for upstreams of these APIs that cannot: anthropic, openai, or both joined by a comma; empty passes it on"},
		{Name: "proxy", Default: "tools", ValueName: "HOW", values: []string{"off", "plain", "tools"},
			Usage: "pass requests of agents on to their provider, compacted: with the tools read_artifact and recall once something was removed (tools), without them (plain), or not at all (off)"},
		{Name: "memory", ValueName: "BYTES", check: orText("", parses(parseBytes)),
			Usage: "how much memory the process may have; requests beyond it are answered with 503 and Retry-After. Empty is the limit of its control group, else half of the machine. Go's GOMEMLIMIT follows from it where that is not set, and so does each of the next four"},
		{Name: "proxy-memory", ValueName: "BYTES", check: orText("", parses(parseBytes)),
			Usage: "remember so much of the conversations of agents between their steps, of all tenants together; what is forgotten is read from the store again. Empty is an eighth of memory, at most 256MB"},
		{Name: "proxy-tenant-memory", ValueName: "BYTES", check: orText("", parses(parseBytes)),
			Usage: "of that at most so much for each tenant; empty is half of it"},
		{Name: "proxy-bodies", ValueName: "BYTES", check: orText("", parses(parseBytes)),
			Usage: "hold so much of requests at work, of agents and of the API, by the size of their bodies; what comes beyond it is answered with 503 and Retry-After. Empty is an eighth of memory, at most 512MB"},
		{Name: "tenant-bodies", ValueName: "BYTES", check: orText("", parses(parseBytes)),
			Usage: "of that at most so much for each tenant; empty is half of it"},
		{Name: "tenant-requests", Default: "500", ValueName: "N", check: parses(parseCount),
			Usage: "requests that a tenant may have at work at once, those of its agents too; further ones are answered with 429 and Retry-After"},
		{Name: "tenant-disk", Default: "0", ValueName: "BYTES", check: orText("0", parses(parseBytes)),
			Usage: "what a tenant may keep, as stored; writes beyond it are refused, and requests of its agents pass as they came. 0 bounds nothing; memory: has no such bound"},
		{Name: "tenant-spending", Default: "0", ValueName: "TOKENS", check: parses(ParseTokens),
			Usage: "tokens an hour that models may be asked for a tenant, for summaries and decisions; beyond it they are made without a model. 0 bounds nothing"},
		{Name: "window", Default: "0", ValueName: "TOKENS", check: parses(ParseTokens),
			Usage: "the context window of models that are not in the table; 0 leaves their threads to the policy's own limits"},
		{Name: "models", ValueName: "FILE",
			Usage: "a file of models that adds to or replaces the built-in table"},
		{Name: "max-body", Default: "64MB", ValueName: "BYTES", check: parses(parseBytes),
			Usage: "the largest request"},
		{Name: "max-depth", Default: "200", ValueName: "LEVELS", check: parses(parseCount),
			Usage: "how deep the JSON of a request may nest, at most 1000"},
		{Name: "rate", Default: "200", ValueName: "N", check: parses(parseCount),
			Usage: "requests per second of a key, or of an address where there are no keys"},
		{Name: "burst", Default: "400", ValueName: "N", check: parses(parseCount),
			Usage: "requests that it may make at once"},
		{Name: "max-streams", Default: "100", ValueName: "N", check: parses(parseCount),
			Usage: "streams of events that a tenant may hold open"},
		{Name: "patience", Default: "30s", ValueName: "DURATION", check: parses(parseDuration),
			Usage: "how long a request waits for a compaction of its thread that is being made, under a policy that has requests wait (workstream) or where it cannot be sent without"},
		{Name: "lease", Default: "2s", ValueName: "DURATION", check: parses(parseDuration),
			Usage: "how long it waits where the process that makes it has not said so, which a process does four times as often; after 15 times that another one takes it up"},
		{Name: "drain", Default: "30s", ValueName: "DURATION", check: parses(parseDuration),
			Usage: "how long requests may take to finish when the daemon stops"},
		{Name: "log-level", Default: "info", ValueName: "LEVEL", values: []string{"debug", "info", "warn", "error"},
			Usage: "write log records from this level on: debug, info, warn, error"},
		{Name: "log-format", Default: "text", ValueName: "FORMAT", values: []string{"text", "json"},
			Usage: "write log records as text or json, to standard error"},
	}
}

// Values are all that the setting may be; nil where these cannot be counted.
func (s Setting) Values() []string { return s.values }

// validate returns an error where a text is no value of the setting.
func (s Setting) validate(text string) error {
	switch {
	case s.values != nil:
		return oneOf(s.values...)(text)
	case s.check != nil:
		return s.check(text)
	}
	return nil
}

// Names lists the names of all settings, in the order of the table.
func Names() []string {
	var names []string
	for _, s := range Settings() {
		names = append(names, s.Name)
	}
	return names
}

func checkAPIs(text string) error {
	_, err := native.APIs(strings.Split(text, ","))
	return err
}

func checkAddress(text string) error {
	n, err := strconv.Atoi(text[strings.LastIndexByte(text, ':')+1:])
	if !strings.Contains(text, ":") || err != nil || n < 0 || n > 65535 {
		return errors.New("want an address with a port, such as 127.0.0.1:7433")
	}
	return nil
}

// ParseTokens reads 32000, 32_000, 32,000 and 32k (thousands, as model makers count).
func ParseTokens(text string) (int, error) {
	digits := strings.NewReplacer("_", "", ",", "").Replace(strings.ToLower(text))
	digits, thousands := strings.CutSuffix(digits, "k")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > 1<<40 {
		return 0, errors.New("want a number of tokens, such as 200000 or 200k")
	}
	if thousands {
		n *= 1000
	}
	return n, nil
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

func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1<<30 {
		return 0, errors.New("want a whole number above 0")
	}
	return n, nil
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, errors.New("want a duration above 0, such as 30s or 2m")
	}
	return d, nil
}

// parses is a check that takes every text that parse can read.
func parses[T any](parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		_, err := parse(text)
		return err
	}
}

// orText takes one more text: "" where a value follows from others, or 0, which bounds
// nothing.
func orText(more string, check func(string) error) func(string) error {
	return func(text string) error {
		if text == more {
			return nil
		}
		return check(text)
	}
}

func oneOf(values ...string) func(string) error {
	return func(text string) error {
		if !slices.Contains(values, text) {
			return fmt.Errorf("want one of %s", strings.Join(values, ", "))
		}
		return nil
	}
}

// WithoutPassword hides the password of a store's or an upstream's address. Where the address
// cannot be read nobody knows where a password is, and all of it is hidden.
func WithoutPassword(text string) string {
	scheme, _, ok := strings.Cut(text, "://")
	if !ok || filepath.IsAbs(text) {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return scheme + "://…"
	}
	query := u.Query()
	if query.Has("password") {
		query.Set("password", "xxxxx")
		u.RawQuery = query.Encode()
	}
	return u.Redacted()
}
