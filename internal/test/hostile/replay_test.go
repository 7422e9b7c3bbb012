//go:build unix

package hostile_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// bombs are small logs of edits that, made again, would fill the memory: one of the test's own and,
// where it is there, the recorded one.
func bombs(t *testing.T) map[string][]byte {
	c := newChat()
	c.does("Write", write("plan.md", "- [ ] a\n- [ ] b\n- [ ] c\n"), "File created successfully at: plan.md")
	for i := range 12 {
		c.does("Edit", strings.TrimSuffix(edit("plan.md", "a", strings.Repeat("a", 100)), "}")+`,"replace_all":true}`, updated)
		c.say("user", fmt.Sprintf("Go on with step %d. ", i)+prose(600))
	}
	c.say("assistant", "I go on.")
	c.say("user", "Thanks.")
	all := map[string][]byte{"own": c.end()}
	if data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "shared", "cases", "hostile", "planbomb.json")); err == nil {
		// A model that is not known has the window that the daemon is told.
		all["recorded"] = bytes.Replace(data, []byte(`"model": "gpt-5.1"`), []byte(`"model": "m"`), 1)
	}
	return all
}

// TestReplays: edits of a file that make it grow without end cost the process neither its life nor
// its memory: by the commands, through the proxy, in the API, and in the jobs that prepare a
// compaction where the window is nearly full.
func TestReplays(t *testing.T) {
	const peak = 512 << 20
	c := startChild(t)
	for name, bomb := range bombs(t) {
		file := filepath.Join(t.TempDir(), "bomb.json")
		if err := os.WriteFile(file, bomb, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"compact", file, "--budget", "900", "--store", "memory:", "-o", filepath.Join(t.TempDir(), "out")}, {"inspect", file}, {"plan", file, "--budget", "900"}} {
			// Whether it fits does not matter here.
			if got := c.do(t, order{Args: args}); got.Status != 0 && got.Status != 3 || got.Peak > peak {
				t.Errorf("%s, %s: status %d, %d MB: %.300s", name, args[0], got.Status, got.Peak>>20, got.Said)
			}
		}
		for _, policy := range []string{"base: auto\ntrigger: {favor: quality}", "base: workstream\ntrigger: {share: 0.3, output_reserve: 1, safety_margin: 1}"} {
			file := filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
				t.Fatal(err)
			}
			d, up := proxied(t, "--window", "1200", "--policy", file, "--mcp", "write")
			up.say(nil, "")
			for _, to := range apis {
				for _, stream := range []bool{false, true} {
					q := request{method: "POST", path: strings.Replace(pathOf(to, stream), "gemini-2.5-pro", "m", 1), body: inAPI(t, bomb, to, stream)}
					if status, body := d.send(t, q); status != 200 {
						t.Errorf("%s, %s, %s, stream %t: status %d: %.300s", name, policy, to, stream, status, body)
					}
				}
			}
			for _, q := range []request{
				{"POST", api.Root, nil, []byte(`{"id":"m"}`)}, {"POST", api.Root + "/m/prepare", nil, []byte(`{"api":"openai","body":` + string(bomb) + `,"window":200000}`)},
				{"POST", "/mcp", map[string]string{"Accept": "application/json, text/event-stream"}, []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"compact","arguments":{"session":"m","budget":2000}}}`)},
			} {
				if status, body := d.send(t, q); status/100 != 2 || strings.Contains(string(body), `"error":`) {
					t.Errorf("%s, %s, %s: status %d: %.300s", name, policy, q.path, status, body)
				}
			}
			for window := 1200; window < 8000; window += window / 8 {
				prepare := fmt.Sprintf(`{"api":"openai","body":%s,"window":%d}`, bomb, window)
				for _, q := range []request{{"POST", api.Root, nil, []byte(`{"id":"t"}`)}, {"POST", api.Root + "/t/prepare", nil, []byte(prepare)}, {"DELETE", api.Root + "/t", nil, nil}} {
					// What does not fit is refused. Deleting waits for the job.
					if status, body := d.send(t, q); status/100 != 2 && status != 422 {
						t.Errorf("%s, %s, %s %s, window %d: status %d: %.300s", name, policy, q.method, q.path, window, status, body)
					}
				}
			}
			if f := d.do(t, order{}).figures; f.Peak > peak {
				t.Errorf("%s, %s: the daemon takes %d MB", name, policy, f.Peak>>20)
			}
			_, figures := d.send(t, request{method: "GET", path: "/metrics"})
			if !strings.Contains(string(figures), `palimpsest_job_attempts_total{kind="compact",outcome="done"}`) {
				t.Errorf("%s, %s: no job was done:\n%s", name, policy, figures)
			}
		}
	}
}

// inAPI is a Chat request as one of another API.
func inAPI(t *testing.T, chat []byte, api string, stream bool) []byte {
	t.Helper()
	p, err := codecs[wire.Chat].Decode(string(chat))
	if err != nil {
		t.Fatal(err)
	}
	th, err := thread.New("t").Append(p.Messages...)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err = render.Render(th, nil, &prompt.Prompt{Model: "m", MaxOutput: 100}, &render.Options{Profile: render.For(api)})
	if err != nil {
		t.Fatal(err)
	}
	body, err := codecs[api].Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	if stream && api != wire.Gemini {
		body = append([]byte(`{"stream":true,`), body[1:]...)
	}
	return body
}
