package transcript

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// readGeminiCLI reads sessions of Gemini CLI. Earlier versions wrote one object with all
// messages. Now each line is a change: the session's own data, a message or a later state of it,
// a $set, which may list all messages that the client sends, or a $rewindTo a message.
func readGeminiCLI(j *importJob) (all []Transcript, err error) {
	s := newGeminiSession(j, j.name)
	end := func() {
		found, failed := s.transcripts()
		all, err = append(all, found...), cmp.Or(err, failed)
	}
	values := 0
	failed := j.lines(func(v gjson.Result, number int) {
		if values++; values > 1 && v.Get("messages").IsArray() { // another whole session
			end()
			s = newGeminiSession(j, j.name+"/"+strconv.Itoa(values))
		}
		s.read(v, number)
	})
	end()
	return all, cmp.Or(failed, err)
}

// geminiSession is a session as its lines leave it.
type geminiSession struct {
	job         *importJob
	name, title string
	relayed     bool // another agent started it
	course[*geminiMessage]
	byID   map[string]*geminiMessage   // by the ids of copies too
	saying map[string][]*geminiMessage // by what they say, in the order of the conversation
}

// geminiMessage is a message in its last state.
type geminiMessage struct {
	gjson.Result
	line  int
	at    int      // in the conversation; -1 if it is not there
	says  []string // its keys in geminiSession.saying
	recap bool     // the client compacted the history to it
}

func newGeminiSession(j *importJob, name string) *geminiSession {
	return &geminiSession{job: j, name: name, byID: map[string]*geminiMessage{}, saying: map[string][]*geminiMessage{}}
}

func (s *geminiSession) read(v gjson.Result, number int) {
	id, set, back := v.Get("id"), v.Get("$set"), v.Get("$rewindTo")
	switch {
	case back.Type == gjson.String:
		s.job.report.skip("$rewindTo")
		at := 0 // where the client does not find the message, it takes all back
		if m := s.held(back.Str); m != nil {
			at = m.at
		}
		s.leave(at)
	case id.Type == gjson.String:
		s.record(v, number)
	case set.IsObject():
		s.job.report.skip("$set")
		s.describe(set)
		if messages := set.Get("messages"); messages.IsArray() {
			s.history(messages, number)
		}
	case v.Get("messages").IsArray():
		s.describe(v)
		for m := range rawjson.Items(v.Get("messages")) {
			s.record(m, number)
		}
	case v.Get("sessionId").Exists():
		s.job.report.skip("session")
		s.describe(v)
	default:
		s.job.report.unknown("line without a message")
	}
}

func (s *geminiSession) describe(v gjson.Result) {
	s.name, s.title = cmp.Or(v.Get("sessionId").Str, s.name), cmp.Or(v.Get("summary").String(), s.title)
	s.relayed = s.relayed || isSubagent("gemini-cli", v)
}

// record reads a message, or a later state of one.
func (s *geminiSession) record(v gjson.Result, number int) {
	m := s.held(v.Get("id").Str)
	if m == nil {
		s.push(newGeminiMessage(v, number))
		return
	}
	s.job.report.skip("earlier state of a message")
	if m.Result = v; m.at == len(s.now)-1 { // nearly always
		s.pop()
		m.says = geminiSays(v)
		s.push(m)
	}
}

func newGeminiMessage(v gjson.Result, number int) *geminiMessage {
	return &geminiMessage{Result: v, line: number, says: geminiSays(v)}
}

// held is the message of the conversation with that id; nil if there is none.
func (s *geminiSession) held(id string) *geminiMessage {
	if m := s.byID[id]; id != "" && m != nil && m.at >= 0 {
		return m
	}
	return nil
}

func (s *geminiSession) push(m *geminiMessage) {
	m.at = len(s.now)
	s.now = append(s.now, m)
	s.byID[m.Get("id").Str] = m
	for _, said := range m.says {
		s.saying[said] = append(s.saying[said], m)
	}
}

func (s *geminiSession) pop() {
	last := len(s.now) - 1
	s.forget(s.now[last])
	s.now = s.now[:last]
}

// forget takes a message out of the indexes; those behind it are out already.
func (s *geminiSession) forget(m *geminiMessage) {
	m.at = -1
	for _, said := range m.says {
		s.saying[said] = s.saying[said][:len(s.saying[said])-1]
	}
}

// leave takes back what stands in the conversation from that place on.
func (s *geminiSession) leave(at int) {
	kept := len(s.left)
	s.goBack(at)
	for _, branch := range s.left[kept:] {
		for _, m := range slices.Backward(branch) {
			s.forget(m)
		}
	}
}

