package sse_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/internal/sse"
)

var tests = []struct {
	name, stream string
	want         []sse.Event
}{
	{"data", "data: a\n\n", []sse.Event{{Data: "a"}}},
	{"named", "event: message\ndata: {\"a\":1}\n\n", []sse.Event{{Name: "message", Data: `{"a":1}`}}},
	{"several", "data: a\n\nevent: b\ndata: c\n\n", []sse.Event{{Data: "a"}, {Name: "b", Data: "c"}}},
	{"lines", "data: a\ndata:\ndata:  b\n\n", []sse.Event{{Data: "a\n\n b"}}},
	{"no space", "data:a\n\n", []sse.Event{{Data: "a"}}},
	{"comments and other fields", ": hello\nid: 1\nretry: 5\ndata: a\nodd\n\n", []sse.Event{{ID: "1", Data: "a"}}},
	{"comment alone", ": hello\n\n", []sse.Event{{}}},
	{"name without data", "event: x\n\ndata: a\n\n", []sse.Event{{Name: "x"}, {Data: "a"}}},
	{"empty data", "data\n\n", []sse.Event{{}}},
	{"CRLF", "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []sse.Event{{Name: "x", Data: "a"}, {Data: "b"}}},
	{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []sse.Event{{Data: "a"}}},
	{"cut in the line", "data: a\n\ndata: b", []sse.Event{{Data: "a"}, {Data: "b"}}},
	{"cut behind the line", "data: b\n", []sse.Event{{Data: "b"}}},
	{"cut before data", "event: b\n", []sse.Event{{Name: "b"}}},
	{"nothing", "", nil},
}

// read returns the events of a stream without their bytes, and these together.
func read(r *sse.Reader) (list []sse.Event, raw string, err error) {
	for {
		e, err := r.Next()
		raw += string(e.Raw)
		if len(e.Raw) > 0 && !errors.Is(err, sse.ErrTooLarge) {
			e.Raw = nil
			list = append(list, e)
		}
		if err != nil {
			return list, raw, err
		}
	}
}

func TestReader(t *testing.T) {
	for _, test := range tests {
		for _, r := range []io.Reader{strings.NewReader(test.stream), iotest.OneByteReader(strings.NewReader(test.stream))} {
			got, raw, err := read(sse.NewReader(r, 0))
			if err != io.EOF || raw != test.stream {
				t.Errorf("%s: %v, %q", test.name, err, raw)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.name, diff)
			}
		}
	}
}

func TestReaderLimit(t *testing.T) {
	for _, stream := range []string{"data: " + strings.Repeat("a", 100), strings.Repeat("data: aaaaaaa\n", 10), strings.Repeat("b: aaaaaaaaaa\n", 10)} {
		r := sse.NewReader(strings.NewReader("data: ok\n\n"+stream+"\n\n"), 64)
		got, raw, err := read(r)
		if len(got) != 1 || !errors.Is(err, sse.ErrTooLarge) {
			t.Errorf("%.20q: %v, %v, want one event and ErrTooLarge", stream, got, err)
		}
		if rest, err := io.ReadAll(r.Rest()); raw+string(rest) != "data: ok\n\n"+stream+"\n\n" {
			t.Errorf("%.20q: came back as %q and %q, %v", stream, raw, rest, err)
		}
	}
	// The limit is for one event, not for the stream.
	if got, _, err := read(sse.NewReader(strings.NewReader(strings.Repeat("data: a\n\n", 100)), 64)); len(got) != 100 || err != io.EOF {
		t.Errorf("%d events, %v", len(got), err)
	}
}

func TestReaderBroken(t *testing.T) {
	broken := errors.New("broken")
	got, _, err := read(sse.NewReader(io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken)), 0))
	if diff := cmp.Diff([]sse.Event{{Data: "a"}, {Data: "b"}}, got); diff != "" || err != broken {
		t.Errorf("%v %s", err, diff)
	}
}

func FuzzReader(f *testing.F) {
	for _, test := range tests {
		f.Add(test.stream)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		whole, raw, err := read(sse.NewReader(strings.NewReader(stream), 1<<10))
		bytewise, _, err2 := read(sse.NewReader(iotest.OneByteReader(strings.NewReader(stream)), 1<<10))
		if diff := cmp.Diff(whole, bytewise); diff != "" || (err == io.EOF) != (err2 == io.EOF) {
			t.Fatalf("%v, %v: %s", err, err2, diff)
		}
		if err == io.EOF && raw != stream {
			t.Fatalf("%q was read as %q", stream, raw)
		}
		// What was read can be written and read again.
		var b strings.Builder
		for _, e := range whole {
			b.Write(e.WithData(strings.ReplaceAll(e.Data, "\n", "\ndata: ")))
		}
		again, _, _ := read(sse.NewReader(strings.NewReader(b.String()), 0))
		if len(again) != len(whole) {
			t.Fatalf("%d events, then %d", len(whole), len(again))
		}
		for i := range again {
			if again[i].Data != whole[i].Data || again[i].Name != whole[i].Name {
				t.Fatalf("%+v, then %+v", whole[i], again[i])
			}
		}
	})
}

// TestReady: an event that has come whole is told, one that has not is not waited for.
func TestReady(t *testing.T) {
	for _, c := range []struct {
		behind       string // the first event
		ready, empty bool
	}{
		{"", false, false}, {"data: 2\n", false, false}, {"data: 2\n\n", true, false}, {"\ndata: 2\n", true, true},
	} {
		in, out := io.Pipe()
		r := sse.NewReader(in, 0)
		if r.HasEvent() || r.HasBlankLine() {
			t.Error("there is something before anything has come")
		}
		go func() { _, _ = io.WriteString(out, "data: 1\n\n"+c.behind) }() // it is read whether it was written
		if e, err := r.Next(); err != nil || e.Data != "1" {
			t.Fatal(e, err)
		}
		if r.HasEvent() != c.ready || r.HasBlankLine() != c.empty {
			t.Errorf("%q: ready %v, empty %v", c.behind, r.HasEvent(), r.HasBlankLine())
		}
	}
}
