package native_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func open(value string) (native.Token, error) { return native.Open(key, wire.Anthropic, value) }

// block is a compaction block as the API gives it.
func block(text, kind string) string {
	token := native.Seal(key, native.Token{API: wire.Anthropic, Kind: kind, Digest: native.Digest(text), Structured: &summary.Summary{CurrentTask: text}})
	if kind == native.BetaOnDemand {
		return native.SignedBlock(text, token)
	}
	return native.ThresholdBlock(text, token)
}

func assistant(blocks ...string) string {
	return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
}

// stands is the message that stands for a summary, as upstreams get it.
func stands(text, mark string) string {
	return `{"role":"user","content":[{"type":"text","text":` + rawjson.Quote(native.RecapOpening+text) + mark + `}]}`
}

// TestExpand: what stands before the newest block is not sent, and the block as a
// text in the user's name; whatever comes after it keeps its bytes.
func TestExpand(t *testing.T) {
	const text, call, result, again = `{"type":"text","text":"On it."}`,
		`{"type":"tool_use", "id":"a","name":"read","input":{}}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"A"}]}`, `{"role":"user","content":"And now?"}`
	threshold, signed := block("so far", native.BetaCompact), block("so far", native.BetaOnDemand)
	failed := `{"type":"compaction","content":null,"encrypted_content":null}`
	foreign := `{"type":"compaction","content":"of the provider","encrypted_content":"EuYB"}`
	for _, c := range []struct {
		name     string
		messages []string
		native   bool // the upstream compacts by itself
		want     []string
		previous string
	}{
		{"in the model's message", []string{hello, assistant(text, threshold, text, call), result}, false, []string{stands("so far", ""), assistant(text, call), result}, "so far"},
		{"by itself", []string{hello, assistant(threshold), again}, false, []string{stands("so far", ""), again}, "so far"},
		{"at the end", []string{hello, assistant(threshold)}, false, []string{stands("so far", "")}, "so far"},
		{"the last of two", []string{hello, assistant(block("old", native.BetaCompact), text), again, assistant(threshold, text), again}, false, []string{stands("so far", ""), assistant(text), again}, "so far"},
		{"on demand", []string{assistant(signed), again}, false, []string{stands("so far", ""), again}, "so far"},
		{"on demand, two messages of the model's", []string{assistant(signed), assistant(text), again}, false, []string{stands("so far", ""), assistant(text), again}, "so far"},
		{"a failed one", []string{hello, assistant(failed, text), again}, false, []string{hello, assistant(text), again}, ""},
		{"nothing but a failed one", []string{hello, assistant(failed), again}, false, []string{hello, again}, ""},
		{"a failed one behind", []string{hello, assistant(threshold, text), again, assistant(failed, text), again}, false, []string{stands("so far", ""), assistant(text), again, assistant(text), again}, "so far"},
		{"with a mark", []string{hello, assistant(strings.Replace(threshold, `{"type"`, `{"cache_control":{"type":"ephemeral"},"type"`, 1), text), again}, false,
			[]string{stands("so far", `,"cache_control":{"type":"ephemeral"}`), assistant(text), again}, "so far"},
		{"the provider's own, where it cannot compact", []string{hello, assistant(foreign, text), again}, false, []string{stands("of the provider", ""), assistant(text), again}, ""},
		{"the provider's own", []string{hello, assistant(foreign, text), again}, true, nil, ""},
		{"ours, where the provider compacts", []string{hello, assistant(threshold, text), again}, true, []string{stands("so far", ""), assistant(text), again}, "so far"},
		{"ours before the provider's own", []string{hello, assistant(threshold, text), again, assistant(foreign, text), again}, true, []string{stands("so far", ""), assistant(text), again, assistant(foreign, text), again}, "so far"},
		{"ours with another text", []string{hello, assistant(strings.Replace(threshold, "so far", "my own", 1), text), again}, false, []string{stands("my own", ""), assistant(text), again}, ""},
		{"none", []string{hello, assistant(text), again}, false, nil, ""},
		{"the word alone", []string{`{"role":"user","content":[{"type":"text","text":"compaction"}]}`}, false, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := request(`"thinking2": 1,`, c.messages...)
			m, err := native.ReadMessages(body)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Expand(open, !c.native); err != nil {
				t.Fatal(err)
			}
			want := body
			if c.want != nil {
				want = request(`"thinking2": 1,`, c.want...)
			}
			if got := m.Body(); got != want || m.Changed() != (c.want != nil) || m.Edited() {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if got := m.Previous; (got != nil) != (c.previous != "") || got != nil && got.CurrentTask != c.previous {
				t.Errorf("previous: %+v", got)
			}
			// Without a key the same is sent: nothing that was made here stays behind.
			again, _ := native.ReadMessages(body)
			if err := again.Expand(nil, !c.native); err != nil || again.Body() != want {
				t.Errorf("without a key: %v\n%s", err, again.Body())
			}
		})
	}
}

