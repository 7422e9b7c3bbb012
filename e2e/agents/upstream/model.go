package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// asked is how many facts of the first parts the end of the task needs where no flag says
// another number.
const asked = 3

// rule is of the task's words: a step whose prompt lacks it has lost the task.
const rule = "Never change a file"

// model works through the task. What it says depends on the request alone; it
// counts only to cause trouble and to tell how the task went.
type model struct {
	parts   int
	vague   bool                     // its summaries leave out the codes
	facts   int                      // that the end of the task needs
	turn    int                      // parts after which it waits for its user; 0 is all
	trouble map[int]proxytest.Answer // by the number of the step

	mu            sync.Mutex
	steps         int
	lookups       int
	asides        int          // steps between look-ups
	summaries     int          // that agents asked for
	inPrompt      int          // facts that stood there when the last part was read
	told, missed  map[int]bool // facts, by what the model saw at last
	reached       int          // the last part that any prompt told of
	untold, back  int          // steps whose prompt lacked the task, or told of less than one before
	ended         bool
	lost          string
	before, after int64 // bytes of the steps' prompts, and those that the step before had as well
	last          string
	cache         cache
	steer         *steering // nil: it leaves the tools for its context alone
}

var (
	called  = regexp.MustCompile(`\./part (\d+)`)
	reached = regexp.MustCompile(`(?m)^- \(turn \d+\) \S+ \./part (\d+)|Part (\d+) of the parts|The parts up to (\d+) are read`)
	told    = regexp.MustCompile(`The code of part (\d+) is (K\d{5})`)
	// wanted are the agents' words when they compact by themselves.
	wanted  = regexp.MustCompile(`(?i)detailed summary of (the|our) conversation|summary|Summarize this session|CHECKPOINT COMPACTION|state_snapshot|continuing our conversation`)
	pointer = regexp.MustCompile(`artifact:([^\]\s]+)\]|read_artifact\("([^"]+)"\)`)
)

func (m *model) answer(q *proxytest.Request) proxytest.Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, ok := proxytest.Compaction(q, m.summary(q.Prompt)); ok {
		m.summaries++
		return a
	}
	tool, ok := shell(q.Prompt)
	switch {
	case summaryAsked(q.Prompt, ok):
		m.summaries++
		return proxytest.Answer{Text: m.summary(q.Prompt)}
	case !ok: // a title, or another side request
		return proxytest.Answer{Text: `{"title":"Read the parts","isNewTopic":false}`}
	}
	m.steps++
	m.measure(q)
	cached := m.cache.take(q)
	if a, ok := m.trouble[m.steps]; ok {
		delete(m.trouble, m.steps)
		return a
	}
	a, ok := m.steer.next(q.Prompt, m.reached, q.Tokens)
	if !ok {
		a = m.next(q.Prompt, tool)
	}
	a.Cached = int(cached * float64(q.Tokens))
	for i := range a.Calls {
		a.Calls[i].ID = fmt.Sprintf("call_%x_%d", sha256.Sum256(q.Body), i)[:24] + strconv.Itoa(i)
	}
	body := gjson.ParseBytes(q.Body)
	switch kind := body.Get("thinking.type").Str; {
	case q.API == wire.Anthropic && (kind == "enabled" || kind == "adaptive"),
		q.API == wire.Responses && strings.Contains(body.Get("include").Raw, "encrypted_content"):
		a.Thinking = fmt.Sprintf("This is step %d.", m.steps)
	}
	return a
}

