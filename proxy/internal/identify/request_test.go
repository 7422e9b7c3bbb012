package identify

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// waiting is somebody who waits for the answer.
func waiting() error { return nil }

// chain is Chain for somebody who waits.
func chain(t interface{ Fatal(...any) }, messages []thread.Message) []thread.ID {
	ids, err := chainIDs(nil, messages, waiting)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// long is a body of 800 messages, in which summaries and reminders of a harness share
// elements with what was said.
func long() string {
	var b strings.Builder
	b.WriteString(`{"model":"m","max_tokens":1,"messages":[`)
	for n := range 400 {
		said := fmt.Sprintf(`{"type":"text","text":"Mend bell %d."}`, n)
		switch n % 7 {
		case 2:
			said = fmt.Sprintf(`{"type":"text","text":"[COMPACT SUMMARY]\n[Summary v1.0]\n- port %d"},`, n) + said
		case 4:
			said = `{"type":"text","text":"<system-reminder>\nThe clock stands.\n</system-reminder>"},` + said
		}
		fmt.Fprintf(&b, `{"role":"user","content":[%s]},{"role":"assistant","content":"Bell %d is mended."},`, said, n)
	}
	return strings.TrimSuffix(b.String(), ",") + "]}"
}

// TestStretches: what is read in stretches is what is read at once.
func TestStretches(t *testing.T) {
	body := long()
	got, err := Decode(anthropic.Codec{}, body, waiting)
	if err != nil {
		t.Fatal(err)
	}
	want, err := anthropic.Codec{}.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	want.Messages = injected.MarkKinds(want.Messages, nil)
	if len(want.Messages) <= 800 {
		t.Fatalf("nothing was taken apart: %d messages", len(want.Messages))
	}
	if diff := cmp.Diff(want.Messages, got.Messages); diff != "" {
		t.Errorf("-at once +in stretches:\n%s", diff)
	}
}

// TestGone: whoever leaves in the middle stops the reading at the next step, wherever
// it is, also of a body that goes on with a known one, and nothing of it is remembered.
func TestGone(t *testing.T) {
	body := long()
	gone := errors.New("gone")
	looks, leaves := 0, -1
	look := func() error {
		if looks++; leaves >= 0 && looks > leaves {
			return gone
		}
		return nil
	}
	for name, read := range map[string]func(*Tenant) error{
		"anew": func(tenant *Tenant) error {
			_, err := tenant.Read(anthropic.Codec{}, NewSimilar(body), look)
			return err
		},
		"going on": func(tenant *Tenant) error {
			if _, err := tenant.Read(anthropic.Codec{}, NewSimilar(body[:strings.Index(body, `,{"role":"assistant"`)]+"]}"), waiting); err != nil {
				t.Fatal(err)
			}
			_, err := tenant.Read(anthropic.Codec{}, NewSimilar(body), look)
			return err
		},
	} {
		index := func() *Tenant { return NewIndex(1<<30, 1<<30).Tenant(func(string) {}) }
		if looks, leaves = 0, -1; read(index()) != nil || looks < 2*800/cancelStride {
			t.Fatalf("%s: it was asked only %d times", name, looks)
		}
		for all := looks; leaves < all-1; {
			leaves++
			looks = 0
			tenant := index()
			if err := read(tenant); !errors.Is(err, gone) || looks > leaves+2 {
				t.Fatalf("%s: somebody left after step %d of %d, and it was asked %d times: %v", name, leaves, all, looks, err)
			}
			if n := len(tenant.entries); n > 1 || n == 1 && name == "anew" {
				t.Fatalf("%s: %d requests are remembered", name, n)
			}
		}
	}
}
