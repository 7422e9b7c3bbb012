package transcript

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// ccLine is a line of a Claude Code session.
type ccLine struct {
	uuid, parent string
	session      string
	number       int
	role         string // user, assistant, attachment or boundary
	content      string // raw JSON of the message's content
	whole        string // the message as the API has it, in which the content is; empty for others
	messageID    string // the API's id of an assistant message
	answer       int    // the number of the answer that the line is part of; 0 for none
	at           int    // its place in the tree
	model        string
	agent        string
	time         time.Time
	side         bool
	relayed      bool // another agent's, in the user's name
	kind         thread.Kind
	partial      bool // the tool was interrupted
	spoken       bool // there are other blocks than results
	denial       ccDenial
	calls        []string
	results      []string
	queued       string // a text that a person wrote while the model worked
	trigger      string // of a boundary
	tokens, left int    // of a boundary: before it, and after it
	kept         ccKept // of a boundary
}

// readClaudeCode reads a session of Claude Code. See claudechain.go for how
// the lines become one conversation.
func readClaudeCode(j *importJob) ([]Transcript, error) {
	session := &ccSession{answers: map[[2]string]int{}, commands: map[string]bool{}, queue: ccQueue{attached: map[string]bool{}}, job: j, report: j.report}
	known := func(uuid string) bool { return session.tree.find(uuid) >= 0 }
	if err := j.linesInOrder("uuid", "parentUuid", known, session.read); err != nil {
		return nil, err
	}
	session.name = cmp.Or(session.name, j.name)
	session.lines = slices.DeleteFunc(session.lines, func(l *ccLine) bool { return l.queued != "" && session.queue.attached[l.queued] })
	main, side := session.chains()
	t, err := session.build(session.name, main)
	if err != nil {
		return nil, err
	}
	for _, s := range side {
		apart, err := session.build(session.name+"/"+s.name, s.lines)
		if err != nil {
			return nil, err
		}
		if apart.Thread.Len() > 0 {
			t.Side = append(t.Side, apart)
		}
	}
	if t.Thread.Len() == 0 {
		if len(t.Side) == 0 {
			return nil, nil
		}
		// The file of a sub-agent holds nothing but its side of the session.
		rest := t.Side[1:]
		t = t.Side[0]
		t.Side = rest
	}
	t.Title, t.Dir = session.title(), session.dir
	return []Transcript{t}, nil
}

type ccSession struct {
	name     string
	last     string // the id of the session that the last line names
	named    string // the title that the user gave
	titles   []ccTitle
	dir      string            // of the first line that says one
	lines    []*ccLine         // in file order
	tree     lineage[*ccLine]  // of all lines, those without a message too
	nearest  []*ccLine         // for each entry of the tree, the nearest message there or above
	answers  map[[2]string]int // by the ids of message and request
	commands map[string]bool   // uuids of messages that typed a command to the model
	restarts []int             // lines where the context was started afresh, newest first
	newest   string            // uuid of the last line of the main conversation
	boundary *ccLine           // the last one
	queue    ccQueue
	// lastAnswer is the highest number of an answer.
	lastAnswer int
	job        *importJob
	report     *Report
}

// ccTitle is a title that the client gave, and the uuid of the last line of what it names; empty
// for this session.
type ccTitle struct{ text, leaf string }

// title is that of the user, or the last that the client gave to this session: a file may hold
// those of others.
func (s *ccSession) title() string {
	title := ""
	for _, t := range s.titles {
		if s.tree.find(t.leaf) >= 0 || t.leaf == "" {
			title = cmp.Or(t.text, title)
		}
	}
	return cmp.Or(s.named, title)
}