// next is the model's answer to what it sees.
func (m *model) next(p *prompt.Prompt, tool prompt.Tool) proxytest.Answer {
	text, at := seen(p)
	m.untold += btoi(!strings.Contains(text, rule))
	m.back += btoi(at < m.reached && m.reached < m.parts)
	m.reached = max(m.reached, at)
	if m.reached >= m.parts { // it looks codes up, and reads nothing again
		at = m.parts
	}
	if last := p.Messages[len(p.Messages)-1]; m.turn > 0 && at > 0 && at < m.parts && at%m.turn == 0 && last.Role == thread.Tool {
		return proxytest.Answer{Text: fmt.Sprintf("The parts up to %d are read.", at)}
	}
	if at < m.parts {
		a := proxytest.Answer{Text: fmt.Sprintf("Now part %d.", at+1)}
		for n := at + 1; n <= min(at+1+btoi(at%7 == 3 && m.turn == 0), m.parts); n++ { // now and then two at once
			a.Calls = append(a.Calls, call(tool, fmt.Sprintf("./part %d", n)))
		}
		return a
	}
	codes := map[string]string{}
	for _, found := range told.FindAllStringSubmatch(text, -1) {
		codes[found[1]] = found[2]
	}
	first := len(m.told) == 0 && len(m.missed) == 0
	var facts []string
	for n := 1; n <= m.facts; n++ {
		if codes[strconv.Itoa(n)] == fact(n) {
			m.inPrompt += btoi(first)
			m.told[n] = true
		}
	}
	for n := 1; n <= m.facts; n++ {
		if m.told[n] {
			facts = append(facts, fact(n))
			continue
		}
		if m.facts > asked && m.lookups >= 5*(m.asides+1) {
			m.asides++                                                                                                                                              // a proxy answers only some searches in a row
			return proxytest.Answer{Text: "Now the last part again.", Calls: []thread.ToolCall{call(tool, fmt.Sprintf("./part %d # again %d", m.parts, m.asides))}} // a client ends what repeats itself
		}
		if a, ok := m.lookUp(p, n); ok {
			return a
		}
		m.lost = fmt.Sprintf("the code of part %d was lost", n)
	}
	if len(facts) < m.facts {
		return proxytest.Answer{Text: "I am lost: " + m.lost + "."}
	}
	m.ended = true
	return proxytest.Answer{Text: "All parts are read. The first codes: " + strings.Join(facts, ", ") + "."}
}

// lookUp asks for a fact that is not in sight any more. Of many facts each is asked for
// once.
func (m *model) lookUp(p *prompt.Prompt, n int) (proxytest.Answer, bool) {
	var tried, ids []string
	for i := range p.Messages {
		for _, c := range p.Messages[i].Calls() {
			tried = append(tried, c.Arguments)
		}
		if r, ok := p.Messages[i].Result(); ok && i > len(p.Messages)-8 {
			for _, found := range pointer.FindAllStringSubmatch(r.Text(), -1) {
				ids = append(ids, cmp.Or(found[1], found[2]))
			}
		}
	}
	offered := func(name string) bool {
		return slices.ContainsFunc(p.Tools, func(t prompt.Tool) bool { return t.Name == name })
	}
	plugin := func(name string) string { // as a plugin's tool is called
		if own := "mcp__palimpsest__" + name; !offered(name) && offered(own) {
			return own
		}
		return name
	}
	try := func(name, key, value string) (proxytest.Answer, bool) {
		b, _ := json.Marshal(map[string]string{key: value}) // texts always can
		name = plugin(name)
		if !offered(name) || slices.Contains(tried, string(b)) {
			return proxytest.Answer{}, false
		}
		m.lookups++
		return proxytest.Answer{Text: "I look it up.", Calls: []thread.ToolCall{{Name: name, Arguments: string(b)}}}, true
	}
	if m.facts > asked && (m.missed[n] || !offered(plugin("recall"))) {
		return proxytest.Answer{}, false
	}
	m.missed[n] = true
	if a, ok := try("recall", "query", fmt.Sprintf(`"The code of part %d is"`, n)); ok {
		return a, true
	}
	for _, id := range ids {
		if a, ok := try("read_artifact", "artifact_id", id); ok {
			return a, true
		}
	}
	return proxytest.Answer{}, false
}

// summaryAsked reports whether the agent wants the conversation summed up. Some
// ask with their tools in the request, and later show the answer as the first
// message, which asks for nothing.
func summaryAsked(p *prompt.Prompt, tools bool) bool {
	if len(p.Messages) == 0 {
		return false
	}
	last := &p.Messages[len(p.Messages)-1]
	if last.Role != thread.User || tools && len(p.Messages) < 3 {
		return false
	}
	text := last.Text()
	if injected.TextKind(text) == thread.Recap { // the answer, and nothing after it
		return false
	}
	for _, s := range p.System {
		if !tools {
			text += s.Text
		}
	}
	return wanted.MatchString(text)
}

// summary is a good one, unless it is to be vague: how far the task is, and the codes that are
// in sight and will be asked for.
func (m *model) summary(p *prompt.Prompt) string {
	text, at := seen(p)
	var b strings.Builder
	fmt.Fprintf(&b, "<summary>\nThe parts up to %d are read.\n", at)
	for n := 1; n <= m.facts && !m.vague; n++ {
		for _, found := range told.FindAllStringSubmatch(text, -1) {
			if found[1] == strconv.Itoa(n) {
				fmt.Fprintf(&b, "%s.\n", found[0])
				break
			}
		}
	}
	return b.String() + "</summary>"
}

