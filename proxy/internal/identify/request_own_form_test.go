package identify

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// TestOwnSummariesAreKnown: a request that goes on from a prompt of ours has its
// summary as a message of its own, and is sent on as it came. F10
func TestOwnSummariesAreKnown(t *testing.T) {
	const body = `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"[COMPACT SUMMARY]\n[Summary v1.0]\n- port 8080"}, {"type":"text","text":"Mend the bell."}]}]}`
	d := anthropic.Codec{}
	k, err := Read(d, body, waiting)
	if err != nil {
		t.Fatal(err)
	}
	p := k.Prompt
	if len(p.Messages) != 2 || p.Messages[0].Kind != thread.Recap || p.Messages[1].Kind != thread.Plain || p.Messages[1].Text() != "Mend the bell." {
		t.Fatalf("%+v", p.Messages)
	}
	if out, err := d.Encode(p); err != nil || string(out) != body {
		t.Errorf("it is sent on as %s, %v", out, err)
	}
	longer := body[:len(body)-2] + `,{"role":"assistant","content":"Done."},{"role":"user","content":"Thanks."}]}`
	next := next(k, d, longer)
	if next == nil || len(next.Prompt.Messages) != 4 {
		t.Fatalf("the next request is read as %+v", next)
	}
	if out, err := d.Encode(next.Prompt); err != nil || string(out) != longer {
		t.Errorf("the next request is sent on as %s, %v", out, err)
	}
}