func (s *ccSession) read(v gjson.Result, number int) {
	f := rawjson.FieldsOf(v, make(rawjson.Fields, 0, 24))
	own := func(name string) string { return strings.Clone(f.Str(name)) } // the line itself is not kept
	kind, subtype, message := f.Str("type"), f.Str("subtype"), f.Get("message")
	l := &ccLine{
		number: number, uuid: own("uuid"), parent: cmp.Or(own("parentUuid"), own("logicalParentUuid")),
		side: f.Get("isSidechain").Bool(), agent: strings.Clone(f.Get("agentId").String()), time: parseTime(f.Str("timestamp")),
	}
	if asked := own("parent_tool_use_id"); asked != "" { // of the stream that the client prints
		l.side, l.agent = true, asked
	}
	if id := cmp.Or(f.Str("sessionId"), f.Str("session_id"), s.last); id != s.last {
		s.last = strings.Clone(id)
	}
	l.session = s.last
	s.dir = cmp.Or(s.dir, own("cwd"))
	l.relayed = l.side && f.Get("origin").Get("kind").Str != "human"
	switch kind {
	case "summary":
		s.titles = append(s.titles, ccTitle{own("summary"), own("leafUuid")})
	case "ai-title":
		s.titles = append(s.titles, ccTitle{text: own("aiTitle")})
	case "custom-title":
		s.named = cmp.Or(own("customTitle"), s.named)
	}
	if kind == "user" || kind == "assistant" || kind == "attachment" {
		s.unread("line", kind, f)
	}
	how, attached := ccAttached[f.Get("attachment").Get("type").Str]
	attached = attached && kind == "attachment"
	switch {
	case (kind == "user" || kind == "assistant") && message.IsObject() && !f.Get("isVirtual").Bool():
		s.name = cmp.Or(s.name, own("sessionId"), own("session_id"))
		l.role = own("type")
		if !f.Get("parentUuid").Exists() && !l.side {
			l.parent = s.newest
		}
		said := rawjson.FieldsOf(message, make(rawjson.Fields, 0, 16))
		s.unread("message", kind+".message", said)
		s.message(l, said)
		if b := s.boundary; b != nil && b.left == 0 && kind == "assistant" && !l.side {
			used := said.Get("usage")
			b.left = int(used.Get("input_tokens").Int() + used.Get("cache_creation_input_tokens").Int() + used.Get("cache_read_input_tokens").Int())
		}
		switch {
		case f.Get("isCompactSummary").Bool():
			l.kind = thread.Recap
		case ccOrigins[f.Get("origin").Get("kind").Str] != thread.Plain:
			l.kind = ccOrigins[f.Get("origin").Get("kind").Str]
		case f.Get("isMeta").Bool() && s.commands[l.parent]:
			// The text of a typed command, which the model took as the user's words.
		case f.Get("isMeta").Bool(), f.Get("isApiErrorMessage").Bool(), l.model == "<synthetic>":
			l.kind = thread.Injected
		}
		if l.model == "<synthetic>" {
			l.model = ""
		}
		if content := said.Get("content"); content.Type == gjson.String && injected.Command(content.Str) != "" {
			s.commands[l.uuid] = true
		}
		result := f.Get("toolUseResult")
		l.partial = strings.Contains(result.Raw, `"interrupted"`) && !strings.Contains(result.Raw, `"interrupted":false`) && result.Get("interrupted").Bool()
		l.denial = denialOf(f.Str("toolDenialKind"), result, f.Str("version"))
	case kind == "queue-operation" && s.queued(l, f.Str("operation"), own("content")):
	case kind == "attachment" && f.Get("attachment").Get("type").Str == "queued_command" && f.Get("attachment").Get("prompt").Exists():
		s.queuedCommand(l, f.Get("attachment"))
	case kind == "attachment" && f.Get("rendered").Get("#").Int() > 0:
		l.role, l.kind, l.content = "attachment", cmp.Or(how, thread.Injected), renderedBlocks(f.Get("rendered"))
	case attached && attachedContent(f.Get("attachment")) != `""`: // of older versions
		l.role, l.kind, l.content = "attachment", how, attachedContent(f.Get("attachment"))
	case kind == "system" && subtype == "local_command" && f.Str("content") != "" && !f.Get("isDisplayOnly").Bool(): // which the model sees
		l.role, l.kind, l.content = "attachment", thread.Injected, strings.Clone(f.Get("content").Raw)
	case kind == "system" && subtype == "compact_boundary":
		s.report.skip("system/compact_boundary")
		l.role = "boundary"
		about := f.Get("compactMetadata")
		l.trigger = strings.Clone(about.Get("trigger").String())
		l.tokens, l.left = int(about.Get("preTokens").Int()), int(about.Get("postTokens").Int())
		s.boundary = l
		l.kept = keptOf(about)
	default:
		name, virtual := kind, f.Get("isVirtual").Bool() // for the screen, of what a script of the model's did
		switch {
		case virtual:
			name = "virtual message"
		case kind == "system" && subtype != "":
			name += "/" + subtype
		case kind == "attachment":
			name += "/" + f.Get("attachment").Get("type").String()
		}
		if empty := attached && !f.Get("attachment").Get("content").Exists(); empty || known["claude-code"][name] || virtual {
			s.report.skip(name)
		} else {
			s.report.unknown(name)
		}
		if l.uuid != "" && s.tree.find(l.uuid) < 0 {
			s.addEntry(l.uuid, l.parent, number, nil)
		}
		return
	}
	s.keep(l, cmp.Or(own("requestId"), own("requestRef")))
}