// history reads the list of all messages that the client sends from there on. What the
// conversation holds already stays as it is, since results may be shortened in the list. All of
// the list may be copies under new ids, which the client may have written as messages just
// before. What stands behind the last message of the list was taken back, unless the client has
// compacted: then the list begins with a summary, and the full history stays before it.
func (s *geminiSession) history(list gjson.Result, number int) {
	listed := map[string]bool{}
	for v := range rawjson.Items(list) {
		listed[v.Get("id").Str] = true
	}
	old := len(s.now) // from here on are copies
	for old > 0 && listed[s.now[old-1].Get("id").Str] {
		old--
	}
	copied := old > 0
	for id := range listed {
		if m := s.held(id); m != nil && m.at < old {
			copied = false
		}
	}
	if !copied {
		old = len(s.now)
	}
	end, compacted := 0, false
	var added []*geminiMessage
	said := map[string]int{} // how often the list has said so
	for v := range rawjson.Items(list) {
		id := v.Get("id").Str
		if !listed[id] {
			continue // twice
		}
		listed[id] = false
		m := s.held(id)
		if copied {
			if twin := s.twin(geminiSays(v), old, said); twin != nil {
				s.job.report.skip("copy of a message")
				s.byID[id], m = twin, twin
			}
		}
		if m != nil && m.at < old {
			end = max(end, m.at+1)
			continue
		}
		if m == nil {
			m = newGeminiMessage(v, number)
		}
		m.recap = v.Get("type").Str == "user" && injected.TextKind(geminiText(v.Get("content"))) == thread.Recap
		compacted = compacted || m.recap
		added = append(added, m)
	}
	for len(s.now) > old {
		s.pop()
	}
	if !compacted {
		s.leave(end)
	}
	for _, m := range added {
		s.push(m)
	}
}

// twin finds the last of the messages before a place that say all of this; nil if something is
// not said there, or was said there less often than in the list.
func (s *geminiSession) twin(says []string, before int, said map[string]int) (twin *geminiMessage) {
	for _, what := range says {
		holders, n := s.saying[what], said[what]
		said[what]++
		if n >= len(holders) || holders[n].at >= before {
			return nil
		}
		if twin == nil || holders[n].at > twin.at {
			twin = holders[n]
		}
	}
	return twin
}

// geminiSays are the texts, calls and results of a message, by which a copy is known.
func geminiSays(m gjson.Result) (all []string) {
	kind := m.Get("type").Str
	if kind != "user" && kind != "gemini" {
		return nil
	}
	for p := range geminiParts(m.Get("content")) {
		switch {
		case p.Get("functionCall").Exists():
			all = append(all, "call "+p.Get("functionCall.id").Str)
		case p.Get("functionResponse").Exists():
			all = append(all, "result "+p.Get("functionResponse.id").Str)
		case p.Get("thought").Bool():
		default:
			if text := strings.TrimSpace(geminiText(p)); text != "" {
				all = append(all, kind+" "+text)
			}
		}
	}
	for c := range rawjson.Items(m.Get("toolCalls")) {
		if call := "call " + c.Get("id").Str; !slices.Contains(all, call) {
			all = append(all, call)
		}
	}
	return all
}

// geminiParts are the parts of a content, which may be one part or a text.
func geminiParts(content gjson.Result) iter.Seq[gjson.Result] {
	if content.IsArray() {
		return rawjson.Items(content)
	}
	return func(yield func(gjson.Result) bool) {
		if content.Exists() {
			yield(content)
		}
	}
}

func geminiText(content gjson.Result) string {
	var texts []string
	for p := range geminiParts(content) {
		if p.Type != gjson.String {
			p = p.Get("text")
		}
		texts = append(texts, p.Str)
	}
	return strings.Join(texts, "")
}

// transcripts makes the conversation, with what was taken back beside it.
func (s *geminiSession) transcripts() ([]Transcript, error) {
	b := s.conversation(s.now)
	b.Name, b.Title = s.name, s.title
	return b.transcripts(built(s.left, s.conversation)...)
}

func (s *geminiSession) conversation(messages []*geminiMessage) *builder {
	b := s.job.newBuilder(value{})
	b.relayed = s.relayed
	tokens := 0
	for _, m := range messages {
		b.at(m.line, parseTime(m.Get("timestamp").Str))
		if m.recap {
			b.addCompaction(Compaction{TokensBefore: tokens}, true)
		}
		geminiCLIMessage(b, m.Result)
		if n := m.Get("tokens.total").Int(); n > 0 {
			tokens = int(n)
		}
	}
	return b
}

