package transcript_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestPiEdits: what an edit takes out of what the model sees stays out, and what Palimpsest's own edits
// took out is still part of the history.
func TestPiEdits(t *testing.T) {
	const head = `{"type":"session","version":3,"id":"s","timestamp":"2026-11-20T10:00:00.000Z","cwd":"/w"}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-11-20T10:00:01.000Z","message":{"role":"user","content":"one"}}
{"type":"message","id":"b","parentId":"a","timestamp":"2026-11-20T10:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"1"}]}}
{"type":"custom_message","id":"c","parentId":"b","timestamp":"2026-11-20T10:00:03.000Z","customType":"x","content":"note"}
`
	for _, tt := range []struct{ name, lines, want string }{
		{"none", ``, "user one|assistant 1|user note"},
		{"taken out", `{"type":"context_edit","id":"d","parentId":"c","targetId":"a","replacement":null}`, "assistant 1|user note"},
		{"other words", `{"type":"context_edit","id":"d","parentId":"c","targetId":"a","replacement":{"content":"two"}}`, "user two|assistant 1|user note"},
		{"as a text", `{"type":"context_edit","id":"d","parentId":"c","targetId":"a","replacement":"two"}`, "user two|assistant 1|user note"},
		{"as blocks", `{"type":"context_edit","id":"d","parentId":"c","targetId":"b","replacement":[{"type":"text","text":"2"}]}`, "user one|assistant 2|user note"},
		{"of an extension's message", `{"type":"context_edit","id":"d","parentId":"c","targetId":"c","replacement":{"content":"hint"}}`, "user one|assistant 1|user hint"},
		{"the last one stands", `{"type":"context_edit","id":"d","parentId":"c","targetId":"a","replacement":null}
{"type":"context_edit","id":"e","parentId":"d","targetId":"a","replacement":{"content":"three"}}`, "user three|assistant 1|user note"},
		{"our own", `{"type":"custom","id":"m","parentId":"c","customType":"palimpsest","data":{"edits":1}}
{"type":"context_edit","id":"d","parentId":"m","targetId":"a","replacement":null}
{"type":"context_edit","id":"e","parentId":"d","targetId":"b","replacement":null}`, "user one|user note"},
		{"of a summary", `{"type":"compaction","id":"d","parentId":"c","summary":"secret"}
{"type":"branch_summary","id":"e","parentId":"d","summary":"secret"}
{"type":"context_edit","id":"f","parentId":"e","targetId":"d","replacement":{"content":"sum"}}
{"type":"context_edit","id":"g","parentId":"f","targetId":"e","replacement":"left"}`, "user one|assistant 1|user note|user sum|user left"},
		{"of what the user ran", `{"type":"message","id":"d","parentId":"c","message":{"role":"bashExecution","command":"cat key","output":"secret"}}
{"type":"context_edit","id":"e","parentId":"d","targetId":"d","replacement":{"content":"ran it"}}`, "user one|assistant 1|user note|user ran it"},
		{"of nothing", `{"type":"context_edit","id":"d","parentId":"c","targetId":"z","replacement":null}`, "user one|assistant 1|user note"},
		{"in a branch that was left", `{"type":"context_edit","id":"d","parentId":"c","targetId":"a","replacement":null}
{"type":"message","id":"e","parentId":"c","message":{"role":"user","content":"on"}}`, "user one|assistant 1|user note|user on"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := conversations(t, head+tt.lines); got != tt.want {
				t.Errorf("%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestPiSystem: sections of the system prompt go by their names, and tools come and go.
func TestPiSystem(t *testing.T) {
	f, err := transcript.Read(strings.NewReader(`{"type":"session","version":3,"id":"s","timestamp":"2026-11-20T10:00:00.000Z","cwd":"/w"}
{"type":"message","id":"a","parentId":null,"message":{"role":"system","content":"","sections":{"preamble":"Be careful.","cwd":"/w","date":"Monday"},"toolsAdded":[{"name":"bash","description":"runs","parameters":{"type":"object"}},{"name":"read"}]}}
{"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"one"}}
{"type":"message","id":"c","parentId":"b","message":{"role":"system","content":"","sections":{"cwd":"/v","date":""},"toolsRemoved":["read"]}}
{"type":"usage","id":"d","parentId":"c"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := f.Transcripts[0]
	if len(tr.System) != 2 || tr.System[0].Text != "Be careful." || tr.System[1].Text != "/v" || tr.System[1].Role != "system" {
		t.Errorf("%+v", tr.System)
	}
	if len(tr.Tools) != 1 || tr.Tools[0].Name != "bash" || tr.Tools[0].Schema != `{"type":"object"}` {
		t.Errorf("%+v", tr.Tools)
	}
	if len(f.Report.Warnings) > 0 {
		t.Error(warnings(f))
	}
}

// TestTakenOut: what was taken out of the case's session does not come back.
func TestTakenOut(t *testing.T) {
	f, err := transcript.Open(filepath.Join(corpus.Dir(t, "cases/agents/pi-1x"), "session.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := f.Transcripts[0]
	for _, m := range everything(tr) {
		text := m.Text()
		if r, ok := m.Result(); ok {
			text = r.Text()
		}
		if strings.Contains(text, "9911") || strings.Contains(text, "SECRET-ROW-77") {
			t.Errorf("%s", text)
		}
	}
	if tr.Thread.Len() != 5 || len(tr.System) != 3 || len(f.Report.Warnings) > 0 {
		t.Errorf("%d messages, %+v, %s", tr.Thread.Len(), tr.System, warnings(f))
	}
}
