package transcript

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// codexSession reads a Codex rollout, with those that it goes on from. The response items are the
// conversation; the events repeat most of it for the screen. The file keeps the items from before a
// compaction, so they are the full history.
type codexSession struct {
	*builder
	job          *importJob
	instructions string
	course[codexEntry]
	tokens    int         // the last size that the client recorded
	compacted *Compaction // the last one
}

// codexEntry is an item, a compaction, or both: its summary.
type codexEntry struct {
	item   string
	output string // the text of an output that item has as ""; empty if item is whole
	line   int
	time   time.Time
	user   bool // the user speaks in it, or somebody in the user's name
	// compaction is nil for a mere item.
	compaction *Compaction
}

// codexOnly are members that the client adds to items for itself; the API would refuse them.
var codexOnly = []string{"internal_chat_message_metadata_passthrough", "metadata"}

func readCodex(j *importJob) ([]Transcript, error) {
	s := &codexSession{builder: j.newBuilder(value{}), job: j}
	if err := j.lines(s.read); err != nil {
		return nil, err
	}
	s.Name = cmp.Or(s.Name, j.name)
	s.warnOlder()
	return s.transcript()
}

func (s *codexSession) read(v gjson.Result, number int) {
	kind, payload := v.Get("type").Str, v.Get("payload")
	place := codexEntry{line: number, time: parseTime(v.Get("timestamp").Str)}
	if !payload.Exists() && (kind == "response_item" || kind == "event_msg") {
		kind += " without a payload"
	}
	switch kind {
	case "session_meta":
		s.report.skip(kind)
		if s.Name == "" {
			s.Name = payload.Get("id").String()
			s.relayed = isSubagent(s.format, v)
			s.Dir, s.Provider = payload.Get("cwd").Str, payload.Get("model_provider").Str
			s.instructions = partsText(firstParts(payload, "base_instructions.text", "base_instructions", "instructions"))
			s.inherit(v, number)
		}
	case "turn_context":
		s.report.skip(kind)
		s.Model = cmp.Or(payload.Get("model").Str, s.Model)
	case "event_msg":
		s.event(payload, number)
	case "compacted":
		s.readCompaction(payload, place)
	case "response_item":
		s.item(payload, place)
	case "inter_agent_communication":
		s.addItem(agentMessage(payload), place)
	case "world_state", "token_usage_record", "inter_agent_communication_metadata":
		s.report.skip(kind)
	case "":
		if v.Get("record_type").Exists() {
			s.report.skip("record_type/" + v.Get("record_type").String())
			return
		}
		if !v.Get("id").Exists() {
			s.report.unknown("entry without a type")
			return
		}
		s.report.skip("session")
		if s.Name == "" {
			s.Name, s.instructions = v.Get("id").String(), v.Get("instructions").String()
		}
	default:
		if isResponseItem(kind) { // the older form: a bare item
			s.item(v, place)
			return
		}
		s.report.unknown(kind)
	}
}

func (s *codexSession) event(payload gjson.Result, number int) {
	kind := payload.Get("type").Str
	s.otherRecord("event_msg/" + kind)
	switch kind {
	case "token_count":
		if n := payload.Get("info.last_token_usage.total_tokens").Int(); n > 0 {
			s.tokens = int(n)
			if c := s.compacted; c != nil && c.TokensAfter == 0 {
				c.TokensAfter = s.tokens
			}
		}
	case "thread_name_updated":
		s.Title = payload.Get("thread_name").String()
	case "thread_rolled_back":
		if turns := int(payload.Get("num_turns").Int()); !s.undo(turns) {
			s.report.warn(number, "the user went back %d turns here, and there are none", turns)
		}
	}
}

func (s *codexSession) item(payload gjson.Result, place codexEntry) {
	kind := payload.Get("type").Str
	switch {
	case kind == "ghost_snapshot":
		s.report.skip("response_item/" + kind)
		return
	case !payload.IsObject():
		s.report.unknown("response_item that is no object")
		return
	case kind == "message":
		s.report.expects("response_item/message", payload, "content")
	}
	s.report.members("codex/"+kind, payload)
	var item string
	item, place.output = withoutOutput(payload.Raw)
	s.addItem(apiItem(item), place)
}

func (s *codexSession) addItem(item string, place codexEntry) {
	if v := gjson.Parse(item); v.Get("role").Str == "user" {
		place.user = v.Get("type").Str == "message"
		if injected.TextKind(itemText(v)) == thread.Plain {
			s.turns = append(s.turns, len(s.now))
		}
	}
	place.item = item
	s.now = append(s.now, place)
}

