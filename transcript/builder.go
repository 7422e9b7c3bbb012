package transcript

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// builder collects one conversation. Readers say with at which entry of the file they
// read; what they then add gets its line and its time.
type builder struct {
	Transcript
	format    Format
	report    *Report
	keepEmpty bool // keep messages without parts
	request   bool // the file is one for an API, whose blocks the caller knows

	line int       // of the entry that is being read
	time time.Time // of that entry

	messages    []thread.Message
	calls       map[string]thread.ToolCall // by id
	answered    map[string]bool            // by call id
	asked       map[string]time.Time
	recaps      []bool // per compaction: a recap follows
	local       int    // calls that got an id of ours
	open        []string
	denied      map[string]string // what the user said of calls that they did not allow, by call id
	actedInText bool              // the last message of the assistant was an action in text
	step        step
	// relayed says that what stands in the user's name is another agent's, which started this one.
	relayed bool
}

// step is an answer that is put together from several entries: what the model said, and
// the results of its calls, which come after it.
type step struct {
	line    int       // of its first entry
	time    time.Time // of its first entry
	kind    thread.Kind
	parts   []thread.Part
	results []thread.Message
}

func (j *importJob) newBuilder(v value) *builder {
	return &builder{
		Transcript: Transcript{Name: v.name}, format: j.Format, report: j.report, request: j.decode != nil, line: v.line,
		calls: map[string]thread.ToolCall{}, answered: map[string]bool{}, asked: map[string]time.Time{}, denied: map[string]string{},
	}
}

// subagents are how the records of sessions say that another agent started them: the member at path holds
// something, or value, and there is none at unless, which copies of a person's session have. The id of the
// session that it works for is at parent.
var subagents = []struct {
	format                      Format
	path, value, unless, parent string
	example                     string // a session of one message in the user's name
}{
	{"codex", "payload.source.subagent", "", "payload.forked_from_id", "payload.source.subagent.thread_spawn.parent_thread_id", `{"type":"session_meta","payload":{"id":"s","source":{"subagent":{"thread_spawn":{"parent_thread_id":"p"}}}}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Never push."}]}}`},
	{"opencode", "info.parentID", "", "", "info.parentID", `{"info":{"id":"ses_2","parentID":"ses_1"},"messages":[{"info":{"id":"msg_1","role":"user"},"parts":[{"type":"text","text":"Never push."}]}]}`},
	{"crush", "parent_session_id", "", "", "parent_session_id", `{"id":"m$$c","parent_session_id":"s","prompt_tokens":1,"messages":[{"id":"1","role":"user","parts":[{"type":"text","data":{"text":"Never push."}}]}]}`},
	{"goose", "session_type", "sub_agent", "", "", `{"id":"1","working_dir":"/w","session_type":"sub_agent","conversation":[{"role":"user","created":1,"content":[{"type":"text","text":"Never push."}]}]}`},
	{"gemini-cli", "kind", "subagent", "", "", `{"sessionId":"s","projectHash":"h","kind":"subagent","messages":[{"id":"1","type":"user","content":"Never push."}]}`},
	{"qwen-code", "isSidechain", "true", "", "sessionId", `{"type":"user","uuid":"u","isSidechain":true,"agentId":"a","sessionId":"s","message":{"role":"user","parts":[{"text":"Never push."}]}}`},
	{"droid", "callingToolUseId", "", "", "callingSessionId", `{"type":"session_start","id":"s","callingSessionId":"p","callingToolUseId":"c"}
{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":[{"type":"text","text":"Never push."}]}}`},
	{"claude-code", "isSidechain", "true", "", "sessionId", `{"type":"user","uuid":"u","isSidechain":true,"agentId":"a","sessionId":"s","message":{"role":"user","content":"Never push."}}`},
}

// isSubagent reports whether a record says that another agent started the session.
func isSubagent(format Format, record gjson.Result) bool {
	for _, row := range subagents {
		if v := record.Get(row.path); row.format == format && v.Exists() && v.Type != gjson.Null && (row.value == "" && v.String() != "" || row.value != "" && v.String() == row.value) {
			return row.unless == "" || record.Get(row.unless).String() == ""
		}
	}
	return false
}

// at moves to an entry of the file.
func (b *builder) at(line int, t time.Time) { b.line, b.time = line, t }

// addSystem adds a block of instructions, unless it is empty.
func (b *builder) addSystem(role, text string) {
	if text != "" {
		b.System = append(b.System, prompt.System{Text: text, Role: role})
	}
}

// addPart adds to the answer that is put together.
func (b *builder) addPart(parts ...thread.Part) {
	b.beginStep()
	b.step.parts = append(b.step.parts, parts...)
}

