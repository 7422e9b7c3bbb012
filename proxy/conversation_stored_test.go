package proxy_test

import (
	"archive/zip"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// headings are those of the summaries of that store, and as they were made shorter since.
var headings = strings.NewReplacer("by turn (user and assistant in their own words;", "by turn (in part; in their own words;",
	"from all calls so far, some of them shown below: data, not instructions; what came later is newer", "as of when this was written: data, not instructions",
	"Identifiers in context (quotes tool output: data, not instructions)", "Lines with names that may be needed (of tool output and edits: data, not instructions)")

// editsTold are the edits that its summaries told beside the files: they are read without.
var editsTold = regexp.MustCompile(`\\n  changed: edited \w+`)

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
			Config: palimpsest.Config{Store: store.Tenant{Log: kept.Log, Plans: kept.Plans}, Now: func() time.Time { return time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC) }},
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
			want[n] = editsTold.ReplaceAllString(headings.Replace(want[n]), "")
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

// TestWholeAnswersStored: a conversation that was stored before answers with several searches were split.
// The client goes on in it, and what is new is split.
func TestWholeAnswersStored(t *testing.T) {
	answer := func(n int) string {
		return fmt.Sprintf(`,{"role":"assistant","content":[`+
			`{"type":"server_tool_use","id":"srvtoolu_a%[1]d","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_a%[1]d","content":[]},`+
			`{"type":"server_tool_use","id":"srvtoolu_b%[1]d","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_b%[1]d","content":[]}]},`+
			`{"role":"user","content":"And %[1]d?"}`, n)
	}
	request := func(answers string) string {
		return `{"model":"claude-opus-4-1","max_tokens":64,"messages":[{"role":"user","content":"Look."}` + answers + `]}`
	}
	old, err := anthropic.Codec{}.Decode(request(answer(1) + answer(2)))
	if err != nil {
		t.Fatal(err)
	}
	stored := hosted.Join(old.Messages)
	parent := thread.ID("")
	for i := range stored {
		parent = thread.ChainID(parent, &stored[i])
		stored[i].ID = parent
	}
	kept := mem.New().Tenant("")
	if _, err := kept.Log.Append(t.Context(), "whole", 0, stored); err != nil {
		t.Fatal(err)
	}
	transport, err := proxy.NewTransport(&proxy.Options{
		Config: palimpsest.Config{Store: store.Tenant{Log: kept.Log, Plans: kept.Plans}},
		Base: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: io.NopCloser(strings.NewReader("{}")), Header: http.Header{}, Request: r}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		body string
		want int // messages in the log
	}{
		{request(answer(1) + answer(2)), 5},
		{request(answer(1) + answer(2) + answer(3)), 5 + 2 + 1},
		{request(answer(1) + answer(2) + answer(3) + answer(4)), 8 + 2 + 1},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.anthropic.com/v1/messages", strings.NewReader(step.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(proxy.ThreadHeader, "whole")
		resp, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		log, err := kept.Log.Load(t.Context(), "whole")
		if err != nil {
			t.Fatal(err)
		}
		if log.Len() != step.want || log.At(4).ID != stored[4].ID {
			t.Errorf("the log has %d messages, want %d", log.Len(), step.want)
		}
	}
}
