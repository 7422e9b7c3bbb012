package proxy_test

import (
	"bytes"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

var codecs = map[string]wire.Codec{wire.Anthropic: anthropic.Codec{}, wire.Chat: openai.Chat{}, wire.Responses: openai.Responses{}, wire.Gemini: gemini.Codec{}}

var paths = map[string]string{
	wire.Anthropic: "/v1/messages", wire.Chat: "/v1/chat/completions", wire.Responses: "/v1/responses", wire.Gemini: "/v1beta/models/test-model:generateContent",
}

// recording is a real session as a client of one API would have sent it.
type recording struct {
	name, api string
	whole     []byte // the last request
	shut      int    // where its messages array ends
	asked     []asking
}

// asking is one request: the beginning of the last one, as an offset into it, or,
// where it is not, the request itself.
type asking struct {
	upTo int
	body []byte
}

// body is one request.
func (r *recording) body(i int) []byte {
	if a := r.asked[i]; a.body == nil {
		return append(append(make([]byte, 0, a.upTo+len(r.whole)-r.shut), r.whole[:a.upTo]...), r.whole[r.shut:]...)
	}
	return r.asked[i].body
}

// breaks is how often the client itself does not go on where its last request
// ended: contents of one role are merged, so that one that stands there grows.
func (r *recording) breaks() int {
	n := 0
	for i := 1; i < len(r.asked); i++ {
		if r.asked[i-1].body == nil {
			continue
		}
		last, next := elements(&proxytest.Request{API: r.api, Body: r.body(i - 1)}), elements(&proxytest.Request{API: r.api, Body: r.body(i)})
		if common(last, next) < len(last)-1 {
			n++
		}
	}
	return n
}

// record makes the requests of a transcript for an API, so many at most.
func record(t testing.TB, file, api string, most int) []*recording {
	t.Helper()
	f, err := transcript.Open(filepath.Join(corpus.Dir(t, "transcripts"), file), nil)
	if err != nil {
		t.Fatal(err)
	}
	var list []*recording
	for _, tr := range f.Transcripts {
		base := &prompt.Prompt{Model: "test-model", System: tr.System, Tools: tr.Tools, MaxOutput: 4000}
		if len(base.System) == 0 {
			base.System = []prompt.System{{Text: "You are a coding agent.", Role: "system"}}
		}
		if len(base.Tools) == 0 {
			base.Tools = toolsOf(tr.Thread)
		}
		if api == wire.Gemini {
			base.Model = ""
		}
		legal, _, err := render.Render(tr.Thread, nil, base, &render.Options{Profile: render.For(api)})
		if err != nil {
			t.Fatal(err)
		}
		if r := recorded(t, api, base, legal.Messages, most); r != nil {
			r.name = file + "/" + api
			list = append(list, r)
		}
	}
	return list
}

// recorded encodes every request of a session; nil where the model was never
// asked.
func recorded(t testing.TB, api string, base *prompt.Prompt, messages []thread.Message, most int) *recording {
	t.Helper()
	r := &recording{api: api}
	encode := func(n int) []byte {
		p := *base
		p.Messages = messages[:n]
		body, err := codecs[api].Encode(&p)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	var at []int
	for i, m := range messages {
		if i > 0 && m.Role == thread.Assistant && messages[i-1].Role != thread.Assistant && len(at) < most {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return nil
	}
	r.whole = encode(at[len(at)-1])
	array := gjson.GetBytes(r.whole, arrays[api])
	r.shut = array.Index + len(array.Raw) - 1
	tail := r.whole[r.shut:]
	for _, n := range at {
		body := encode(n)
		a := asking{upTo: len(body) - len(tail)}
		if !bytes.HasSuffix(body, tail) || !bytes.HasPrefix(r.whole, body[:a.upTo]) {
			a.body = body
		}
		r.asked = append(r.asked, a)
	}
	return r
}

// toolsOf declares the tools that a session called, where it does not say.
func toolsOf(th *thread.Thread) []prompt.Tool {
	seen := map[string]bool{}
	var tools []prompt.Tool
	for _, m := range th.All() {
		for _, c := range m.Calls() {
			if !seen[c.Name] {
				seen[c.Name] = true
				tools = append(tools, prompt.Tool{Name: c.Name, Description: "A tool.", Schema: `{"type":"object"}`})
			}
		}
	}
	return tools
}

func request(t testing.TB, url string, body []byte) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}