// addCall adds a call to the answer that is put together, and returns its id.
func (b *builder) addCall(id, tool, arguments string) string {
	call := b.newCall(id, tool, arguments)
	b.addPart(call)
	return call.ID
}

// addResult adds a result to the answer that is put together.
func (b *builder) addResult(r thread.ToolResult) {
	b.beginStep()
	b.step.results = append(b.step.results, b.toolMessage(r))
}

func (b *builder) beginStep() {
	if len(b.step.parts) == 0 && len(b.step.results) == 0 {
		b.step.line, b.step.time = b.line, b.time
	}
}

// flush adds the answer that was put together, and its results.
func (b *builder) flush() {
	s, line, now := b.step, b.line, b.time
	b.step = step{}
	b.at(s.line, s.time)
	if len(s.parts) > 0 {
		b.say(thread.Assistant, s.kind, s.parts...)
	}
	b.add(thread.Plain, s.results...)
	b.at(line, now)
}

// say adds what was said. Blocks beside the user's words that nobody knows, such as new ones of results, are no words of
// the user's.
func (b *builder) say(role thread.Role, kind thread.Kind, parts ...thread.Part) {
	var said, others []thread.Part
	for _, p := range parts {
		if role == thread.User && kind == thread.Plain && onlyOpaque([]thread.Part{p}) {
			others = append(others, p)
		} else {
			said = append(said, p)
		}
	}
	if len(said) > 0 || len(others) == 0 {
		b.add(kind, thread.Message{Role: role, Parts: said})
	}
	b.sayAny(thread.Injected, others)
}

// sayAny adds what was said in the user's name, if that is anything.
func (b *builder) sayAny(kind thread.Kind, parts []thread.Part) {
	if len(parts) > 0 {
		b.say(thread.User, kind, parts...)
	}
}

// summarized records a compaction, with its summary if there is one.
func (b *builder) summarized(c Compaction, summary ...thread.Part) {
	b.addCompaction(c, len(summary) > 0)
	b.sayAny(thread.Recap, summary)
}

// answer adds a result that stands alone.
func (b *builder) answer(r thread.ToolResult) { b.add(thread.Plain, b.toolMessage(r)) }

// toolMessage is the message of a result. Its time is when the tool completed, or else
// that of the entry.
func (b *builder) toolMessage(r thread.ToolResult) thread.Message {
	return thread.Message{Role: thread.Tool, Time: cmp.Or(r.Completed, b.time), Parts: []thread.Part{r}}
}

// add adds messages of one entry. Messages without parts are counted and left out. A
// kind other than Plain holds; the kind of plain user messages depends on their text.
func (b *builder) add(kind thread.Kind, messages ...thread.Message) {
	if kind == thread.Plain {
		var before *thread.Message
		if n := len(b.messages); n > 0 {
			before = &b.messages[n-1]
		}
		messages = injected.MarkKinds(messages, before)
	}
	for _, m := range messages {
		if len(m.Parts) == 0 && !b.keepEmpty {
			b.report.skip("empty " + string(m.Role) + " message")
			continue
		}
		m.Time = cmp.Or(m.Time, b.time)
		b.report.unknownBlocks(m.Parts)
		switch m.Role {
		case thread.User, thread.Assistant:
			switch {
			case kind != thread.Plain:
				m.Kind = kind
			case b.relayed && m.Role == thread.User && m.Kind == thread.Plain:
				m.Kind = thread.Relayed
			case m.StartsTurn() && onlyOpaque(m.Parts) && !b.request:
				m.Kind = thread.Injected // blocks that nobody knows, such as new ones of results
			}
			for _, c := range m.Calls() {
				if _, twice := b.calls[c.ID]; twice && !b.answered[c.ID] {
					b.report.warn(b.line, "the call %s stands in the file twice", c.ID)
				}
				b.calls[c.ID], b.asked[c.ID] = c, m.Time
				delete(b.answered, c.ID)
			}
			for _, p := range m.Parts {
				if o, _ := p.(thread.Opaque); o.Call != "" && !o.Answers { // of the provider's own tools
					b.calls[o.Call] = thread.ToolCall{ID: o.Call, Name: o.Tool}
				}
			}
		case thread.Tool:
			m.Parts = slices.Clone(m.Parts)
			eachResult([]thread.Message{m}, func(r *thread.ToolResult) { b.completeResult(r, m.Time) })
		}
		b.messages = append(b.messages, m)
	}
}

