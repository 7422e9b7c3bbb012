package native_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/native"
)

// TestThread: what a request of a message thread says, and the whole request that is made of it.
func TestThread(t *testing.T) {
	for _, c := range []struct {
		body, previous string
		ok             bool
	}{
		{`{"messages":[]}`, "", false},
		{`{"thread":null,"messages":[]}`, "", false},
		{`{"thread":"create","messages":[]}`, "", false},
		{`{"thread":{"type":"fork"},"messages":[]}`, "", false},
		{`{"thread":{"type":"continue"},"messages":[]}`, "", false},
		{`{"thread":{"type":"create"},"messages":[]}`, "", true},
		{`{"thread":{"type":"continue","previous_message_id":"msg_1"},"messages":[]}`, "msg_1", true},
	} {
		m, err := native.ReadMessages(c.body)
		if err != nil {
			t.Fatal(err)
		}
		if previous, ok := m.Thread(); previous != c.previous || ok != c.ok {
			t.Errorf("%s: %q %t", c.body, previous, ok)
		}
	}
	begins, err := native.ReadMessages(`{"model":"m", "system": "Be  brief." ,"thread":{"type":"create"},"tools":[{"name":"t"}],"messages":[1]}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := begins.ThreadMembers(), `{"system":"Be  brief.","tools":[{"name":"t"}]}`; got != want {
		t.Errorf("around: %s", got)
	}
	goes, err := native.ReadMessages(`{"model":"m","thread":{"type":"continue","previous_message_id":"msg_1"},"messages":[2],"max_tokens":9}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := goes.WithHistory(begins.ThreadMembers(), []string{"1", "2"}), `{"model":"m","messages":[1,2],"max_tokens":9,"system":"Be  brief.","tools":[{"name":"t"}]}`; got != want {
		t.Errorf("whole: %s", got)
	}
	own, err := native.ReadMessages(`{"system":"of now","thread":{},"messages":[2]}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := own.WithHistory(begins.ThreadMembers(), []string{"2"}), `{"system":"of now","messages":[2],"tools":[{"name":"t"}]}`; got != want {
		t.Errorf("with a system of its own: %s", got)
	}
}

// TestUnmarked: marks go, also those in results, and the last one tells its time.
func TestUnmarked(t *testing.T) {
	for _, c := range []struct{ message, want, marked string }{
		{`{"role":"user","content":"a \"cache_control\" in a text"}`, `{"role":"user","content":"a \"cache_control\" in a text"}`, "none"},
		{`{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}`, `{"role":"user","content":[{"type":"text","text":"a"}]}`, ""},
		{`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a"}]}]}`, "1h"},
		{`{"role":"user","content":[{"type":"text","text":"a","cache_control":null},{"type":"tool_use","id":"t","name":"n","input":{"cache_control":1}}]}`,
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"n","input":{"cache_control":1}}]}`, "none"},
	} {
		m, err := native.ReadMessages(`{"messages":[` + c.message + `]}`)
		if err != nil {
			t.Fatal(err)
		}
		got, ttl := m.WithoutCacheMarks()
		marked := "none"
		if ttl != nil {
			marked = *ttl
		}
		if len(got) != 1 || got[0] != c.want || marked != c.marked {
			t.Errorf("%s: %s %s", c.message, got, marked)
		}
	}
}
