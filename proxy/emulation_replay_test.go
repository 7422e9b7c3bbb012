package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestNativeReplay: a real session of a client that leaves compaction to its
// provider, which has none. No request is refused, none grows far over the
// threshold, and a second run gives the same bytes.
func TestNativeReplay(t *testing.T) {
	steps := 40
	if corpus.Long() {
		steps = 80 // it takes minutes to the end
	}
	for _, file := range []string{"pi-mono/before-compaction.jsonl.gz"} {
		for _, r := range record(t, file, wire.Anthropic, steps) {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				first, blocks := r.compacting(t)
				if blocks == 0 {
					t.Error("nothing was compacted")
				}
				if again, _ := r.compacting(t); !slices.Equal(first, again) {
					t.Error("a second run sends other bytes")
				}
				t.Logf("%d steps, %d compactions", len(r.asked), blocks)
			})
		}
	}
}

// compacting sends every step with the edit and returns what arrived upstream, and
// how many answers compacted.
func (r *recording) compacting(t *testing.T) (sent []string, compactions int) {
	up, url := ignorant(t, proxy.Options{})
	up.BindThinking = false
	blocks := map[int]string{} // by the element of the messages array that they begin
	for i := range r.asked {
		body := string(r.body(i))
		for at, block := range blocks {
			body = beginning(body, at, block)
		}
		body, _ = sjson.SetRaw(body, "context_management", `{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000}}]}`)
		res, err := plainly.RoundTrip(request(t, url+paths[wire.Anthropic], []byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Fatalf("step %d of %d: status %d: %.300s", i, len(r.asked), res.StatusCode, said)
		}
		if block := gjson.GetBytes(said, "content.0"); block.Get("type").Str == "compaction" {
			inOrder(t, block.Get("content").Str)
			blocks[len(gjson.Get(body, "messages").Array())] = block.Raw
		}
	}
	for _, q := range up.Requests() {
		if q.Refused != "" || q.Tokens > 50_000 {
			t.Errorf("request %d: %d tokens, %.300s", q.N, q.Tokens, q.Refused)
		}
		sent = append(sent, string(q.Body))
	}
	return sent, len(blocks)
}

// beginning puts a block in front of an element of the messages array.
func beginning(body string, at int, block string) string {
	path := fmt.Sprintf("messages.%d.content", at)
	content := gjson.Get(body, path)
	list := strings.TrimPrefix(content.Raw, "[")
	if content.Type == gjson.String {
		list = `{"type":"text","text":` + rawjson.Quote(content.Str) + `}]`
	}
	out, _ := sjson.SetRaw(body, path, "["+block+","+list)
	return out
}

// turns finds the numbers of turns of what the user said.
var turns = regexp.MustCompile(`(?m)^- \(turn (\d+)\) "`)

// inOrder checks that a summary of a summary goes on counting turns.
func inOrder(t *testing.T, text string) {
	t.Helper()
	_, text, _ = strings.Cut(text, "## User messages")
	text, _, _ = strings.Cut(text, "\n## ")
	last := 0
	for _, m := range turns.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		if n < last {
			t.Errorf("turn %d stands behind turn %d", n, last)
		}
		last = n
	}
}

// TestSamplesEmulated: what real clients send reaches an upstream that knows
// nothing of native compaction without what they ask of it, and else byte for
// byte.
func TestSamplesEmulated(t *testing.T) {
	up, url := ignorant(t, proxy.Options{})
	up.BindThinking = false // the samples were cut
	asked := 0
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			up.Forget()
			r := request(t, url+s.Path, s.Body)
			r.Method = s.Method
			for k, v := range s.Headers {
				r.Header[http.CanonicalHeaderKey(k)] = []string{v}
			}
			res, err := plainly.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			said, _ := io.ReadAll(res.Body)
			res.Body.Close()
			q := up.Requests()[0]
			if q.Refused != "" {
				t.Fatal(q.Refused)
			}
			want, _ := sjson.Delete(string(s.Body), "context_management")
			if want != string(s.Body) {
				asked++
				if !strings.Contains(string(said), `"context_management":{"applied_edits":[]}`) {
					t.Errorf("the answer does not tell what was done: %s", said)
				}
			}
			if string(q.Body) != want {
				t.Error("the body is another one")
			}
			betas := strings.Split(s.Headers["anthropic-beta"], ",")
			if left := slices.DeleteFunc(betas, func(b string) bool { return strings.HasPrefix(b, "context-management-") }); q.Header.Get("Anthropic-Beta") != strings.Join(left, ",") {
				t.Errorf("the betas are %q", q.Header.Get("Anthropic-Beta"))
			}
		})
	}
	if asked == 0 {
		t.Error("no sample asks for anything")
	}
}