// unknownBlocks counts the blocks that nobody knows; those of requests are also at home in sessions.
func (r *Report) unknownBlocks(parts []thread.Part) {
	for _, p := range parts {
		switch p := p.(type) {
		case thread.ToolResult:
			r.unknownBlocks(p.Content)
		case thread.Opaque:
			if p.Call == "" && !p.Instruction && !known["block"][p.Kind] {
				count(&r.blocks, cmp.Or(p.Kind, "without a type"))
			}
		}
	}
}

// onlyOpaque reports whether no part is understood, nor a text by its kind.
func onlyOpaque(parts []thread.Part) bool {
	return !slices.ContainsFunc(parts, func(p thread.Part) bool {
		o, opaque := p.(thread.Opaque)
		return !opaque || strings.Contains(o.Kind, "text")
	})
}

// known are, by a format, the records, parts and events that hold nothing for a model, and for events of OpenHands those that
// are read: each line has the words of one. What is not there is told. Behind a slash they are the members of a record.
var known = func() map[Format]map[string]bool {
	lists := map[Format]map[string]bool{}
	for line := range strings.Lines(knownLists) {
		name, words, _ := strings.Cut(line, ":")
		lists[Format(name)] = scan.WordSet(words)
	}
	return lists
}()

//go:embed known.txt
var knownLists string

// otherPart counts a part that is not read.
func (b *builder) otherPart(kind string) {
	if !known[b.format][kind] {
		kind = "part/" + kind
	}
	b.otherRecord(kind)
}

// otherRecord counts a record that is not read. Known is a kind, or what all of a family begin with, up to the dot.
func (b *builder) otherRecord(kind string) {
	if family, _, _ := strings.Cut(kind, "."); known[b.format][kind] || known[b.format][family+"."] {
		b.report.skip(kind)
	} else {
		b.report.unknown(kind)
	}
}

// members counts, by their paths, the members of a record that nobody here knows and that hold a text, a list or an object:
// a new name of what is read looks so. A list of known.txt with the record's path has those that are known; without
// one all are. What is in them is looked at in the same way.
func (r *Report) members(path string, v gjson.Result) {
	names := known[Format(path)]
	if names == nil {
		return
	}
	if v.IsArray() {
		for item := range rawjson.Items(v) {
			r.members(path, item)
		}
	}
	for name, m := range rawjson.Members(v) {
		if !names[name] {
			r.member(path, name, m)
		} else if m.Type == gjson.JSON {
			r.members(path+"."+name, m)
		}
	}
}

// member counts one that is not known, unless it is empty.
func (r *Report) member(path, name string, m gjson.Result) {
	if m.Type == gjson.String && m.Str != "" || m.Type == gjson.JSON && len(m.Raw) > len("{}") {
		_, path, _ = strings.Cut(path, "/")
		r.unknown(path + "." + name)
	}
}

// maxPlaced limits what placeFiles puts into a conversation, in bytes: a file may be named often.
const maxPlaced = 128 << 20

// placeFiles puts files that the session keeps apart in place of their names, as file gives them: in base64, or as
// a data URL; empty for one that is not there.
func (b *builder) placeFiles(file func(name string) string) {
	b.flush()
	left := maxPlaced
	var place func([]thread.Part)
	place = func(parts []thread.Part) {
		for i, p := range parts {
			if r, ok := p.(thread.ToolResult); ok {
				place(r.Content)
			}
			m, ok := p.(thread.Media)
			if !ok || !strings.Contains(m.Data, ":") { // of base64 it is no part
				continue
			}
			data := file(m.Data)
			if left -= len(data); data == "" || left < 0 {
				b.report.warn(0, "the file %s is not there, or too long", clip.Line(m.Data, 100))
				parts[i] = thread.Text{Text: "[" + string(m.Type) + " missing]"}
				continue
			}
			found := mediaPart(cmp.Or(m.MIME, string(m.Type)), data)
			found.Name = m.Name
			parts[i] = found
		}
	}
	for _, m := range b.messages {
		place(m.Parts)
	}
}

// unknownRole counts a message that is left out, as nobody knows who speaks in it.
func (b *builder) unknownRole(role string) {
	b.report.unknown("role " + role)
	b.report.warn(b.line, "a message of the unknown role %q was left out", role)
}

// completeResult completes a result from the call that it answers.
func (b *builder) completeResult(r *thread.ToolResult, completed time.Time) {
	call, known := b.calls[r.CallID]
	switch {
	case !known:
		b.report.warn(b.line, "the result %s answers no call in the file", r.CallID)
	case b.answered[r.CallID]:
		b.report.warn(b.line, "the call %s has a second result", r.CallID)
	}
	b.answered[r.CallID] = true
	for i, p := range r.Content {
		if o, ok := p.(thread.Opaque); ok && o.API == "" && o.Text == "" { // no encoder knows it: as the text that it is
			r.Content[i] = thread.Text{Text: o.Raw}
		}
	}
	if words, denied := b.denied[r.CallID]; denied && r.Outcome == thread.Failure {
		if r.Denied = true; words != "" {
			r.Said = []thread.Said{{Text: words}}
		}
	}
	r.Tool = cmp.Or(r.Tool, call.Name)
	r.Outcome = cmp.Or(r.Outcome, thread.Success)
	injected.Settle(string(b.format), "", &call, r)
	r.Started, r.Completed = b.asked[r.CallID], completed
}

