package wiretest

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestCodec checks what wire.Codec promises: on every sample, on broken and
// hostile bodies, and on random prompts of another API. The samples must be
// requests of the codec's API; they need not be valid ones.
func TestCodec(t *testing.T, c wire.Codec, samples map[string][]byte) {
	if len(samples) == 0 {
		t.Fatal("no samples")
	}
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		body := samples[name]
		t.Run(name, func(t *testing.T) {
			t.Run("round trip", func(t *testing.T) { roundTrip(t, c, body) })
			t.Run("replace", func(t *testing.T) { replaceEach(t, c, body) })
			t.Run("drop", func(t *testing.T) { dropEach(t, c, body) })
			t.Run("cache marks", func(t *testing.T) { moveMarks(t, c, body) })
			t.Run("truncated", func(t *testing.T) { truncate(t, c, body) })
			t.Run("deep", func(t *testing.T) { nestInside(t, c, body) })
		})
	}
	t.Run("hostile", func(t *testing.T) { hostile(t, c) })
	t.Run("translation", func(t *testing.T) { translate(t, c) })
}

func roundTrip(t *testing.T, c wire.Codec, body []byte) {
	p, again := decode(t, c, body), decode(t, c, body)
	if diff := cmp.Diff(p, again); diff != "" {
		t.Errorf("decoding twice differs (-first +second):\n%s", diff)
	}
	got := encode(t, c, p)
	sameBytes(t, got, body)
	if diff := cmp.Diff(again, p); diff != "" {
		t.Errorf("Encode changed the prompt (-before +after):\n%s", diff)
	}
	if p.Source == nil || p.Source.API != c.API() || p.Source.Body != string(body) {
		t.Error("Prompt.Source does not name the API and the exact body")
	}
	for i := range p.Messages {
		m := &p.Messages[i]
		if m.Frame == nil || m.Frame.API() != c.API() {
			t.Errorf("message %d has no frame of %s", i, c.API())
			continue
		}
		if m.ID != "" || m.Kind != thread.Plain || m.Turn != 0 {
			t.Errorf("message %d: id, kind and turn are not the codec's to set", i)
		}
		if m.Role == thread.Tool {
			if _, ok := m.Result(); !ok || len(m.Parts) != 1 {
				t.Errorf("message %d: a tool message holds exactly one result, got %d parts", i, len(m.Parts))
			}
		}
		if !strings.Contains(string(body), m.Frame.Raw()) {
			t.Errorf("message %d: its frame is not text of the body", i)
		}
	}
	for _, f := range frames(p.Messages) {
		if n := f.count(p.Messages); n != f.Messages() {
			t.Errorf("frame at element %d claims %d messages, %d were cut from it", f.Position(), f.Messages(), n)
		}
	}
	ids(t, p)
}

// replaceEach puts new text in place of one message after another.
func replaceEach(t *testing.T, c wire.Codec, body []byte) {
	const fresh = "replaced “text” <&>\n"
	whole := decode(t, c, body)
	before := ids(t, whole)
	for _, i := range spreadPositions(len(whole.Messages), 25) {
		p := decode(t, c, body)
		old := p.Messages[i]
		m, ok := rewriteMessage(old, fresh)
		if !ok {
			continue
		}
		p.Messages[i] = m
		out := encode(t, c, p)
		rest := string(out)
		for _, f := range frames(p.Messages) {
			if f.Frame == old.Frame {
				continue
			}
			at := strings.Index(rest, f.Raw())
			if at < 0 {
				t.Fatalf("message %d replaced: element %d lost its bytes or its place", i, f.Position())
			}
			rest = rest[at+len(f.Raw()):]
		}
		back := decode(t, c, out)
		if len(back.Messages) != len(whole.Messages) {
			t.Fatalf("message %d replaced: %d messages came back of %d", i, len(back.Messages), len(whole.Messages))
		}
		if diff := cmp.Diff(before[:i], ids(t, back)[:i]); diff != "" {
			t.Errorf("message %d replaced: earlier ids changed:\n%s", i, diff)
		}
		if got := back.Messages[i].Role; got != old.Role {
			t.Errorf("message %d replaced: role %s became %s", i, old.Role, got)
		}
		if got := readable(&back.Messages[i]); !strings.Contains(got, fresh) {
			t.Errorf("message %d replaced: came back as %q", i, got)
		}
		sameBytes(t, encode(t, c, back), out)
		noNewProblems(t, c, body, out)
	}
}

