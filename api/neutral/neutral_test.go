package neutral_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/property"
	"github.com/palimpsest-ai/palimpsest/internal/threadgen"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// through writes a message in neutral form and reads it again.
func through(m *thread.Message) (thread.Message, error) {
	data, err := json.Marshal(neutral.MessageOf(m))
	if err != nil {
		return thread.Message{}, err
	}
	var form neutral.Message
	if err := json.Unmarshal(data, &form); err != nil {
		return thread.Message{}, err
	}
	return form.Value("message")
}

// same reports how a message differs from what came back: it has the same id, and
// all that takes no part in the id.
func same(t testing.TB, m *thread.Message) {
	t.Helper()
	got, err := through(m)
	if err != nil {
		t.Fatalf("%+v: %v", m, err)
	}
	if thread.ChainID("", &got) != thread.ChainID("", m) {
		t.Fatalf("another message came back:\n%s", cmp.Diff(neutral.MessageOf(m), neutral.MessageOf(&got)))
	}
	again, want := neutral.MessageOf(&got), neutral.MessageOf(m)
	again.Turn = want.Turn // the log sets it
	if diff := cmp.Diff(want, again); diff != "" {
		t.Fatalf("something was lost (-want +got):\n%s", diff)
	}
}

// TestThereAndBack: the neutral form says all that a message holds, so that the
// same history has the same ids whichever way it came.
func TestThereAndBack(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		th := threadgen.Thread().Draw(rt, "thread")
		for _, m := range th.All() {
			got, err := through(m)
			if err != nil {
				rt.Fatalf("%+v: %v", m, err)
			}
			if thread.ChainID("", &got) != thread.ChainID("", m) {
				rt.Fatalf("another message came back:\n%s", cmp.Diff(neutral.MessageOf(m), neutral.MessageOf(&got)))
			}
		}
	})
}

// TestRealConversations: the same for what real agents said.
func TestRealConversations(t *testing.T) {
	messages := 0
	err := filepath.WalkDir(corpus.Dir(t, "transcripts"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || messages > 5_000 {
			return err
		}
		f, err := transcript.Open(path, nil)
		if err != nil {
			return nil // the importers have tests of their own
		}
		for i := range f.Transcripts {
			for _, m := range f.Transcripts[i].Thread.All() {
				if len(m.Parts) == 0 || hollow(m) {
					continue
				}
				messages++
				same(t, m)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if messages < 1000 {
		t.Errorf("only %d messages were read", messages)
	}
	t.Logf("%d messages", messages)
}

// hollow reports whether a message has a picture of which the transcript kept
// nothing, which the form refuses.
func hollow(m *thread.Message) bool {
	for _, p := range m.Parts {
		if p, ok := p.(thread.Media); ok && p.Data+p.URL+p.FileID+p.Text == "" {
			return true
		}
	}
	return false
}

// FuzzMessage: whatever is sent, it is read or refused with the path of the field,
// and what was read can be written.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`{"role":"user","parts":[{"type":"text","text":"x"}]}`,
		`{"role":"assistant","parts":[{"type":"tool_call","call_id":"c","tool":"t","arguments":"{"}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","call_id":"c","structured":{"a":1},"content":[{"type":"media","media":"image","data":"x"}]}]}`,
		`{"role":"assistant","parts":[{"type":"opaque","api":"gemini","raw":"{}"},{"type":"reasoning","signature":"s"}]}`,
		`{"role":"tool","parts":[null]}`, `{}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var form neutral.Message
		if json.Unmarshal([]byte(text), &form) != nil {
			return
		}
		m, err := form.Value("m")
		if err != nil {
			var wrong *neutral.FieldError
			if !errors.As(err, &wrong) || !strings.HasPrefix(wrong.Path, "m") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		same(t, &m)
	})
}