// seen is all text of the conversation, and the last part that was called for.
func seen(p *prompt.Prompt) (string, int) {
	var b strings.Builder
	at := 0
	for i := range p.Messages {
		for _, c := range p.Messages[i].Calls() {
			for _, found := range called.FindAllStringSubmatch(c.Arguments, -1) {
				n, _ := strconv.Atoi(found[1])
				at = max(at, n)
			}
		}
		for _, piece := range p.Messages[i].Parts {
			switch piece := piece.(type) {
			case thread.Text:
				b.WriteString(piece.Text + "\n")
			case thread.ToolResult:
				b.WriteString(piece.Text() + "\n")
			case thread.Opaque: // a compaction of this provider
				b.WriteString(gjson.Get(piece.Source.Raw, "encrypted_content").Str + "\n")
			}
		}
	}
	text := b.String()
	for _, found := range reached.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(found[1] + found[2] + found[3])
		at = max(at, n)
	}
	return text, at
}

// shell finds the agent's tool that runs commands.
func shell(p *prompt.Prompt) (prompt.Tool, bool) {
	for _, name := range []string{"Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command", "run_commands", "exec"} {
		for _, t := range p.Tools {
			if t.Name == name {
				return t, true
			}
		}
	}
	return prompt.Tool{}, false
}

// call is a call of the shell, in the form that its schema asks for.
func call(t prompt.Tool, command string) thread.ToolCall {
	args := map[string]any{}
	schema := gjson.Parse(t.Schema)
	for _, name := range []string{"command", "commands", "cmd"} {
		switch field := schema.Get("properties." + name); {
		case !field.Exists():
		case name == "commands":
			args[name] = []string{command}
		case field.Get("type").Str == "array":
			args[name] = []string{"sh", "-c", command}
		default:
			args[name] = command
		}
	}
	for _, name := range schema.Get("required").Array() {
		if _, ok := args[name.Str]; !ok {
			switch schema.Get("properties." + name.Str + ".type").Str {
			case "string":
				args[name.Str] = "read the next part"
			case "number", "integer":
				args[name.Str] = 60000
			case "boolean":
				args[name.Str] = false
			}
		}
	}
	b, _ := json.Marshal(args) // texts always can
	return thread.ToolCall{Name: t.Name, Arguments: string(b)}
}

// unread are what no model reads: cache marks, and the checksum that Claude Code
// writes into its first system block.
var unread = regexp.MustCompile(`,?"cache_control":\{[^{}]*\}|cch=[0-9a-f]+`)

// measure compares the prompt with that of the step before: what both begin with
// is what a cache could give.
func (m *model) measure(q *proxytest.Request) {
	var b strings.Builder
	body := gjson.ParseBytes(q.Body)
	for _, field := range []string{"tools", "system", "systemInstruction", "instructions", "messages", "input", "contents"} {
		b.WriteString(unread.ReplaceAllString(strings.TrimSuffix(body.Get(field).Raw, "]"), ""))
	}
	text, same := b.String(), 0
	for same < min(len(text), len(m.last)) && text[same] == m.last[same] {
		same++
	}
	m.before += int64(len(text))
	m.after += int64(same)
	m.last = text
}

// row is the cells of the table.
func (m *model) row(requests []*proxytest.Request) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	refused, largest := 0, 0
	for _, q := range requests {
		refused += btoi(q.Refused != "")
		largest = max(largest, q.Tokens)
	}
	end := "yes"
	if !m.ended {
		end = "no"
	}
	if m.lost != "" {
		end += ": " + m.lost
		if m.ended {
			end += " for a time"
		}
	}
	if m.untold > 0 {
		end += fmt.Sprintf("; %d steps without the task", m.untold)
	}
	if m.back > 0 {
		end += fmt.Sprintf("; %d steps told of less than one before", m.back)
	}
	found := fmt.Sprintf("%d of %d", len(m.told), m.facts)
	if m.facts > asked {
		found += fmt.Sprintf(" (%d in the prompt)", m.inPrompt)
	}
	cells := fmt.Sprintf("%d | %d | %d | %d | %.2f | %s | %s | %s | %d | %d", m.steps, len(requests), refused, largest,
		float64(m.after)/float64(max(m.before, 1)), m.cache.share(), end, found, m.lookups, m.summaries)
	if m.steer != nil {
		cells += " | " + m.steer.row()
	}
	return cells
}

// keep writes the refused requests and the last one, to be looked at.
func keep(dir string, requests []*proxytest.Request) error {
	if dir == "" {
		return nil
	}
	for i, q := range requests {
		if os.Getenv("KEEP") == "" && q.Refused == "" && i != len(requests)-1 {
			continue
		}
		name := filepath.Join(dir, fmt.Sprintf("%03d", q.N))
		if err := os.WriteFile(name+".json", q.Body, 0o600); err != nil {
			return err
		}
		if err := os.WriteFile(name+".txt", []byte(q.Method+" "+q.Path+"\n"+q.Refused+"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