// unread counts the members of a line, or of its message, that are not known.
func (s *ccSession) unread(list Format, path string, all rawjson.Fields) {
	names := known["claude-code/"+list]
	for _, f := range all {
		if !names[f.Name] {
			s.report.member("/"+path, f.Name, f.Value)
		}
	}
}

// ccAttached are the attachments that the user made: files and the like that were mentioned, and selections;
// and those that the client makes of them. What is rendered of others is the client's own.
var ccAttached = map[string]thread.Kind{
	"file": thread.Attached, "directory": thread.Attached, "pdf": thread.Attached, "pdf_reference": thread.Attached,
	"compact_file_reference": thread.Attached, "mcp_resource": thread.Attached, "selected_lines_in_ide": thread.Attached, "nested_memory": thread.Injected,
}

// attachedContent is the content of an attachment that the client has not rendered; a blank text if there is none.
func attachedContent(attachment gjson.Result) string {
	content := attachment.Get("content")
	if data := content.Get("file.base64").Str; data != "" {
		kind, mime := "image", content.Get("file.type").Str
		if mime == "" {
			kind, mime = "document", "application/pdf"
		}
		return `[{"type":"` + kind + `","source":` + rawjson.NewTypedObject("base64").Str("media_type", mime).Str("data", data).String() + "}]"
	}
	var texts []string
	for _, t := range append(content.Get("contents.#.text").Array(), content.Get("file.cells.#.source").Array()...) {
		texts = append(texts, t.String())
	}
	return rawjson.Quote(cmp.Or(strings.Join(texts, "\n"), firstText(attachment, "content.file.content", "content.content", "content")))
}

// ccOrigins are the origins of messages in the user's name, as the client notes them, that are not the user.
var ccOrigins = map[string]thread.Kind{
	"peer": thread.Relayed, "coordinator": thread.Relayed, "teammate": thread.Relayed, "channel": thread.Relayed, "slack-ping": thread.Relayed,
	"observer": thread.Relayed, "voice-call": thread.Relayed, "unclassified": thread.Relayed,
	"task-notification": thread.Injected, "auto-continuation": thread.Injected, "observer-activity": thread.Injected, "plugin": thread.Injected,
}

// ccDenial is what the client keeps beside a result: the zero value says nothing of a denial.
type ccDenial struct {
	sure  bool   // the call was not allowed
	error string // an error in the form of a denial, whoever wrote it
}

// denialOf reads the members of a line beside its result. Since 2.1 the error of a command begins
// with the line of its exit code, so that nothing which a command prints can stand there.
func denialOf(kind string, result gjson.Result, version string) (d ccDenial) {
	d.sure = kind != "" || result.Str == "User rejected tool use"
	if major, minor, _ := strings.Cut(version, "."); len(major) > 1 || major > "2" || major == "2" && !strings.HasPrefix(minor, "0.") {
		if text := strings.TrimPrefix(result.Str, "Error: "); injected.ClaimsDenial(text) {
			d.error = strings.Clone(text)
		}
	}
	return d
}

