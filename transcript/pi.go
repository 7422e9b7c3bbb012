package transcript

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// piRecap begins the message in which pi gives the model a summary.
const piRecap = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"

// readPi reads a session of pi. Older sessions are a list; from version 2 on they are a
// tree by parentId, in which the path from the newest entry to the root is the
// conversation and the rest are branches that the user left.
func readPi(j *importJob) ([]Transcript, error) {
	name, model, dir := j.name, "", ""
	return j.readTree("id", "parentId", func(r record) bool {
		head := r.Get("type").Str == "session"
		if head {
			name, model, dir = cmp.Or(r.Get("id").Str, name), r.Get("modelId").Str, r.Get("cwd").Str
		}
		return head
	}, func(entries []record) *builder {
		b := j.newBuilder(value{name: name})
		b.Model, b.Dir = model, dir
		piEntries(b, entries)
		return b
	})
}

func piEntries(b *builder, entries []record) {
	edits := piEdits(entries)
	for _, e := range entries {
		b.at(e.line, parseTime(e.Get("timestamp").Str))
		edit, edited := edits[e.Get("id").Str]
		if edited && edit.Type == gjson.Null {
			b.report.skip("message that was taken out")
			continue
		}
		says := func(own []thread.Part) []thread.Part {
			if edited {
				return piParts(edit, "")
			}
			return own
		}
		switch kind := e.Get("type").Str; kind {
		case "message":
			m := e.Get("message")
			if edited {
				m = gjson.Parse(jsonedit.Set(m.Raw, "content", edit.Raw))
			}
			piMessage(b, m)
		case "compaction":
			b.piSystem(e.Get("systemMessage"))
			b.summarized(Compaction{TokensBefore: int(e.Get("tokensBefore").Int())}, says(textParts(piRecap+e.Get("summary").Str+"\n</summary>"))...)
		case "branch_summary":
			b.say(thread.User, thread.Recap, says(textParts(e.Get("summary").Str))...)
		case "custom_message":
			b.say(thread.User, thread.Injected, says(piParts(e.Get("content"), ""))...)
		case "session_info":
			b.Title = e.Get("name").String()
			b.report.skip(kind)
		case "model_change":
			b.Model, b.Provider = e.Get("modelId").Str, e.Get("provider").Str
			b.report.skip(kind)
		case "thinking_level_change", "custom", "label", "leaf", "usage", "context_edit":
			b.report.skip(kind)
		default:
			b.report.unknown(kind)
		}
	}
	for i := range b.System {
		b.System[i].Role = "system"
	}
}

// piEdits are the contents that stand in place of those of entries, by id; null takes one out. They are
// the last edits of the user and of extensions, but those of Palimpsest: what it took out is
// still part of the whole history. Before them it says how many are its own.
func piEdits(entries []record) map[string]gjson.Result {
	edits := map[string]gjson.Result{}
	own := 0
	for _, e := range entries {
		kind := e.Get("type").Str
		if own > 0 {
			own--
			if kind == "context_edit" {
				continue
			}
		}
		switch kind {
		case "custom":
			if e.Get("customType").Str == piMark {
				own = int(min(max(0, e.Get("data.edits").Int()), int64(len(entries))))
			}
		case "context_edit":
			to := e.Get("replacement")
			if content := to.Get("content"); to.IsObject() {
				to = content
			}
			if !to.Exists() || to.Type == gjson.Null {
				to = gjson.Result{Type: gjson.Null}
			}
			edits[e.Get("targetId").Str] = to
		}
	}
	return edits
}

// piMark is the name under which Palimpsest's extension writes into a session.
const piMark = "palimpsest"

