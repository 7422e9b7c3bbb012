package transcript

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// The four request APIs are read alike. A value of the file, which is a line or
// the whole document, is one of: a request body; an object that holds one in
// "body"; an object with the list of messages in "messages" or "traj"; the list
// alone. Or every line is one message of a single conversation.

// provider reads the pieces of one API.
type provider struct {
	codec wire.Codec
	// list is the name of the body's list of messages.
	list string
	// messages reads such a list where it stands alone.
	messages func(array string) ([]thread.Message, []prompt.System, error)
}

var providers = map[Format]provider{
	OpenAIChat: {openai.Chat{}, "messages", openai.DecodeChatMessages},
	Anthropic:  {anthropic.Codec{}, "messages", anthropicMessages},
	Responses:  {openai.Responses{}, "input", openai.DecodeItems},
	Gemini:     {gemini.Codec{}, "contents", geminiContents},
}

func geminiContents(array string) ([]thread.Message, []prompt.System, error) {
	m, err := gemini.DecodeContents(array)
	return m, nil, err
}

// anthropicMessages reads a list as the body that holds it.
func anthropicMessages(array string) ([]thread.Message, []prompt.System, error) {
	p, err := anthropic.Codec{}.Decode([]byte(`{"messages":` + array + `}`))
	if err != nil {
		return nil, nil, err
	}
	return p.Messages, p.System, nil
}

// value is one line of a file, or the document that it holds.
type value struct {
	gjson.Result
	line int
	name string // of the conversation in it
}

// eachValue calls read with every value of the file.
func (j *importJob) eachValue(read func(value) ([]Transcript, error)) ([]Transcript, error) {
	var all []Transcript
	for n := 1; ; n++ {
		line, number, err := j.in.next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		v := value{Result: gjson.ParseBytes(line), line: number, name: j.name}
		if n > 1 || j.in.hasMore() {
			v.name += "/" + strconv.Itoa(n)
		}
		found, err := read(v)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
}

// hasMore reports whether another line follows.
func (in *input) hasMore() bool {
	if len(in.pending) > 0 {
		return true
	}
	line, number, err := in.readChecked()
	if err == nil {
		in.unread(line, number)
		return true
	}
	if err != io.EOF {
		in.failed = err
		return true
	}
	return false
}

// readRequests reads the formats of the providers' APIs.
func readRequests(j *importJob) ([]Transcript, error) {
	api := providers[j.format]
	var lines []string // messages that stand one on a line
	found, err := j.eachValue(func(v value) ([]Transcript, error) {
		if v.IsObject() && !v.Get(api.list).Exists() && !v.Get("body").Exists() && !v.Get("traj").Exists() &&
			(v.Get("role").Exists() || j.format == Responses && isResponseItem(v.Get("type").Str)) {
			lines = append(lines, v.Raw)
			return nil, nil
		}
		t, ok, err := j.request(api, v)
		if err != nil || !ok {
			return nil, err
		}
		return []Transcript{t}, nil
	})
	if err != nil || len(lines) == 0 {
		return found, err
	}
	t, err := j.messages(api, value{line: 1, name: j.name}, "", "["+strings.Join(lines, ",")+"]")
	if err != nil {
		return nil, err
	}
	return append(found, t), nil
}

// request reads one value. ok is false when it holds no conversation.
func (j *importJob) request(api provider, v value) (t Transcript, ok bool, err error) {
	doc, path := v.Result, ""
	if inner := v.Get("body"); inner.Exists() {
		doc, path = unwrap(inner), "body"
	}
	switch {
	case doc.IsArray():
		t, err = j.messages(api, v, path, doc.Raw)
	case doc.Get("traj").IsArray():
		t, err = j.messages(api, v, "traj", doc.Get("traj").Raw)
	case doc.Get(api.list).Exists() && (doc.Get("model").Exists() || doc.Get("tools").Exists() || path != "" || j.format != OpenAIChat):
		t, err = j.body(api, v, path, doc)
	case doc.Get(api.list).IsArray():
		t, err = j.messages(api, v, api.list, doc.Get(api.list).Raw)
	default:
		j.report.unknown(describeValue(v.Result))
		j.report.warn(v.line, "holds no conversation: %s", describeValue(v.Result))
		return t, false, nil
	}
	t.Title = firstName(v.Result, "cassette", "title", "sample", "task_id")
	return t, err == nil, err
}

// body reads a request body.
func (j *importJob) body(api provider, v value, path string, doc gjson.Result) (Transcript, error) {
	p, err := api.codec.Decode([]byte(doc.Raw))
	if err != nil {
		return Transcript{}, &SyntaxError{Line: v.line, Path: path, Err: err}
	}
	b := newBuilder(v.name, j.report)
	b.keepEmpty = true
	b.Model, b.System, b.Tools = p.Model, p.System, p.Tools
	b.add(v.line, time.Time{}, thread.Plain, p.Messages...)
	b.Prompt = p
	return b.build()
}

// messages reads a list of messages that stands alone.
func (j *importJob) messages(api provider, v value, path, array string) (Transcript, error) {
	messages, system, err := api.messages(array)
	if err != nil {
		return Transcript{}, &SyntaxError{Line: v.line, Path: path, Err: fmt.Errorf("as %s: %w", j.format, err)}
	}
	b := newBuilder(v.name, j.report)
	b.Model = v.Get("model").String()
	b.System = system
	b.add(v.line, time.Time{}, thread.Plain, messages...)
	return b.build()
}