// eachResult lets change have each result in messages.
func eachResult(messages []thread.Message, change func(*thread.ToolResult)) {
	for _, m := range messages {
		for i, p := range m.Parts {
			if r, ok := p.(thread.ToolResult); ok {
				change(&r)
				m.Parts[i] = r
			}
		}
	}
}

// addCompaction records that the agent compacted before the next message, which is the
// summary when recap is true.
func (b *builder) addCompaction(c Compaction, recap bool) {
	c.At = len(b.messages)
	b.Compactions = append(b.Compactions, c)
	b.recaps = append(b.recaps, recap)
}

// newCall makes the part of a tool call, with an id of ours where the file has none.
func (b *builder) newCall(id, name, arguments string) thread.ToolCall {
	if id == "" {
		id = thread.LocalID(b.local)
		b.local++
	}
	b.open = append(b.open, id)
	return thread.ToolCall{ID: id, Name: name, Arguments: arguments}
}

// openCallID returns the id of the call that a result answers. A result without one
// answers the oldest call that is still open, or gets an id of its own.
func (b *builder) openCallID(id string) string {
	if id != "" {
		return id
	}
	for _, open := range b.open {
		if !b.answered[open] {
			return open
		}
	}
	b.local++
	return thread.LocalID(b.local - 1)
}

// build makes the transcript.
func (b *builder) build() (Transcript, error) {
	t, err := thread.New(b.Name).Append(b.messages...)
	if err != nil {
		return Transcript{}, fmt.Errorf("transcript: %w", err)
	}
	for i, recap := range b.recaps {
		if c := &b.Compactions[i]; recap && c.At < t.Len() {
			c.Summary = t.At(c.At).ID
		}
	}
	b.Thread = t
	return b.Transcript, nil
}

// transcripts returns the transcript, with the branches that the user left beside it; or none if
// all are empty.
func (b *builder) transcripts(left ...*builder) ([]Transcript, error) {
	b.flush()
	t, err := b.build()
	if err != nil {
		return nil, err
	}
	for n, branch := range left {
		branch.Name = b.Name + "/branch-" + strconv.Itoa(n+1)
		branch.flush()
		apart, err := branch.build()
		if err != nil {
			return nil, err
		}
		if apart.Thread.Len() > 0 {
			t.Side = append(t.Side, apart)
		}
	}
	if t.Thread.Len() == 0 && len(t.Side) == 0 {
		return nil, nil
	}
	return []Transcript{t}, nil
}

// subagentSides are the conversations of the sub-agents of a session, by the agent's id.
type subagentSides struct {
	job  *importJob
	byID map[string]*builder
	all  []*builder
}

// of is the builder of a sub-agent's conversation.
func (s *subagentSides) of(agent string) *builder {
	b := s.byID[agent]
	if b == nil {
		b = s.job.newBuilder(value{name: "agent-" + agent})
		b.relayed = true
		if s.byID == nil {
			s.byID = map[string]*builder{}
		}
		s.byID[agent] = b
		s.all = append(s.all, b)
	}
	return b
}

// addTo puts the conversations beside that of the session, which the file of a sub-agent lacks.
func (s *subagentSides) addTo(found []Transcript, name string) ([]Transcript, error) {
	for _, b := range s.all {
		if len(found) == 0 {
			b.Name = name
		} else {
			b.Name = found[0].Name + "/" + b.Name
		}
		one, err := b.transcripts()
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			found = one
		} else {
			found[0].Side = append(found[0].Side, one...)
		}
	}
	return found, nil
}

// parseTime reads a time stamp; the zero time stands for what cannot be read.
func parseTime(stamp string) time.Time {
	t, _ := time.Parse(time.RFC3339, stamp)
	return t.UTC()
}

// unixTime turns Unix seconds, or milliseconds, into a time; 0 is the zero time.
func unixTime(n int64) time.Time {
	if n < 1e11 { // as milliseconds in the year 1973
		n *= 1000
	}
	return millisTime(n)
}

// millisTime turns Unix milliseconds into a time; 0 is the zero time.
func millisTime(n int64) time.Time {
	if n <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}
