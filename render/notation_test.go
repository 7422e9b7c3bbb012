package render_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// parseThread reads a thread, a line for each message or part:
//
//	user TEXT            a message; also assistant, system, injected, recap
//	+ say TEXT           one more part of the message above
//	+ think API TEXT     reasoning that API sealed
//	+ opaque API JSON    a block that only API has
//	+ image DATA         an image; + pdf NAME DATA
//	+ call ID TOOL ARGS
//	result ID TOOL OUTCOME TEXT
//	+ keys JSON          key fields of the result above
//
// \n in a text is a newline, {x*400} four hundred x. Lines that begin with #
// are comments. The messages are m1, m2, … in order.
func parseThread(t *testing.T, notation string) *thread.Thread {
	t.Helper()
	var messages []thread.Message
	for n, line := range strings.Split(notation, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		word, rest := field(line)
		if word != "+" {
			messages = append(messages, message(t, word, rest))
			continue
		}
		m := &messages[len(messages)-1]
		word, rest = field(rest)
		if word == "keys" {
			r, _ := m.Result()
			if err := json.Unmarshal([]byte(rest), &r.KeyFields); err != nil {
				t.Fatalf("line %d: %v", n+1, err)
			}
			m.Parts = []thread.Part{r}
			continue
		}
		m.Parts = append(m.Parts, part(t, word, rest))
	}
	return numbered(t, messages)
}

func message(t *testing.T, word, rest string) thread.Message {
	t.Helper()
	m := thread.Message{Role: thread.Role(word)}
	switch word {
	case "injected":
		m.Role, m.Kind = thread.User, thread.Injected
	case "recap":
		m.Role, m.Kind = thread.User, thread.Recap
	case "result":
		id, rest := field(rest)
		tool, rest := field(rest)
		outcome, text := field(rest)
		m.Role = thread.Tool
		m.Parts = []thread.Part{thread.ToolResult{CallID: id, Tool: tool, Outcome: thread.Outcome(outcome), Content: []thread.Part{thread.Text{Text: expand(text)}}}}
		return m
	case "user", "assistant", "system":
	default:
		t.Fatalf("no message is called %q", word)
	}
	if rest != "" {
		m.Parts = []thread.Part{thread.Text{Text: expand(rest)}}
	}
	return m
}

func part(t *testing.T, word, rest string) thread.Part {
	t.Helper()
	switch word {
	case "say":
		return thread.Text{Text: expand(rest)}
	case "think":
		api, text := field(rest)
		raw := fmt.Sprintf(`{"type":"thinking","thinking":%q,"signature":"c2VhbA=="}`, text)
		return thread.Reasoning{Text: text, Signature: "c2VhbA==", Source: thread.Source{API: api, Raw: raw}}
	case "opaque":
		api, raw := field(rest)
		var kind struct{ Type, Text string }
		if err := json.Unmarshal([]byte(raw), &kind); err != nil {
			t.Fatal(err)
		}
		return thread.Opaque{Kind: kind.Type, Text: kind.Text, Source: thread.Source{API: api, Raw: raw}}
	case "image":
		return thread.Media{Type: thread.Image, MIME: "image/png", Data: rest}
	case "pdf":
		name, data := field(rest)
		return thread.Media{Type: thread.Document, MIME: "application/pdf", Name: name, Data: data}
	case "call":
		id, rest := field(rest)
		tool, arguments := field(rest)
		return thread.ToolCall{ID: id, Name: tool, Arguments: repeat(arguments)}
	}
	t.Fatalf("no part is called %q", word)
	return nil
}

// parsePlan reads a plan, a line for each record:
//
//	clear SPAN [JSON of preserved fields]
//	summarize SPAN FACT
//	externalize SPAN ARTIFACT FACT
//	drop SPAN
//	version N            the plan was made when the thread had N messages
//	overlapping          resolve overlaps as plan.Normalize does
//	rehydrated ARTIFACT TEXT, or truncated ARTIFACT TEXT: no record, but content brought back
//
// A SPAN is m3, m3-m7, or several of them with commas.
func parsePlan(t *testing.T, th *thread.Thread, notation string) (*plan.Plan, []render.Rehydrated) {
	t.Helper()
	p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: th.ID(), ThreadVersion: th.Version()}
	var rehydrated []render.Rehydrated
	for line := range strings.SplitSeq(notation, "\n") {
		word, rest := field(strings.TrimSpace(line))
		first, rest := field(rest)
		switch word {
		case "":
		case "version":
			p.ThreadVersion, _ = strconv.Atoi(first)
		case "overlapping":
			normal, _ := p.Normalize()
			p = &normal
		case "rehydrated", "truncated":
			rehydrated = append(rehydrated, render.Rehydrated{ArtifactID: first, Content: expand(rest), Truncated: word == "truncated"})
		case "clear":
			var fields thread.Fields
			if rest != "" {
				if err := json.Unmarshal([]byte(rest), &fields); err != nil {
					t.Fatal(err)
				}
			}
			p.Add(plan.Clearing{Span: span(t, th, first), PreservedFields: fields})
		case "summarize":
			p.Add(plan.Summarization{Span: span(t, th, first), Summary: fact(rest)})
		case "externalize":
			artifact, text := field(rest)
			p.Add(plan.Externalization{Span: span(t, th, first), ArtifactID: artifact, Summary: fact(text)})
		case "drop":
			p.Add(plan.Removal{Span: span(t, th, first)})
		default:
			t.Fatalf("no record is called %q", word)
		}
	}
	return p, rehydrated
}

func fact(text string) summary.Summary {
	return summary.Summary{Facts: []summary.Item{{Text: text}}}
}

func span(t *testing.T, th *thread.Thread, notation string) thread.Span {
	t.Helper()
	var ids []thread.ID
	for piece := range strings.SplitSeq(notation, ",") {
		from, to, ranged := strings.Cut(piece, "-")
		if !ranged {
			to = from
		}
		i, found := th.Index(thread.ID(from))
		j, also := th.Index(thread.ID(to))
		if !found || !also {
			t.Fatalf("no span is called %q", piece)
		}
		ids = slices.Concat(ids, th.Range(i, j+1).MessageIDs)
	}
	s, err := thread.NewSpan(th, ids...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func field(line string) (first, rest string) {
	first, rest, _ = strings.Cut(line, " ")
	return first, strings.TrimSpace(rest)
}

func expand(text string) string { return strings.ReplaceAll(repeat(text), `\n`, "\n") }

var repeated = regexp.MustCompile(`\{(\w)\*(\d+)\}`)

func repeat(text string) string {
	return repeated.ReplaceAllStringFunc(text, func(s string) string {
		match := repeated.FindStringSubmatch(s)
		n, _ := strconv.Atoi(match[2])
		return strings.Repeat(match[1], n)
	})
}
