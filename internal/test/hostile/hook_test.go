//go:build unix

package hostile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/hook"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/test/hostile"
)

// TestHooks: whatever an agent writes to a hook, `palimpsest hook` ends with a status of
// its own, never the one that would stop the agent, and few words.
func TestHooks(t *testing.T) {
	c := startChild(t)
	_, session := sampleOf(t, "claude-code")
	file := filepath.Join(t.TempDir(), "session.jsonl")
	if err := os.WriteFile(file, session, 0o600); err != nil {
		t.Fatal(err)
	}
	n, share := size()
	turn := 0
	for _, name := range hook.Names() {
		agent, err := hook.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range agent.Events {
			t.Run(name+" "+event.Name, func(t *testing.T) {
				turn++
				input := func(output string) []byte {
					return fmt.Appendf(nil, `{"session_id":"s","transcript_path":%s,"cwd":"/src","hook_event_name":%q,"trigger":"auto","source":"compact","tool_name":"Bash","tool_input":{"command":"ls"},"tool_response":{"stdout":%s,"content":[{"type":"text","text":"ok"}],"llmContent":"a"}}`,
						rawjson.Quote(file), event.Name, rawjson.Quote(output))
				}
				sample := input("a short output of a command that has listed the files of a folder which has a long name, and a few more words")
				ask := func(data []byte) order {
					return order{Args: []string{"hook", name, event.Name, "--offload", "13000"}, In: data}
				}
				cases := inTurn(slices.Values(some(hostile.Whole(n), turn, share)), slices.Values(hostile.Broken(sample, n)), hostile.Changed(sample, n, turn, share/4+1))
				trial(t, c, cases, sample, input(prose(n)), ask, func(d done) bool { return d.Status != 2 })
			})
		}
	}
}

// TestOffloadIsLinear: the work for an output grows with its size, however many long
// texts it holds.
func TestOffloadIsLinear(t *testing.T) {
	text := `"` + strings.Repeat("a", 13_000) + `",`
	linear(t, 64<<10, 16<<20, func(n int) func() {
		call := hook.Call{Session: "s", Response: "[" + strings.Repeat(text, max(1, n/len(text))) + "0]"}
		folder := t.TempDir()
		return func() {
			if out, err := hook.Offload(call, folder, 100, time.Unix(0, 0)); err != nil || out == "" {
				t.Fatal(err)
			}
		}
	})
}
