package identify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// searches is a conversation of so many turns, in each of which the provider searched twice.
func searches(turns int) string {
	var list []string
	for n := range turns {
		list = append(list, fmt.Sprintf(`{"role":"user","content":"Look for %d."}`, n),
			fmt.Sprintf(`{"role":"assistant","content":[`+
				`{"type":"server_tool_use","id":"a%[1]d","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"a%[1]d","content":[]},`+
				`{"type":"server_tool_use","id":"b%[1]d","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"b%[1]d","content":[]},`+
				`{"type":"text","text":"Found %[1]d."}]}`, n))
	}
	return `{"model":"m","max_tokens":1,"messages":[` + strings.Join(list, ",") + `,{"role":"user","content":"On."}]}`
}

// TestFindWhole: a log holds some answers whole, from before answers were split, and others in pieces. A
// request is found to continue it, in whichever way the log has each answer.
func TestFindWhole(t *testing.T) {
	read := func(turns int) *Request {
		r, err := Read(anthropic.Codec{}, searches(turns), waiting)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, c := range []struct{ whole, pieces, request int }{
		{0, 1, 1}, {0, 2, 3}, {1, 0, 1}, {1, 0, 2}, {2, 0, 2}, {2, 1, 3}, {1, 2, 5},
	} {
		all := read(c.whole + c.pieces).Prompt.Messages
		all = all[:len(all)-1] // the log ends with an answer
		messages := append(hosted.Join(all[:4*c.whole]), all[4*c.whole:]...)
		for i, id := range chain(t, messages) {
			messages[i].ID = id
		}
		log, err := thread.New("log").Append(messages...)
		if err != nil {
			t.Fatal(err)
		}
		r := read(c.request)
		at, err := Find("log", r, Logs{Canceled: waiting, Load: func(id string) (*thread.Thread, error) {
			if id == "log" {
				return log, nil
			}
			return thread.New(id), nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		want := 2*c.whole + 4*(c.request-c.whole) + 1
		if at.Log != "log" || at.Logged != len(messages) || len(at.Request.IDs) != want || len(at.Request.Prompt.Messages) != want {
			t.Errorf("%+v: in %s, %d of %d messages are logged, of %d; %d are read, want %d", c, at.Log, at.Logged, len(messages), len(r.IDs), len(at.Request.IDs), want)
		}
		for i, id := range chain(t, at.Request.Prompt.Messages) {
			if at.Request.IDs[i] != id {
				t.Fatalf("%+v: message %d has not the id of its chain", c, i)
			}
		}
	}
}

// TestShownInPieces: lookups that a client has seen as one answer are found where that answer is split.
func TestShownInPieces(t *testing.T) {
	r, err := Read(anthropic.Codec{}, searches(1), waiting)
	if err != nil {
		t.Fatal(err)
	}
	lookups := []*thread.Message{{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: "Found 0."}}}}
	if n := matchesShown(lookups, r.Prompt.Messages[1:]); n != 3 {
		t.Errorf("they are %d messages, want 3", n)
	}
	if n := matchesShown(lookups, r.Prompt.Messages); n != 0 {
		t.Errorf("they are %d messages of the user", n)
	}
}
