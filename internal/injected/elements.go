package injected

import (
	"cmp"
	"slices"
	"strings"
)

// wrappers are the names of elements that harnesses write around their texts.
var wrappers = map[string]bool{
	// Claude Code
	"system-reminder": true, "local-command-caveat": true,
	"local-command-stdout": true, "local-command-stderr": true,
	"command-name": true, "command-message": true, "command-args": true, "command-contents": true,
	"bash-input": true, "bash-stdout": true, "bash-stderr": true,
	"task-notification": true, "agent-notification": true, "user-prompt-submit-hook": true, "session-start-hook": true,
	"ide_opened_file": true, "ide_selection": true, "ide_diagnostics": true,
	"total_tokens": true, "new-diagnostics": true,
	// Codex
	"environment_context": true, "user_instructions": true, "permissions": true,
	"collaboration_mode": true, "skills_instructions": true, "apps_instructions": true,
	"plugins_instructions": true, "personality_spec": true, "model_switch": true, "skill": true,
	"turn_aborted": true, "user_shell_command": true, "subagent_notification": true, "user_action": true,
	// Gemini CLI
	"session_context": true,
	// Cline, Roo: the environment, and the files and pages that were mentioned
	"environment_details": true, "file_content": true, "folder_content": true, "url_content": true,
	// VS Code, Cursor
	"attachments": true, "editorContext": true, "reminderInstructions": true,
	"attached_files": true, "open_and_recently_viewed_files": true, "system_reminder": true, "additional_data": true,
}

// The elements of a command. The arguments are a person's words, unless the command is for the
// client.
const (
	commandName      = "command-name"
	commandMessage   = "command-message"
	commandArguments = "command-args"
)

// clientCommands are commands that a client handles itself. Their arguments are not for the model.
var clientCommands = map[string]bool{
	"compact": true, "clear": true, "model": true, "exit": true, "quit": true, "resume": true,
	"login": true, "logout": true, "config": true, "effort": true, "rename": true, "add-dir": true,
	"mcp": true, "plugin": true, "permissions": true, "context": true, "cost": true, "status": true,
}

// span is a part of a text, in bytes.
type span struct{ from, to int }

// userText returns the parts of a text that are certainly outside all wrappers. A wrapper reaches from
// its first opening tag to its last closing tag, because its content may have the same tags. Without a
// closing tag it reaches to the end, without an opening tag it begins at the start. The time is linear.
func userText(text string) string {
	text = withoutAgentsFile(strings.TrimSpace(text))
	var b strings.Builder
	at := 0
	for _, w := range wrapperSpans(text) {
		if w.from > at {
			b.WriteString(text[at:w.from])
		}
		at = max(at, w.to)
	}
	b.WriteString(text[at:])
	return withoutAgentsFile(strings.TrimSpace(b.String()))
}

// element covers all elements of one name in a text, from the first opening tag to the last closing tag.
type element struct {
	span
	contentStart, contentEnd int
	startsOpened             bool // its first tag is an opening one
	lastOpening              int  // the last opening tag
}

func (e *element) content(text string) string {
	if e == nil || !e.startsOpened || e.contentEnd < e.contentStart {
		return ""
	}
	return strings.TrimSpace(text[e.contentStart:e.contentEnd])
}

// wrapperSpans returns the parts of a text that wrappers take, sorted. They may overlap.
func wrapperSpans(text string) []span {
	found := elements(text)
	command, asked := typedCommand(text, found)
	var out []span
	for name, e := range found {
		if name == commandName && asked || name == commandArguments && !clientCommands[command] && e.content(text) != "" {
			// The person's words, without the tags around them.
			out = append(out, span{e.from, e.contentStart}, span{e.contentEnd, e.to})
			continue
		}
		if !e.startsOpened {
			e.from = 0
		}
		if e.to > e.from {
			if name == "task-notification" {
				e.to = skipLine(text, e.to, "Full transcript available at: ")
			}
			out = append(out, e.span)
		}
		// Clients put a tag at the start of a line or behind another element; people may mention it
		// anywhere.
		before := strings.TrimRight(text[:max(e.lastOpening, 0)], " \t")
		if e.lastOpening >= e.to && (before == "" || strings.HasSuffix(before, "\n") || strings.HasSuffix(before, ">")) {
			out = append(out, span{e.lastOpening, len(text)})
		}
	}
	slices.SortFunc(out, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	return out
}

// elements returns the wrappers of a text by name.
func elements(text string) map[string]*element {
	found := map[string]*element{}
	for at := 0; ; {
		next := strings.IndexByte(text[at:], '<')
		if next < 0 {
			break
		}
		from := at + next
		at = from + 1
		name, closing, length := readTag(text[from:])
		if !wrappers[name] && name != commandArguments {
			continue
		}
		e := found[name]
		if e == nil {
			e = &element{span: span{from: from}, contentStart: from + length, startsOpened: !closing, lastOpening: -1}
			found[name] = e
		}
		if closing {
			e.to, e.contentEnd = from+length, from
		} else {
			e.lastOpening = from
		}
	}
	return found
}

// typedCommand returns the name of the command in a text, and whether it is for the model: Claude Code
// writes the name of a command that it handles itself before the message, and otherwise after it.
func typedCommand(text string, found map[string]*element) (command string, asked bool) {
	name, message := found[commandName], found[commandMessage]
	command = strings.TrimPrefix(name.content(text), "/")
	plain := command != "" && strings.IndexFunc(command, func(r rune) bool { return r >= 0x80 || r != ':' && r != '.' && !isNameByte(byte(r)) }) < 0
	return command, plain && len(command) <= maxCommand && !clientCommands[command] && message.content(text) != "" && message.from < name.from
}

// maxCommand bounds the name of a command, in bytes.
const maxCommand = 64

// skipLine returns the position behind a line that begins with start, if there is one at the given position,
// after white space.
func skipLine(text string, at int, start string) int {
	rest := strings.TrimSpace(text[at:])
	if !strings.HasPrefix(rest, start) {
		return at
	}
	line, _, _ := strings.Cut(rest, "\n")
	return at + strings.Index(text[at:], start) + len(line)
}

// withoutAgentsFile cuts the block with a project's AGENTS.md, as Codex writes it, from the front of a text.
// Without an end the block is all of the text.
func withoutAgentsFile(text string) string {
	const begin, end = "<INSTRUCTIONS>", "</INSTRUCTIONS>"
	if !strings.HasPrefix(text, "# AGENTS.md instructions") || !strings.Contains(text, begin) {
		return text
	}
	i := strings.LastIndex(text, end)
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(text[i+len(end):])
}

// maxTag bounds a tag, in bytes. Of a longer one only the name is read.
const maxTag = 1 << 10

// readTag returns the name and the length of the tag at the front of a text. The name is empty if there is none.
func readTag(text string) (name string, closing bool, length int) {
	rest, closing := strings.CutPrefix(text[1:], "/")
	n := 0
	for n < len(rest) && isNameByte(rest[n]) {
		n++
	}
	if n == 0 || n == len(rest) || strings.IndexByte(" \t\r\n/>", rest[n]) < 0 {
		return "", false, 0
	}
	before := len(text) - len(rest)
	length = before + n
	if gt := strings.IndexByte(rest[:min(len(rest), maxTag)], '>'); gt >= 0 {
		length = before + gt + 1
	}
	return rest[:n], closing, length
}

func isNameByte(c byte) bool {
	return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
