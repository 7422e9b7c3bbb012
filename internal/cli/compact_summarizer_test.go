package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/wire"
)

const smallSession = "../../testdata/sessions/small.openai-chat.json"

// good is an answer whose first item stands in the session and whose second one
// is invented.
const good = `{"facts":[{"text":"TestCreateTwiceIsAConflict fails: second POST = 500, want 409","sources":[1,2,3,4,5,6]},
	{"text":"The database password is hunter2-4711.","sources":[1,2,3]}],
	"decisions":[],"plan":[],"open_items":[],"failed_attempts":[],"tool_outcomes":[]}`

// told is what a test reads of the report.
type told struct {
	Policy     string
	Summarizer *struct {
		Use      []string
		By       map[string]int
		Failures []struct{ Model, Error, Class, Fallback string }
		Requests int
		Proposed int                            `json:"items_proposed"`
		Kept     int                            `json:"items_kept"`
		Dropped  map[string]int                 `json:"items_dropped"`
		LeftOut  []struct{ Text, Cause string } `json:"left_out"`
		Input    int                            `json:"input_tokens"`
	}
}

// environment points both providers at a server.
func environment(t *testing.T, url string) {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	t.Setenv("ANTHROPIC_BASE_URL", url)
	t.Setenv("OPENAI_BASE_URL", url+"/v1")
	t.Setenv("ANTHROPIC_API_KEY", "key-of-anthropic")
	t.Setenv("OPENAI_API_KEY", "key-of-openai")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "")
}

// compactWith compacts the session and returns prompt and report.
func compactWith(t *testing.T, args ...string) (string, told) {
	t.Helper()
	status, out, report := run(t, append([]string{"compact", smallSession, "--to", "text", "--json"}, args...)...)
	if status != 0 {
		t.Fatalf("status %d: %s", status, report)
	}
	if strings.Contains(out+report, "key-of-") {
		t.Error("a key is shown:", report)
	}
	var rep told
	if err := json.Unmarshal([]byte(report), &rep); err != nil {
		t.Fatal(err)
	}
	if rep.Summarizer == nil {
		t.Fatal("the report says nothing of the summarizer:", report)
	}
	return out, rep
}

// TestSummarizerAnswers: a model of each API writes the summary, what it
// invented is not in the prompt, and the request goes where the environment says
// with the key from there.
func TestSummarizerAnswers(t *testing.T) {
	for chain, header := range map[string]string{"openai:gpt-5-mini": "Authorization", "anthropic:claude-haiku-4-5": "X-Api-Key"} {
		t.Run(chain, func(t *testing.T) {
			usage := wire.Usage{Input: 1000, Output: 50, Known: true}
			server := llmtest.NewServer(t, llmtest.Answer{Text: good, Usage: usage})
			environment(t, server.URL)
			out, rep := compactWith(t, "--budget", "3000", "--policy", "last-messages:3", "--summarizer", chain)
			if !strings.Contains(out, "TestCreateTwiceIsAConflict fails: second POST = 500, want 409") {
				t.Errorf("the answer is not in the prompt:\n%s", out)
			}
			if strings.Contains(out, "hunter2") {
				t.Error("what the model invented is in the prompt")
			}
			s := rep.Summarizer
			if s.By[chain] == 0 || len(s.Failures) > 0 || s.Requests != 1 || s.Input != 1000 || s.Proposed == 0 || s.Kept == s.Proposed {
				t.Errorf("%+v", s)
			}
			// F2: what is left out is shown, and told to people.
			if s.Dropped["identifier"] != 1 || len(s.LeftOut) != 1 || s.LeftOut[0].Text != "The database password is hunter2-4711." || s.LeftOut[0].Cause != "identifier" {
				t.Errorf("left out: %+v", s)
			}
			if status, _, report := run(t, "compact", smallSession, "--to", "text", "--budget", "3000", "--policy", "last-messages:3", "--summarizer", chain); status != 0 ||
				!strings.Contains(strings.Join(strings.Fields(report), " "), "1 of 2 sentences of the model's summary was left out: a name that is not in the conversation (1)") {
				t.Errorf("status %d: %s", status, report)
			}
			key := server.Requests()[0].Header.Get(header)
			if name, _, _ := strings.Cut(chain, ":"); !strings.HasSuffix(key, "key-of-"+name) {
				t.Errorf("%s: %s", header, key)
			}
		})
	}
}