// dropEach leaves out one frame after another; a frame with calls goes together
// with the frames of their results, as a plan would do it.
func dropEach(t *testing.T, c wire.Codec, body []byte) {
	whole := decode(t, c, body)
	all := frames(whole.Messages)
	for _, i := range spreadPositions(len(all), 25) {
		p := decode(t, c, body)
		gone := withResults(p.Messages, frames(p.Messages)[i].Frame)
		if len(gone) == 0 || len(gone) == len(all) {
			continue
		}
		p.Messages = slices.DeleteFunc(p.Messages, func(m thread.Message) bool { return gone[m.Frame] })
		out := encode(t, c, p)
		rest := string(out)
		for _, f := range frames(p.Messages) {
			at := strings.Index(rest, f.Raw())
			if at < 0 {
				t.Fatalf("element %d dropped: element %d lost its bytes or its place", all[i].Position(), f.Position())
			}
			rest = rest[at+len(f.Raw()):]
		}
		if back := decode(t, c, out); countJoined(back.Messages) != countJoined(p.Messages) {
			t.Fatalf("element %d dropped: %d messages came back of %d", all[i].Position(), len(back.Messages), len(p.Messages))
		}
	}
}

// countJoined counts messages, assistant messages in a row as one: an API of items
// cannot tell where one response ends and the next begins.
func countJoined(messages []thread.Message) (n int) {
	for i := range messages {
		if i == 0 || messages[i].Role != thread.Assistant || messages[i-1].Role != thread.Assistant {
			n++
		}
	}
	return n
}

// withResults returns a frame and those that hold the results of its calls; none
// for a frame with results, which goes only with its calls.
func withResults(messages []thread.Message, f *thread.Frame) map[*thread.Frame]bool {
	gone := map[*thread.Frame]bool{f: true}
	calls := map[string]bool{}
	for i := range messages {
		m := &messages[i]
		r, isResult := m.Result()
		switch {
		case m.Frame == f && isResult && !calls[r.CallID]:
			return nil
		case m.Frame == f:
			for _, call := range m.Calls() {
				calls[call.ID] = true
			}
		case isResult && calls[r.CallID]:
			gone[m.Frame] = true
		}
	}
	return gone
}

// moveMarks asks for cache marks: they are no part of what was said.
func moveMarks(t *testing.T, c wire.Codec, body []byte) {
	p := decode(t, c, body)
	want := ids(t, p)
	n := len(p.Messages)
	for _, points := range [][]prompt.CachePoint{
		{{After: -1}},
		{{After: n / 2}, {After: n - 1}},
		{{After: -1, TTL: "1h"}, {After: 0, TTL: "1h"}, {After: n / 2}, {After: n - 1}, {After: n - 2}},
	} {
		p := decode(t, c, body)
		p.CachePoints = points
		out := encode(t, c, p)
		back := decode(t, c, out)
		if diff := cmp.Diff(want, ids(t, back)); diff != "" {
			t.Errorf("ids changed with marks at %+v:\n%s", points, diff)
		}
		noNewProblems(t, c, body, out)
	}
}

func truncate(t *testing.T, c wire.Codec, body []byte) {
	body = bytes.TrimSpace(body)
	for n := 0; n < len(body); n += max(37, len(body)/1000) {
		checkRefused(t, c, body[:n])
	}
}