// agentMessage is the item that the model gets of what another agent told it.
func agentMessage(told gjson.Result) string {
	said := []string{rawjson.NewTypedObject("input_text").Str("text", told.Get("content").Str).String()}
	if sealed := told.Get("encrypted_content"); sealed.Str != "" {
		said = []string{rawjson.NewTypedObject("encrypted_content").Raw("encrypted_content", sealed.Raw).String()}
	}
	return rawjson.NewTypedObject("agent_message").Str("author", told.Get("author").Str).Str("recipient", told.Get("recipient").Str).
		Raw("content", rawjson.Array(said)).String()
}

func itemText(item gjson.Result) string {
	content := item.Get("content")
	if content.Type == gjson.String {
		return content.Str
	}
	var texts []string
	for p := range rawjson.Items(content) {
		texts = append(texts, p.Get("text").Str)
	}
	return strings.Join(texts, "\n")
}

// apiItem is a copy of an item as the API takes it: without codexOnly, and else as it was.
func apiItem(raw string) string {
	item := raw
	for _, key := range codexOnly {
		if strings.Contains(item, `"`+key+`"`) {
			item = jsonedit.Delete(item, key)
		}
	}
	if len(item) == len(raw) {
		return strings.Clone(raw)
	}
	return item
}

// longOutput is the length, in bytes, from which on the text of an output is kept once, and not as JSON too.
const longOutput = 512

// withoutOutput takes the text out of a long output, if it can be written again as it was.
func withoutOutput(item string) (rest, text string) {
	if len(item) < longOutput || gjson.Get(item, "type").Str != "function_call_output" {
		return item, ""
	}
	v := gjson.Get(item, "output")
	after := item[v.Index+len(v.Raw):]
	if v.Type != gjson.String || len(v.Raw) < longOutput || strings.Contains(after, `"output"`) || strings.Contains(after, `\u`) || !rawjson.IsQuoted(v.Raw) {
		return item, ""
	}
	if text = v.Str; len(text)+len(`""`) == len(v.Raw) { // a part of the line
		text = strings.Clone(text)
	}
	return item[:v.Index] + `""` + after, text
}

// putOutput gives the message of an output its text back.
func (e *codexEntry) putOutput(m *thread.Message) {
	at := gjson.Get(e.item, "output").Index
	r, _ := m.Result()
	r.Raw, r.Content = "", []thread.Part{thread.Text{Text: e.output, Source: thread.Source{API: r.API}}}
	m.Parts = []thread.Part{r}
	m.Frame = m.Frame.With(e.item[:at]+e.item[at+len(`""`):], at, e.output, rawjson.Quote)
}

// readCompaction records a compaction. The summary is in the line itself, or is the last recap in
// the messages that replaced the history. A summary that the provider made is encrypted and
// cannot be read.
func (s *codexSession) readCompaction(payload gjson.Result, place codexEntry) {
	recap := payload.Get("message").Str
	for item := range rawjson.Items(payload.Get("replacement_history")) {
		if t := itemText(item); injected.TextKind(t) == thread.Recap {
			recap = t
		}
	}
	s.compacted = &Compaction{TokensBefore: s.tokens}
	place.compaction = s.compacted
	if recap == "" {
		s.report.warn(place.line, "the summary of this compaction cannot be read; the history before it was kept")
		s.now = append(s.now, place)
		return
	}
	said := rawjson.NewTypedObject("input_text").Str("text", recap).String()
	s.addItem(rawjson.NewTypedObject("message").Str("role", "user").Raw("content", "["+said+"]").String(), place)
}

func (s *codexSession) transcript() ([]Transcript, error) {
	s.addSystem("instructions", s.instructions)
	if err := addCodex(s.builder, s.now); err != nil {
		return nil, err
	}
	var left []*builder
	for _, branch := range s.left {
		b := s.job.newBuilder(value{})
		b.Model, b.Provider, b.relayed = s.Model, s.Provider, s.relayed
		if err := addCodex(b, branch); err != nil {
			return nil, err
		}
		left = append(left, b)
	}
	return s.transcripts(left...)
}

// codexPiece is after how many bytes of items the rest is decoded apart: of what is decoded the items
// themselves need no room any more.
const codexPiece = 1 << 20