// TestSummarizerFailures: no failure of a model stops the command; the report
// says what failed and what took its place.
func TestSummarizerFailures(t *testing.T) {
	refused := llmtest.Answer{Status: http.StatusUnauthorized, Body: `{"error":{"type":"authentication_error","message":"no such key"}}`}
	for name, c := range map[string]struct {
		answers []llmtest.Answer
		chain   string
		by      string
		class   string
	}{
		"the other model answers": {[]llmtest.Answer{refused, {Text: good}}, "openai:gpt-5-mini,anthropic:claude-haiku-4-5", "anthropic:claude-haiku-4-5", "auth"},
		"both fail":               {[]llmtest.Answer{refused, refused}, "openai:gpt-5-mini,anthropic:claude-haiku-4-5", "extractive", "auth"},
		"no key":                  {[]llmtest.Answer{refused}, "openai:gpt-5-mini", "extractive", "auth"},
		"garbage":                 {[]llmtest.Answer{{Text: "I will not."}}, "openai:gpt-5-mini", "extractive", ""},
		"only lies":               {[]llmtest.Answer{{Text: `{"facts":[{"text":"The moon is made of cheese-4711.","sources":[1]}]}`}}, "openai:gpt-5-mini", "extractive", ""},
		"refusal":                 {[]llmtest.Answer{{Text: "no", Stop: wire.StopFilter}}, "openai:gpt-5-mini", "extractive", ""},
	} {
		t.Run(name, func(t *testing.T) {
			// A model may be asked about several spans; it says the same then.
			server := llmtest.NewServer(t, append(c.answers, c.answers[len(c.answers)-1], c.answers[len(c.answers)-1])...)
			environment(t, server.URL)
			out, rep := compactWith(t, "--budget", "3000", "--policy", "last-messages:3", "--summarizer", c.chain)
			s := rep.Summarizer
			if s.By[c.by] == 0 || len(s.Failures) == 0 || s.Failures[0].Fallback != c.by || s.Failures[0].Error == "" {
				t.Errorf("%+v", s)
			}
			if !strings.Contains(out, "409") {
				t.Errorf("no summary:\n%s", out)
			}
		})
	}
}