// piSystem reads a system message, whose sections go by names: a later one takes the place of one of the
// same name.
func (b *builder) piSystem(m gjson.Result) {
	for _, p := range readParts(m.Get("content")) {
		if t, ok := p.(thread.Text); ok && !slices.ContainsFunc(b.System, func(s prompt.System) bool { return s.Text == t.Text }) {
			b.addSystem("system", t.Text)
		}
	}
	for name, text := range rawjson.Members(m.Get("sections")) {
		at := slices.IndexFunc(b.System, func(s prompt.System) bool { return s.Role == "system/"+name })
		switch {
		case at < 0:
			b.addSystem("system/"+name, text.Str)
		case text.Str == "":
			b.System = slices.Delete(b.System, at, at+1)
		default:
			b.System[at].Text = text.Str
		}
	}
	for t := range rawjson.Items(m.Get("toolsAdded")) {
		b.Tools = append(b.Tools, readTool(t))
	}
	for t := range rawjson.Items(m.Get("toolsRemoved")) {
		name := cmp.Or(t.Get("name").Str, t.Str)
		b.Tools = slices.DeleteFunc(b.Tools, func(t prompt.Tool) bool { return t.Name == name })
	}
}

func piMessage(b *builder, m gjson.Result) {
	b.report.expects("message", m, "content", "summary", "command", "sections")
	b.report.members("pi/message", m)
	said := piParts(m.Get("content"), m.Get("api").Str)
	if role := m.Get("role").Str; !m.Get("content").Exists() { // else it was edited
		if said = textParts(m.Get("summary").Str); role == "bashExecution" {
			said = textParts(shellText(m.Get("command").Str, m.Get("output").Str, m.Get("cancelled").Bool(), m.Get("exitCode")))
		}
	}
	switch role := m.Get("role").Str; role {
	case "system":
		b.piSystem(m)
	case "user":
		b.say(thread.User, thread.Plain, said...)
	case "assistant":
		if model := m.Get("model").Str; model != "" {
			b.Model, b.Provider = model, m.Get("provider").Str
		}
		b.say(thread.Assistant, thread.Plain, said...)
	case "toolResult":
		b.answer(thread.ToolResult{CallID: m.Get("toolCallId").Str, Tool: m.Get("toolName").Str, Outcome: outcomeOf(m.Get("isError").Bool()), Content: said})
	case "bashExecution":
		if m.Get("excludeFromContext").Bool() {
			b.report.skip("bashExecution kept from the model")
			return
		}
		b.say(thread.User, thread.Attached, said...) // the user ran it
	case "custom", "hookMessage":
		b.say(thread.User, thread.Injected, said...)
	case "branchSummary", "compactionSummary":
		b.say(thread.User, thread.Recap, said...)
	default:
		b.report.unknown("message/" + role)
	}
}

// shellText is the text about a command that the user ran beside the agent.
func shellText(command, output string, cancelled bool, exit gjson.Result) string {
	text := "Ran `" + command + "`\n(no output)"
	if output != "" {
		text = "Ran `" + command + "`\n```\n" + strings.TrimSuffix(output, "\n") + "\n```"
	}
	switch {
	case cancelled:
		text += "\n\n(command cancelled)"
	case exit.Int() != 0:
		text += "\n\nCommand exited with code " + exit.Raw
	}
	return text
}

// piParts reads the blocks of a message. api is pi's name of the API that the
// message came from.
func piParts(content gjson.Result, api string) []thread.Part {
	if !content.IsArray() {
		return readParts(content)
	}
	var all []thread.Part
	for block := range rawjson.Items(content) {
		switch block.Get("type").Str {
		case "thinking":
			all = append(all, reasoningParts(block, piThinking(block, api))...)
		case "toolCall":
			all = append(all, thread.ToolCall{
				ID: block.Get("id").Str, Name: block.Get("name").Str,
				Arguments: argumentsJSON(block.Get("arguments")), Signature: block.Get("thoughtSignature").Str,
			})
		default:
			all = append(all, readParts(block)...)
		}
	}
	return all
}

