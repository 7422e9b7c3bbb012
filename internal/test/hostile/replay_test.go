//go:build unix

package hostile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
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
		all["recorded"] = data
	}
	return all
}

// TestReplays: edits of a file that make it grow without end cost the process neither its life nor
// its memory: by the commands, through the proxy and in the API.
func TestReplays(t *testing.T) {
	const peak = 512 << 20
	d, up := proxied(t, "--window", "1200")
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
		up.say(nil, "")
		if status, body := d.send(t, request{method: "POST", path: "/v1/chat/completions", body: bomb}); status != 200 {
			t.Errorf("%s, proxy: status %d: %.300s", name, status, body)
		}
		status, body := d.send(t, request{method: "POST", path: "/v1/threads", body: []byte(bodies["create"])})
		_, id, _ := strings.Cut(string(body), `"id":"`)
		id, _, _ = strings.Cut(id, `"`)
		if status != 201 {
			t.Fatalf("%s: no thread: status %d: %.300s", name, status, body)
		}
		prepare := `{"api":"openai","body":` + string(bomb) + `,"window":1200,"budget":900}`
		if !rawjson.Valid(prepare) {
			t.Fatalf("%s: no JSON", name)
		}
		if status, body := d.send(t, request{method: "POST", path: "/v1/threads/" + id + "/prepare", body: []byte(prepare)}); status == 0 || status >= 500 {
			t.Errorf("%s, API: status %d: %.300s", name, status, body)
		}
		if f := d.do(t, order{}).figures; f.Peak > peak {
			t.Errorf("%s: the daemon takes %d MB", name, f.Peak>>20)
		}
	}
}