// TestSummarizerOfSeeds: the policies that ask a model themselves ask the chain,
// and go on without it.
func TestSummarizerOfSeeds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.yaml")
	for base, fields := range map[string]string{
		"session": "cut: {keep: 2}", "timeline": "cut: {keep_recent: 100}", "workstream": "cut: {tail: 2}", "loop": "cut: {preserve: 0.2}",
	} {
		if err := os.WriteFile(file, []byte("base: "+base+"\n"+fields+"\nsummarizer: [openai:gpt-5-mini, anthropic:claude-haiku-4-5]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		answer := "## Session Summary (Compaction Round 1)\n\nThe handler of httpapi was read."
		if base == "workstream" {
			answer = `{"summary":{"key_facts":["The handler of httpapi was read."],"conversation_flow":[],"open_threads":[]},"state_delta":{}}`
		}
		refused := llmtest.Answer{Status: http.StatusUnauthorized, Body: `{"error":{"message":"no such key"}}`}
		t.Run(base, func(t *testing.T) {
			server := llmtest.NewServer(t, refused, llmtest.Answer{Text: answer}, llmtest.Answer{Text: answer})
			environment(t, server.URL)
			out, rep := compactWith(t, "--budget", "4000", "--policy", file)
			s := rep.Summarizer
			if s.By["anthropic:claude-haiku-4-5"] != 1 || len(s.Failures) == 0 || s.Failures[0].Model != "openai:gpt-5-mini" || rep.Policy != base {
				t.Errorf("%+v", rep)
			}
			if !strings.Contains(out, "The handler of httpapi was read.") {
				t.Errorf("the answer is not in the prompt:\n%s", out)
			}
		})
		t.Run(base+" alone", func(t *testing.T) {
			server := llmtest.NewServer(t, refused, refused)
			environment(t, server.URL)
			_, rep := compactWith(t, "--budget", "4000", "--policy", file)
			by := "extractive"
			if base == "loop" {
				by = "truncation_note" // E6
			}
			if s := rep.Summarizer; s.By[by] != 1 || len(s.Failures) != 2 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestSummarizerHangs: a model that never answers is given up at its deadline,
// and at once when the caller goes.
func TestSummarizerHangs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(file, []byte("base: last-messages:3\nsummarizer: {use: openai:gpt-5-mini, timeout: 300ms}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("deadline", func(t *testing.T) {
		server := llmtest.NewServer(t, llmtest.Answer{Hang: true}, llmtest.Answer{Hang: true})
		environment(t, server.URL)
		_, rep := compactWith(t, "--budget", "3000", "--policy", file)
		if s := rep.Summarizer; s.By["extractive"] == 0 || len(s.Failures) == 0 || s.Failures[0].Class != "deadline_exceeded" {
			t.Errorf("%+v", s)
		}
	})
	t.Run("canceled", func(t *testing.T) {
		server := llmtest.NewServer(t, llmtest.Answer{Hang: true})
		environment(t, server.URL)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-server.Received()
			cancel()
		}()
		var out, report bytes.Buffer
		status := Run(ctx, []string{"compact", smallSession, "--budget", "3000", "--policy", "last-messages:3", "--summarizer", "openai:gpt-5-mini"},
			Streams{In: strings.NewReader(""), Out: &out, Err: &report})
		if status != 1 || out.Len() > 0 || !strings.Contains(report.String(), "interrupted") {
			t.Errorf("status %d, %s", status, report.String())
		}
	})
}

// TestSummarizerSettings: what a policy file says reaches the request.
func TestSummarizerSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(file, []byte("base: last-messages:3\nsummarizer: {use: openai:gpt-5-mini, temperature: 0.7, max_output: 777}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := llmtest.NewServer(t, llmtest.Answer{Text: good})
	environment(t, server.URL)
	compactWith(t, "--budget", "3000", "--policy", file)
	r := server.Requests()[0]
	if r.API != wire.Chat || !strings.Contains(r.Body, `"temperature":0.7`) || !strings.Contains(r.Body, `:777`) || !strings.Contains(r.Body, `"gpt-5-mini"`) {
		t.Error(r.Body)
	}
}

// TestSummarizerAskedOnce: a second run is not asked what the first has paid for,
// wherever the answers are kept, unless the policy says so. A15, A19
func TestSummarizerAskedOnce(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(own, []byte("base: last-messages:3\nsummarizer: {use: openai:gpt-5-mini, cache: false}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args     []string
		requests int
	}{
		"directory": {[]string{"--policy", "last-messages:3", "--store", filepath.Join(t.TempDir(), "kept")}, 1},
		"database":  {[]string{"--policy", "last-messages:3", "--store", "sqlite:" + filepath.Join(t.TempDir(), "kept.db")}, 1},
		"seed":      {[]string{"--policy", "loop", "--store", filepath.Join(t.TempDir(), "kept")}, 1},
		"no cache":  {[]string{"--policy", own}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			text := good
			if name == "seed" {
				text = "TestCreateTwiceIsAConflict fails."
			}
			server := llmtest.NewServer(t, llmtest.Answer{Text: text}, llmtest.Answer{Text: text}, llmtest.Answer{Text: text}, llmtest.Answer{Text: text})
			environment(t, server.URL)
			args := append([]string{"--budget", "3000", "--summarizer", "openai:gpt-5-mini"}, c.args...)
			if name == "no cache" {
				args = append([]string{"--budget", "3000"}, c.args...)
			}
			first, _ := compactWith(t, args...)
			once := len(server.Requests())
			second, rep := compactWith(t, args...)
			if first != second || rep.Summarizer.By["openai:gpt-5-mini"] == 0 && name != "seed" {
				t.Errorf("another prompt, by %v", rep.Summarizer.By)
			}
			if n := len(server.Requests()); once == 0 || n != once*c.requests {
				t.Errorf("%d requests, then %d", once, n-once)
			}
		})
	}
}