// addCodex adds the messages of a conversation, in pieces that begin where the user speaks: no answer
// goes over that.
func addCodex(b *builder, entries []codexEntry) error {
	size, begun := 0, 0
	for i := range entries {
		if size >= codexPiece && entries[i].user {
			if err := addCodexPiece(b, entries[begun:i]); err != nil {
				return err
			}
			size, begun = 0, i
		}
		size += len(entries[i].item)
	}
	return addCodexPiece(b, entries[begun:])
}

func addCodexPiece(b *builder, entries []codexEntry) error {
	var items []string
	var places []int // of the items in entries
	for i := range entries {
		if entries[i].item != "" {
			items, places = append(items, entries[i].item), append(places, i)
		}
	}
	messages, system, err := openai.DecodeItems("[" + strings.Join(items, ",") + "]")
	clear(items)
	if err != nil {
		line := 1
		if n := itemOf(err); n < len(places) {
			line = entries[places[n]].line
		}
		return &SyntaxError{Line: line, Path: "payload", Err: err}
	}
	b.System = append(b.System, system...)
	held := make([]bool, len(entries))
	for i := range entries {
		held[i] = entries[i].item != ""
	}
	done := 0 // entries
	for _, m := range messages {
		at := 0
		if m.Frame != nil {
			at = m.Frame.Position()
		}
		at = places[at]
		kind := thread.Plain
		for ; done <= at; done++ {
			if c := entries[done].compaction; c != nil {
				b.addCompaction(*c, held[done])
				if done == at {
					kind = thread.Recap
				}
			}
		}
		if entries[at].output != "" {
			entries[at].putOutput(&m)
		}
		b.at(entries[at].line, entries[at].time)
		if r, ok := m.Result(); ok && r.Text() == codexRejected && codexShells[cmp.Or(r.Tool, b.calls[r.CallID].Name)] {
			r.Denied = true
			m.Parts = []thread.Part{r}
		}
		b.add(kind, m)
	}
	for _, e := range entries[done:] {
		if e.compaction != nil {
			b.addCompaction(*e.compaction, false)
		}
	}
	clear(entries) // their bytes are in messages now
	return nil
}

// codexRejected is all of the output of a command that the user did not allow. Above what a command
// prints the client always puts a header.
const codexRejected = "exec command rejected by user"

// codexShells are the client's tools that run a command.
var codexShells = scan.WordSet("shell shell_command local_shell container.exec exec_command unified_exec")

// itemOf is the number of the item that an error of the codec names.
func itemOf(err error) int {
	_, rest, _ := strings.Cut(err.Error(), "[")
	digits, _, _ := strings.Cut(rest, "]")
	n, _ := strconv.Atoi(digits)
	return max(0, n)
}

// codexVersion is the version that these files were tried with.
const codexVersion = "0.169.0"

// codexLine is a line of a rollout.
type codexLine struct {
	Timestamp string `json:"timestamp"`
	Type      string `json:"type"`
	Payload   any    `json:"payload"`
}

// codex writes a rollout: the session, and the items of the conversation. Codex adds instructions
// and environment to its next request itself, as it does after its own compaction.
func (w *writer) codex(messages []thread.Message) {
	begun := w.session.Time.UTC()
	w.out.Path = begun.Format("2006/01/02/") + "rollout-" + begun.Format("2006-01-02T15-04-05") + "-" + w.session.ID + ".jsonl"
	type meta struct {
		ID         string `json:"id"`
		Timestamp  string `json:"timestamp"`
		Dir        string `json:"cwd"`
		Originator string `json:"originator"`
		Version    string `json:"cli_version"`
		Source     string `json:"source"`
		Provider   string `json:"model_provider,omitempty"`
	}
	write := func(at time.Time, kind string, payload any) { w.line(codexLine{timestamp(at), kind, payload}) }
	write(w.first, "session_meta", meta{w.session.ID, timestamp(begun), w.session.Dir, "palimpsest", codexVersion, "cli", w.session.Provider})
	if w.session.Title != "" {
		write(w.first, "event_msg", map[string]string{"type": "thread_name_updated", "thread_id": w.session.ID, "thread_name": w.session.Title})
	}
	for i := range messages {
		m := &messages[i]
		at := w.timeOf(m)
		for _, item := range w.elements(openai.Responses{}, "input", m) {
			write(at, "response_item", json.RawMessage(item.Raw))
		}
		if m.StartsTurn() { // the agent's list of sessions shows the first of them
			write(at, "event_msg", map[string]string{"type": "user_message", "message": m.Text()})
		}
	}
}