// TestWrongBlocks: each broken rule has its code.
func TestWrongBlocks(t *testing.T) {
	const text = `{"type":"text","text":"On it."}`
	signed := block("so far", native.BetaOnDemand)
	other := native.SignedBlock("so far", native.Seal([]byte("another"), native.Token{API: wire.Anthropic, Kind: native.BetaOnDemand, Digest: native.Digest("so far")}))
	threshold := native.Seal(key, native.Token{API: wire.Anthropic, Kind: native.BetaCompact, Digest: native.Digest("so far")})
	for _, c := range []struct {
		name, members string
		messages      []string
		code, say     string
	}{
		{"behind a message", "", []string{hello, assistant(signed), hello}, "compaction_block_misplaced", "messages.1.content.0"},
		{"behind a block", "", []string{assistant(text, signed), hello}, "compaction_block_misplaced", "messages.0.content.1"},
		{"two", "", []string{assistant(signed, signed), hello}, "compaction_block_misplaced", "messages.0.content.1"},
		{"another key", "", []string{assistant(other), hello}, "compaction_signature_invalid", "messages.0.content.0.signature"},
		{"a provider's", "", []string{assistant(native.SignedBlock("so far", "EuYBCkQYAiJA")), hello}, "compaction_signature_invalid", "messages.0.content.0.signature"},
		{"of a threshold", "", []string{assistant(native.SignedBlock("so far", threshold)), hello}, "compaction_signature_invalid", "on demand"},
		{"other text", "", []string{assistant(strings.Replace(signed, "so far", "no more", 1)), hello}, "compaction_content_mismatch", "messages.0.content.0.content"},
		{"no text", "", []string{assistant(strings.Replace(signed, `"so far"`, "null", 1)), hello}, "", "messages.0.content.0.content"},
		{"empty text", "", []string{assistant(strings.Replace(signed, `"so far"`, `""`, 1)), hello}, "", "never empty"},
		{"empty text, threshold", "", []string{hello, assistant(`{"type":"compaction","content":""}`), hello}, "", "never empty"},
		{"a number", "", []string{hello, assistant(`{"type":"compaction","content":4}`), hello}, "", "messages.1.content.0.content"},
		{"further members", "", []string{assistant(strings.Replace(signed, "{", `{"citations":null,`, 1)), hello}, "", "nothing else"},
		{"with edits", edits(), []string{assistant(signed), hello}, "", "context_management"},
	} {
		m, err := native.ReadMessages(request(c.members, c.messages...))
		if err == nil {
			err = m.ReadCompaction()
		}
		if err == nil {
			err = m.Expand(open, true)
		}
		var refusal *native.Refusal
		if !errors.As(err, &refusal) || refusal.Code != c.code || !strings.Contains(refusal.Message, c.say) {
			t.Errorf("%s: %v, %+v", c.name, err, refusal)
			continue
		}
		if got := gjson.Get(refusal.Body(), "error.details.error_code").Str; got != c.code {
			t.Errorf("%s: the body names %q", c.name, got)
		}
	}
	fault := errors.New("the key cannot be read")
	m, _ := native.ReadMessages(request("", assistant(signed), hello))
	if err := m.Expand(func(string) (native.Token, error) { return native.Token{}, fault }, true); !errors.Is(err, fault) {
		t.Errorf("a fault of the key is %v", err)
	}
}

// TestEmpty: what an earlier compaction left is nothing to summarize.
func TestEmpty(t *testing.T) {
	for _, c := range []struct {
		messages []string
		want     bool
	}{
		{nil, true}, {[]string{assistant(block("so far", native.BetaOnDemand))}, true},
		{[]string{assistant(block("so far", native.BetaOnDemand)), hello}, false}, {[]string{hello}, false},
	} {
		m, err := native.ReadMessages(request("", c.messages...))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Expand(open, true); err != nil {
			t.Fatal(err)
		}
		if m.NothingToSummarize() != c.want {
			t.Errorf("%q: empty is %v", c.messages, m.NothingToSummarize())
		}
	}
}
