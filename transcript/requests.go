package transcript

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
)

// The request formats of the four APIs are read alike. A value of the file, which is a
// line or the whole document, is a request body, an object with one in "body", an object
// with a list of messages in "messages" or "traj", or the list alone. Or each line is one
// message of a single conversation.

func geminiContents(array string) ([]thread.Message, []prompt.System, error) {
	m, err := gemini.DecodeContents(array)
	return m, nil, err
}

// anthropicMessages reads a list through a body that holds it.
func anthropicMessages(array string) ([]thread.Message, []prompt.System, error) {
	p, err := anthropic.Codec{}.Decode(`{"messages":` + array + `}`)
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

// eachConversation reads every value of the file as a conversation.
func (j *importJob) eachConversation(read func(*builder, value)) ([]Transcript, error) {
	return j.eachValue(func(v value) ([]Transcript, error) {
		b := j.newBuilder(v)
		read(b, v)
		return b.transcripts()
	})
}

// readRequests reads the formats of the providers' APIs.
func readRequests(j *importJob) ([]Transcript, error) {
	var lines []string // messages that stand one on a line
	found, err := j.eachValue(func(v value) ([]Transcript, error) {
		if v.IsObject() && !v.Get(j.list).Exists() && !v.Get("body").Exists() && !v.Get("traj").Exists() &&
			(v.Get("role").Exists() || j.Format == responsesFormat && isResponseItem(v.Get("type").Str)) {
			lines = append(lines, v.Raw)
			return nil, nil
		}
		t, ok, err := j.request(v)
		if err != nil || !ok {
			return nil, err
		}
		return []Transcript{t}, nil
	})
	if err != nil || len(lines) == 0 {
		return found, err
	}
	t, err := j.messages(value{line: 1, name: j.name}, "", "["+strings.Join(lines, ",")+"]")
	if err != nil {
		return nil, err
	}
	return append(found, t), nil
}

// request reads one value. ok is false when it holds no conversation.
func (j *importJob) request(v value) (t Transcript, ok bool, err error) {
	doc, path := v.Result, ""
	if inner := v.Get("body"); inner.Exists() {
		doc, path = unwrap(inner), "body"
	}
	switch {
	case doc.IsArray():
		t, err = j.messages(v, path, doc.Raw)
	case doc.Get("traj").IsArray():
		t, err = j.messages(v, "traj", doc.Get("traj").Raw)
	case doc.Get(j.list).Exists() && (doc.Get("model").Exists() || doc.Get("tools").Exists() || path != "" || j.Format != chatFormat):
		t, err = j.body(v, path, doc)
	case doc.Get(j.list).IsArray():
		t, err = j.messages(v, j.list, doc.Get(j.list).Raw)
	default:
		j.report.unknown(describeValue(v.Result))
		j.report.warn(v.line, "holds no conversation: %s", describeValue(v.Result))
		return t, false, nil
	}
	t.Title = firstName(v.Result, "cassette", "title", "sample", "task_id")
	return t, err == nil, err
}

func (j *importJob) body(v value, path string, doc gjson.Result) (Transcript, error) {
	p, err := j.codec.Decode(doc.Raw)
	if err != nil {
		return Transcript{}, &SyntaxError{Line: v.line, Path: path, Err: err}
	}
	b := j.newBuilder(v)
	b.keepEmpty = true
	b.Model, b.System, b.Tools, b.Prompt = p.Model, p.System, p.Tools, p
	b.add(thread.Plain, p.Messages...)
	return b.build()
}

// messages reads a list of messages that stands alone.
func (j *importJob) messages(v value, path, array string) (Transcript, error) {
	messages, system, err := j.decode(array)
	if err != nil {
		return Transcript{}, &SyntaxError{Line: v.line, Path: path, Err: fmt.Errorf("as %s: %w", j.Format, err)}
	}
	b := j.newBuilder(v)
	b.Model, b.System = v.Get("model").String(), system
	b.add(thread.Plain, messages...)
	return b.build()
}
