package identify

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// TestDetach: what goes into the log is the same, and holds nothing of the request.
func TestDetach(t *testing.T) {
	for _, codec := range []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}} {
		t.Run(codec.API(), func(t *testing.T) {
			looked := 0
			for name, body := range wiretest.Corpus(t, codec.API()) {
				p, err := codec.Decode(string(body))
				if err != nil {
					continue
				}
				own := Detach(p.Messages, make([]thread.ID, len(p.Messages)))
				if diff := cmp.Diff(p.Messages, own); diff != "" {
					t.Fatalf("%s (-read +kept):\n%s", name, diff)
				}
				start := uintptr(unsafe.Pointer(unsafe.StringData(p.Source.Body)))
				end := start + uintptr(len(p.Source.Body))
				each(reflect.ValueOf(own), func(s string) {
					looked++
					if at := uintptr(unsafe.Pointer(unsafe.StringData(s))); s != "" && at >= start && at < end {
						t.Fatalf("%s: %.60q is a part of the request", name, s)
					}
				})
			}
			if looked < 500 {
				t.Errorf("only %d texts were looked at", looked)
			}
		})
	}
}

// TestDetachOnce: a text is kept once, however many parts hold it.
func TestDetachOnce(t *testing.T) {
	text := strings.Repeat("plain words ", 1000)
	p, err := anthropic.Codec{}.Decode(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"` + text + `"}]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	m := Detach(p.Messages, []thread.ID{"a"})[0]
	kept := m.Parts[0].(thread.Text)
	for _, s := range []string{kept.Text, kept.Raw} {
		if at := strings.Index(m.Frame.Raw(), s); at < 0 || unsafe.StringData(s) != unsafe.StringData(m.Frame.Raw()[at:]) {
			t.Errorf("%.30q... is kept twice", s)
		}
	}
}

// each calls f for every string in a value.
func each(v reflect.Value, f func(string)) {
	switch v.Kind() {
	case reflect.String:
		f(v.String())
	case reflect.Slice:
		for i := range v.Len() {
			each(v.Index(i), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			each(v.Field(i), f)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			each(v.Elem(), f)
		}
	}
}

// TestNews: messages that are most of a request are kept with its text, a few are kept apart from it.
func TestNews(t *testing.T) {
	codec := openai.Chat{}
	body := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("first ", 100) + `"},{"role":"user","content":"` + strings.Repeat("other ", 30) + `"}]}`
	p, err := codec.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	r := &Request{Body: NewBody(body), Prompt: p, IDs: []thread.ID{"a", "b"}}
	for from, shares := range []bool{true, false} {
		news := r.News(from, "")
		text := news[0].Text()
		within := unsafe.StringData(text) == unsafe.StringData(body[strings.Index(body, text):])
		if len(news) != 2-from || news[0].ID != r.IDs[from] || within != shares || p.Messages[from].ID != "" {
			t.Errorf("from %d: %d messages, the first with id %q, a part of the request: %v", from, len(news), news[0].ID, within)
		}
	}
}
