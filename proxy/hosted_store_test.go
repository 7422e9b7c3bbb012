package proxy_test

import (
	"archive/zip"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// TestHostedStore: a store that was written before calls of the provider were read as such, by a client
// of each API that had sent each type of item. The same request is the same conversation, under the
// same plan, and its messages go out as the same bytes.
func TestHostedStore(t *testing.T) {
	dir := t.TempDir()
	archive, err := zip.OpenReader("testdata/hosted_units.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	files := map[string]string{}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(data)
		if err := os.WriteFile(filepath.Join(dir, f.Name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "hosted.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	kept := db.Tenant("")
	for name, url := range map[string]string{
		"anthropic": "https://api.anthropic.com/v1/messages",
		"responses": "https://api.openai.com/v1/responses",
		"chat":      "https://api.openai.com/v1/chat/completions",
		"gemini":    "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent",
	} {
		before, err := kept.Log.Load(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		_, version, err := kept.Plans.Current(t.Context(), name)
		if err != nil || version != 1 {
			t.Fatalf("%s: plan %d, %v", name, version, err)
		}
		sent := ""
		transport, err := proxy.NewTransport(&proxy.Options{
			Window: 9000,
			Config: palimpsest.Config{Log: kept.Log, Plans: kept.Plans, Now: func() time.Time { return time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC) }},
			Base: roundTrip(func(r *http.Request) (*http.Response, error) {
				data, err := io.ReadAll(r.Body)
				sent = string(data)
				return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: io.NopCloser(strings.NewReader("{}")), Header: http.Header{}, Request: r}, err
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(files[name+".request.json"]))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(proxy.ThreadHeader, name)
		resp, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		got, want := listOf(sent), listOf(files[name+".sent.json"])
		for n := range want { // the output of a program was taken from it, and given to the user
			if strings.Contains(want[n], "[Result without its call]") {
				want[n] = `{"type":"program_output","id":"po_63","call_id":"call_63","status":"completed","result":"wombat1063x"}`
			}
		}
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: sent\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		after, err := kept.Log.Load(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if before.Last() != after.Last() || before.Len() != after.Len() {
			t.Errorf("%s: the log had %d messages to %s, and has %d to %s", name, before.Len(), before.Last(), after.Len(), after.Last())
		}
		if _, now, err := kept.Plans.Current(t.Context(), name); err != nil || now != version {
			t.Errorf("%s: plan %d, was %d: %v", name, now, version, err)
		}
	}
}

// listOf are the elements of a request's list, without the note on removed parts, which came later.
func listOf(body string) (list []string) {
	for _, name := range []string{"messages", "input", "contents"} {
		for _, v := range gjson.Get(body, name).Array() {
			if !strings.Contains(v.Raw, render.RemovedNote) {
				list = append(list, v.Raw)
			}
		}
	}
	return list
}

// roundTrip is a function as an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
