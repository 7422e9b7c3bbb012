package proxy_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/render"
)

// TestRemovedNote: once something was removed, and not before, the system prompt says so and
// how it is read, once and in the same words at every step.
func TestRemovedNote(t *testing.T) {
	for name, k := range map[string]struct {
		noTools bool
		note    string
	}{
		"tools":    {false, render.Tools.Note()},
		"no tools": {true, render.Told.Note()},
	} {
		t.Run(name, func(t *testing.T) {
			up := proxytest.New(t)
			url, p := start(t, up, proxy.Options{Window: 16_000, NoTools: k.noTools})
			noted := 0
			for n := range 40 {
				res := post(t, url+"/v1/chat/completions", chatBody(chatMessages(n, func(int) string { return "" }), false), http.Header{})
				res.Body.Close()
				sent := up.Requests()[len(up.Requests())-1]
				var notes []string
				for _, s := range sent.Prompt.System {
					if strings.HasPrefix(s.Text, render.RemovedNote) {
						notes = append(notes, s.Text)
					}
				}
				passed := res.Header.Get(proxy.ActionHeader) == proxy.Passed
				if passed && len(notes) > 0 || !passed && (len(notes) != 1 || notes[0] != k.note) {
					t.Fatalf("step %d, %s: the notes are %q", n, res.Header.Get(proxy.ActionHeader), notes)
				}
				if strings.Count(string(sent.Body), render.RemovedNote) != len(notes) {
					t.Errorf("step %d: the note stands elsewhere too", n)
				}
				noted += len(notes)
			}
			if noted == 0 || p.Totals().Compactions < 2 {
				t.Errorf("%d notes, %+v", noted, p.Totals())
			}
		})
	}
}