// piThinking reads a block of reasoning. Its signature is of use only to the API that
// made it: Anthropic's is a text, that of the Responses API a whole item.
func piThinking(block gjson.Result, api string) thread.Reasoning {
	r := readReasoning(block)
	switch {
	case r.Signature == "":
	case api == "anthropic-messages":
		r.API = wire.Anthropic
	case strings.HasSuffix(api, "-responses"):
		if item := gjson.Parse(r.Signature); rawjson.Valid(r.Signature) && item.Get("type").Str == "reasoning" {
			r.Source = thread.Source{API: wire.Responses, Raw: r.Signature}
			r.Signature = item.Get("encrypted_content").Str
		}
	}
	return r
}

// pi writes a session of pi, version 3: a tree that has one branch.
func (w *writer) pi(messages []thread.Message) {
	begun := timestamp(w.session.Time)
	folder := "--" + flatFolderName(strings.TrimPrefix(w.session.Dir, "/"), func(r rune) bool { return strings.ContainsRune(`/\:`, r) }) + "--"
	w.out.Path = folder + "/" + strings.NewReplacer(":", "-", ".", "-").Replace(begun) + "_" + w.session.ID + ".jsonl"
	w.line(map[string]any{"type": "session", "version": 3, "id": w.session.ID, "timestamp": begun, "cwd": w.session.Dir})
	provider := w.provider()
	var parent any
	entry := func(at, kind string, members map[string]any) {
		sum := w.hash(w.lines)
		id := hex.EncodeToString(sum[:4])
		members["type"], members["id"], members["parentId"], members["timestamp"] = kind, id, parent, at
		parent = id
		w.line(members)
	}
	entry(timestamp(w.first), "model_change", map[string]any{"provider": provider, "modelId": w.session.Model})
	if w.session.Title != "" {
		entry(timestamp(w.first), "session_info", map[string]any{"name": w.session.Title})
	}
	for i := range messages {
		m := &messages[i]
		at := w.timeOf(m)
		said := map[string]any{"timestamp": at.UnixMilli()}
		switch r, result := m.Result(); {
		case m.Role == thread.Assistant:
			stop := stopWord(m, "stop", "toolUse")
			said["role"], said["content"] = "assistant", w.blocks(m.Parts, piBlock)
			said["api"], said["provider"], said["model"], said["stopReason"] = piAPI(provider), provider, w.session.Model, stop
			said["usage"] = map[string]any{
				"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
				"cost": map[string]int{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
			}
		case result:
			said["role"], said["toolCallId"], said["toolName"] = "toolResult", r.CallID, r.Tool
			said["content"], said["isError"] = w.blocks(r.Content, piBlock), r.Outcome == thread.Failure
		case m.IsAdded():
			entry(timestamp(at), "custom_message", map[string]any{"customType": "palimpsest", "content": w.blocks(m.Parts, piBlock), "display": false})
			continue
		default:
			said["role"], said["content"] = "user", w.blocks(m.Parts, piBlock)
		}
		entry(timestamp(at), "message", map[string]any{"message": said})
	}
}

// piAPI is pi's name of the API that it speaks to a provider.
func piAPI(provider string) string {
	switch provider {
	case "openai":
		return "openai-responses"
	case "google":
		return "google-generative-ai"
	}
	return "anthropic-messages"
}

func piBlock(p thread.Part) map[string]any {
	switch p := p.(type) {
	case thread.Text:
		return map[string]any{"type": "text", "text": p.Text}
	case thread.Reasoning:
		block := map[string]any{"type": "thinking", "thinking": p.Text}
		switch p.API {
		case wire.Anthropic:
			block["thinkingSignature"] = p.Signature
		case wire.Responses:
			block["thinkingSignature"] = p.Raw
		}
		return block
	case thread.ToolCall:
		block := map[string]any{"type": "toolCall", "id": p.ID, "name": p.Name, "arguments": json.RawMessage(rawjson.AsObject(p.Arguments))}
		if p.Signature != "" {
			block["thoughtSignature"] = p.Signature
		}
		return block
	case thread.Media:
		if mime, data, ok := inlineImage(p); ok {
			return map[string]any{"type": "image", "mimeType": mime, "data": data}
		}
	}
	return nil
}