// message reads an API message into l.
func (s *ccSession) message(l *ccLine, message rawjson.Fields) {
	content := message.Get("content")
	if content.Type != gjson.String && content.Type != gjson.JSON {
		s.report.unknown(l.role + " without message.content")
	}
	l.whole = anthropicWhole(l.role, content)
	l.content = l.whole[len(`{"role":"","content":`)+len(l.role) : len(l.whole)-1]
	content = gjson.Parse(l.content)
	if l.role == "assistant" {
		l.messageID = strings.Clone(message.Str("id"))
		l.model = strings.Clone(message.Str("model"))
	}
	if !content.IsArray() {
		return
	}
	blank := l.role == "assistant"
	for block := range rawjson.Items(content) {
		kind := block.Get("type").Str
		blank = blank && kind == "text" && block.Get("text").Type == gjson.String && strings.TrimSpace(block.Get("text").Str) == ""
		switch kind {
		case "tool_use":
			l.calls = append(l.calls, strings.Clone(block.Get("id").Str))
		case "tool_result":
			l.results = append(l.results, strings.Clone(block.Get("tool_use_id").Str))
		default:
			l.spoken = true
		}
	}
	if blank { // the client does not send it, because the API would refuse it
		s.report.skip("blank text")
		l.content, l.whole = "", ""
	}
}

// keep adds a line to the session, unless it is a copy: a session that was resumed may repeat
// its lines. request is the client's id of the request that the line answers, or empty.
func (s *ccSession) keep(l *ccLine, request string) {
	if at := s.tree.find(l.uuid); at >= 0 {
		twin := s.tree.entries[at]
		if twin.value != nil && twin.value.content == l.content {
			s.report.warn(l.number, "repeats line %d (uuid %s) and was left out", twin.line, l.uuid)
			return
		}
		s.report.warn(l.number, "has the uuid of line %d (%s) and other content; both were kept", twin.line, l.uuid)
		l.uuid = ""
		if n := len(s.lines); n > 0 {
			l.parent = s.lines[n-1].uuid
		}
	}
	l.uuid = cmp.Or(l.uuid, fmt.Sprintf("line %d", l.number))
	s.joinAnswer(l, request)
	s.addEntry(l.uuid, l.parent, l.number, l)
	s.lines = append(s.lines, l)
	if !l.side {
		s.newest = l.uuid
	}
}

// addEntry adds a line to the tree; l is nil for one without a message.
func (s *ccSession) addEntry(uuid, parent string, number int, l *ccLine) {
	nearest := s.above(s.tree.find(parent))
	if l != nil {
		l.at = len(s.tree.entries)
		if l.role == "user" || l.role == "assistant" {
			nearest = l
		}
	}
	s.tree.add(uuid, parent, number, l)
	s.nearest = append(s.nearest, nearest)
}

// renderedBlocks returns the blocks that the client sends for the rendered texts of an
// attachment.
func renderedBlocks(rendered gjson.Result) string {
	var blocks []string
	for r := range rawjson.Items(rendered) {
		switch content := r.Get("content"); {
		case content.Type == gjson.String:
			blocks = append(blocks, rawjson.NewTypedObject("text").Raw("text", content.Raw).String())
		case content.IsArray() && arrayElements(content.Raw) != "":
			blocks = append(blocks, arrayElements(content.Raw))
		}
	}
	return rawjson.Array(blocks)
}

// arrayElements returns the elements of a JSON array as they were written.
func arrayElements(array string) string {
	array = strings.TrimSpace(array)
	return strings.TrimSpace(array[1 : len(array)-1])
}

// plainName matches call ids and tool names that the API accepts.
var plainName = lazyregexp.New(`^[a-zA-Z0-9_-]+$`)

// dropForeignBytes removes the bytes of parts that the API itself could not have made: Claude
// Code also talks to servers of other makers, whose thinking has no signature and whose
// calls have ids that Anthropic refuses. Encoders then write such calls anew and leave such
// thinking out.
func dropForeignBytes(messages []thread.Message) {
	foreign := false
	for _, m := range messages {
		for k, part := range m.Parts {
			switch p := part.(type) {
			case thread.Reasoning:
				if p.Signature == "" {
					p.Source, foreign = thread.Source{}, true
					m.Parts[k] = p
				}
			case thread.ToolCall:
				if !plainName().MatchString(p.ID) || !plainName().MatchString(p.Name) {
					p.Source, foreign = thread.Source{}, true
					m.Parts[k] = p
				}
			case thread.ToolResult:
				foreign = foreign || !plainName().MatchString(p.CallID)
			}
		}
	}
	for i := 0; foreign && i < len(messages); i++ {
		messages[i].Frame = nil // it holds the same bytes
	}
}
