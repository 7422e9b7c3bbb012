package exchange_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/leak"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// post sends one request to a server that answers with a handler.
func post(t *testing.T, handle http.HandlerFunc, c exchange.Config, read exchange.Read) error {
	t.Helper()
	s := httptest.NewServer(handle)
	defer s.Close()
	c.Provider, c.URL = "test", s.URL
	c.HTTP = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	c.Header = http.Header{"X-Key": {"secret-key"}}
	c.Retry = llm.Retry{Attempts: 1}
	x, err := exchange.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return x.Post(t.Context(), -1, "{}", read)
}

// An answer of exactly the limit is read, one of a byte more is not.
func TestLimit(t *testing.T) {
	for size, want := range map[int]bool{10: true, 11: false} {
		got := ""
		err := post(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("a", size)) },
			exchange.Config{Limit: 10}, func(r *exchange.Response) error {
				b, err := io.ReadAll(r.Body)
				got = string(b)
				return err
			})
		if (err == nil) != want || want && len(got) != size {
			t.Errorf("%d bytes: %q, %v", size, got, err)
		}
	}
}

// TestPackedAnswers: the limit holds without the compression, and an answer that is
// cut off or broken is an error. What nests without an end is no JSON object.
func TestPackedAnswers(t *testing.T) {
	pack := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, text)
		z.Close()
		return b.Bytes()
	}
	whole := pack(`{"answer":"` + strings.Repeat("words ", 1000) + `"}`)
	wrong := bytes.Clone(whole)
	wrong[len(wrong)-8]++
	deep := pack(`{"a":` + strings.Repeat("[", 6_000_000))
	for _, c := range []struct {
		name   string
		packed []byte
		want   string
	}{
		{"whole", whole, ""},
		{"too much", pack(strings.Repeat(" ", 20<<20)), "too large"},
		{"cut off", whole[:len(whole)-20], "before the answer was complete"},
		{"wrong sum", wrong, "checksum"},
		{"deep", deep, "not a JSON object"},
	} {
		err := post(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(c.packed)
		}, exchange.Config{Limit: 10 << 20}, func(r *exchange.Response) error {
			_, err := exchange.ReadObject("test", r)
			return err
		})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestRequestID(t *testing.T) {
	for _, test := range []struct{ header, value, body, want string }{
		{"Request-Id", "a", `{"request_id":"b"}`, "a"},
		{"X-Request-Id", "secret-key", ``, "[key]"},
		{"Apim-Request-Id", "c", ``, "c"},
		{"X-Other", "d", `{"request_id":"e"}`, "e"},
		{"X-Other", "d", `{"request_id":7}`, ""},
		{"X-Request-Id", strings.Repeat("f", 1000), ``, strings.Repeat("f", 200)},
	} {
		err := post(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(test.header, test.value)
			w.WriteHeader(400)
			io.WriteString(w, test.body)
		}, exchange.Config{}, nil)
		e, ok := err.(*llm.APIError)
		if !ok || e.RequestID != test.want {
			t.Errorf("%+v: %+v", test, err)
		}
	}
}

func TestCheckSchema(t *testing.T) {
	for _, test := range []struct {
		s    llm.Schema
		want bool
	}{
		{llm.Schema{Name: "a-B_9", JSON: `{"type":"object"}`}, true},
		{llm.Schema{Name: strings.Repeat("a", 64), JSON: `{"type":"object"}`}, true},
		{llm.Schema{Name: strings.Repeat("a", 65), JSON: `{"type":"object"}`}, false},
		{llm.Schema{JSON: `{"type":"object"}`}, false},
		{llm.Schema{Name: "é", JSON: `{"type":"object"}`}, false},
		{llm.Schema{Name: "a", JSON: `{"type":"object"} x`}, false},
		{llm.Schema{Name: "a", JSON: `true`}, false},
	} {
		if err := exchange.CheckOptions("test", &llm.Options{Schema: &test.s}); (err == nil) != test.want {
			t.Errorf("%+v: %v", test.s, err)
		}
	}
}