func nestInside(t *testing.T, c wire.Codec, body []byte) {
	at := bytes.IndexByte(body, '{') + 1
	const depth = 10_000
	var b bytes.Buffer
	b.Write(body[:at])
	b.WriteString(`"zz":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + ",")
	b.Write(body[at:])
	checkRefused(t, c, b.Bytes())
}

func hostile(t *testing.T, c wire.Codec) {
	for _, body := range []string{
		"", " ", "null", "true", "1", `"text"`, "[]", "{", "{]", "\xff\xfe", `{"a":1}}`, "{}{}",
		strings.Repeat("[", 200_000), strings.Repeat(`{"a":`, 200_000),
		strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000),
	} {
		checkRefused(t, c, []byte(body))
	}
	for _, field := range []string{"messages", "input", "contents", "system", "tools", "instructions"} {
		for _, value := range []string{`null`, `true`, `0`, `""`, `{}`, `[]`, `[null]`, `[1]`, `[[]]`, `[{}]`, `[{"role":1,"content":2,"parts":3}]`} {
			body := []byte(`{"` + field + `":` + value + `}`)
			c.Validate(body)
			p, err := c.Decode(string(body))
			if err != nil {
				if !errors.Is(err, wire.ErrFormat) {
					t.Errorf("%s: %v does not wrap ErrFormat", body, err)
				}
				continue
			}
			sameBytes(t, encode(t, c, p), body)
		}
	}
}

// checkRefused checks that a body which is no JSON object is refused by both.
func checkRefused(t *testing.T, c wire.Codec, body []byte) {
	t.Helper()
	shown := body[:min(len(body), 40)]
	if _, err := c.Decode(string(body)); !errors.Is(err, wire.ErrFormat) {
		t.Errorf("Decode(%d bytes, %q…): want ErrFormat, got %v", len(body), shown, err)
	}
	if !slices.ContainsFunc(c.Validate(body), func(p wire.Problem) bool { return !p.Advice }) {
		t.Errorf("Validate(%d bytes, %q…) found nothing", len(body), shown)
	}
}

func decode(t testing.TB, c wire.Codec, body []byte) *prompt.Prompt {
	t.Helper()
	p, err := c.Decode(string(body))
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	return p
}

func encode(t testing.TB, c wire.Codec, p *prompt.Prompt) []byte {
	t.Helper()
	out, err := c.Encode(p)
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	again, err := c.Encode(p)
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	if !bytes.Equal(out, again) {
		t.Fatal("Encode gave other bytes the second time")
	}
	return out
}

func sameBytes(t testing.TB, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	n := 0
	for n < min(len(got), len(want)) && got[n] == want[n] {
		n++
	}
	from := max(0, n-60)
	t.Fatalf("bytes differ at %d:\n got …%q\nwant …%q", n, got[from:min(len(got), n+60)], want[from:min(len(want), n+60)])
}

// ids returns the chained ids of the messages.
func ids(t testing.TB, p *prompt.Prompt) []thread.ID {
	t.Helper()
	th, err := thread.New("test").Append(p.Messages...)
	if err != nil {
		t.Fatalf("the messages make no thread: %v", err)
	}
	list := make([]thread.ID, 0, th.Len())
	for _, m := range th.All() {
		list = append(list, m.ID)
	}
	return list
}

// noNewProblems checks that an edit broke no rule that the original kept.
func noNewProblems(t testing.TB, c wire.Codec, before, after []byte) {
	t.Helper()
	known := map[string]bool{}
	for _, p := range c.Validate(before) {
		known[p.Rule] = true
	}
	for _, p := range c.Validate(after) {
		if !p.Advice && !known[p.Rule] {
			t.Errorf("the edit broke a rule: %v", p)
		}
	}
}

// frame is a frame with the means to count its messages.
type frame struct{ *thread.Frame }

func (f frame) count(messages []thread.Message) (n int) {
	for i := range messages {
		if messages[i].Frame == f.Frame {
			if messages[i].Index != n {
				return -1
			}
			n++
		}
	}
	return n
}

// frames lists the distinct frames of messages, in order.
func frames(messages []thread.Message) []frame {
	var list []frame
	for i := range messages {
		f := messages[i].Frame
		if f != nil && (len(list) == 0 || list[len(list)-1].Frame != f) {
			list = append(list, frame{f})
		}
	}
	return list
}

// rewriteMessage returns the message with fresh in place of its text, as the
// renderer makes such messages: new parts, no frame. It is false for messages
// without text of their own.
func rewriteMessage(m thread.Message, fresh string) (thread.Message, bool) {
	next := thread.Message{Role: m.Role, Name: m.Name}
	if r, ok := m.Result(); ok {
		next.Parts = []thread.Part{thread.ToolResult{
			CallID: r.CallID, Tool: r.Tool, Outcome: r.Outcome,
			Content: []thread.Part{thread.Text{Text: fresh}},
		}}
		return next, true
	}
	done := false
	for _, part := range m.Parts {
		if _, ok := part.(thread.Text); !ok {
			next.Parts = append(next.Parts, part)
		} else if !done {
			next.Parts = append(next.Parts, thread.Text{Text: fresh})
			done = true
		}
	}
	return next, done
}

func readable(m *thread.Message) string {
	if r, ok := m.Result(); ok {
		return r.Text()
	}
	return m.Text()
}

// spreadPositions returns at most limit positions below n, the first and last included.
func spreadPositions(n, limit int) []int {
	var list []int
	for i := range n {
		if n <= limit || i == n-1 || i%(n/limit+1) == 0 {
			list = append(list, i)
		}
	}
	return list
}