func geminiCLIMessage(b *builder, m gjson.Result) {
	b.report.members("gemini-cli/message", m)
	switch kind := m.Get("type").Str; kind {
	case "user":
		b.report.expects(kind, m, "content")
		geminiUser(b, m.Get("content"), thread.Plain)
	case "gemini":
		b.report.expects(kind, m, "content", "toolCalls", "thoughts")
		geminiAnswer(b, m.Get("content"), m)
	case "info", "error", "warning":
		b.report.skip(kind)
		for p := range geminiParts(m.Get("content")) { // files of a result, which the model sees
			if p.Get("inlineData").Exists() || p.Get("fileData").Exists() {
				b.say(thread.User, thread.Injected, readParts(p)...)
			}
		}
	default:
		b.report.unknown(kind)
	}
}

// geminiUser adds what the user said, or the results that stand in the user's name. The calls
// mostly hold the same results.
func geminiUser(b *builder, content gjson.Result, kind thread.Kind) {
	var said []thread.Part
	results, repeated := 0, 0
	for p := range geminiParts(content) {
		response := p.Get("functionResponse")
		if !response.IsObject() {
			said = append(said, readParts(p)...)
			continue
		}
		results++
		id := b.openCallID(response.Get("id").Str)
		if b.answered[id] {
			b.report.skip("result that its call holds")
			repeated++
			continue
		}
		r := thread.ToolResult{CallID: id, Tool: response.Get("name").Str, Outcome: outcomeOf(response.Get("response.error").Exists())}
		r.Content = geminiResponse(p, &r.Structured)
		b.answer(r)
	}
	if results == 0 || results > repeated && len(said) > 0 {
		b.say(thread.User, kind, said...)
	}
}

// geminiAnswer adds an answer of the model, with its content. Its calls stand in its content, or apart with their
// results, or both.
func geminiAnswer(b *builder, content, m gjson.Result) {
	b.Model = cmp.Or(m.Get("model").Str, b.Model)
	var said []thread.Part
	thought := false
	calls := map[string]bool{}
	for p := range geminiParts(content) {
		call := p.Get("functionCall")
		switch {
		case p.Get("thought").Bool():
			said = append(said, thread.Reasoning{Text: p.Get("text").Str})
			thought = true
		case call.IsObject():
			part := b.newCall(call.Get("id").Str, call.Get("name").Str, argumentsJSON(call.Get("args")))
			part.Signature = p.Get("thoughtSignature").Str
			said = append(said, part)
			calls[part.ID] = true
		default:
			said = append(said, readParts(p)...)
		}
	}
	if !thought {
		for t := range rawjson.Items(m.Get("thoughts")) {
			b.addPart(thread.Reasoning{Text: strings.TrimSpace(t.Get("subject").Str + "\n" + t.Get("description").Str)})
		}
	}
	b.addPart(said...)
	for c := range rawjson.Items(m.Get("toolCalls")) {
		id := c.Get("id").Str
		if !calls[id] {
			id = b.addCall(id, c.Get("name").Str, argumentsJSON(c.Get("args")))
		}
		geminiResult(b, id, c)
	}
	if len(b.step.parts) == 0 {
		b.say(thread.Assistant, thread.Plain) // only to count it
	}
	b.flush()
}

// geminiResult adds the result of a call, if it has one yet.
func geminiResult(b *builder, id string, c gjson.Result) {
	status := c.Get("status").Str
	r := thread.ToolResult{CallID: id, Outcome: outcomeOf(status == "error" || status == "cancelled")}
	result := c.Get("result")
	switch {
	case result.IsArray():
		for p := range rawjson.Items(result) {
			r.Content = append(r.Content, geminiResponse(p, &r.Structured)...)
		}
	case result.Type == gjson.String:
		r.Content = textParts(result.Str)
	case r.Outcome == thread.Success:
		return
	}
	r.Denied = status == "cancelled" && injected.ClaimsDenial(r.Text())
	b.addResult(r)
}

// geminiResponse reads a part of a result, and sets data to what it gives as data.
func geminiResponse(p gjson.Result, data *string) (content []thread.Part) {
	response := p.Get("functionResponse.response")
	text := firstText(response, "output", "error")
	switch {
	case text != "":
		content = textParts(text)
	case response.Get("output").Type == gjson.String || response.Get("error").Type == gjson.String: // said nothing
	case response.Exists():
		*data, content = structuredResult(response)
	default:
		return readParts(p)
	}
	return append(content, readParts(p.Get("functionResponse.parts"))...) // files
}
