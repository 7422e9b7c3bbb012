package injected

import (
	"cmp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// wrappers are the names of elements that harnesses write around texts, and who wrote these.
var wrappers = scan.Inverted(map[thread.Author]string{
	thread.ByHarness: `
		system-reminder local-command-caveat local-command-stdout local-command-stderr command-name command-message command-args
		command-contents task-notification user-prompt-submit-hook session-start-hook ide_opened_file ide_diagnostics total_tokens
		new-diagnostics
		environment_context user_instructions permissions collaboration_mode skills_instructions apps_instructions
		plugins_instructions personality_spec model_switch skill turn_aborted user_action
		session_context hook_context environment_details editorContext reminderInstructions open_and_recently_viewed_files system_reminder
		additional_data system_notification info-msg plan-mode-active background-tasks`,
	// Selections, files and pages that the user mentioned, and commands that the user ran, with their output.
	thread.ByAttachment: "ide_selection bash-input bash-stdout bash-stderr user_shell_command file_content folder_content url_content attachments attached_files",
	thread.ByAgent:      "teammate-message cross-session-message teammate_message cross_session_message agent-notification subagent_notification",
})

// attaching begin reminders with what the user attached.
var attaching = []string{"Called the ", "Result of calling the ", "The user selected the "}

// The elements of a command. The arguments are a person's words, unless the command is for the
// client.
const (
	commandName      = "command-name"
	commandMessage   = "command-message"
	commandArguments = "command-args"
)

// clientCommands are commands that a client handles itself. Their arguments are not for the model.
var clientCommands = scan.WordSet("compact clear model exit quit resume login logout config effort rename add-dir mcp plugin permissions context cost status")

// span is a part of a text, in bytes, and who wrote it.
type span struct {
	from, to int
	by       thread.Author
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
			out = append(out, span{e.from, e.contentStart, thread.ByHarness}, span{e.contentEnd, e.to, thread.ByHarness})
			continue
		}
		if e.by = wrappers[name]; !e.startsOpened {
			e.from = 0
		} else if name == "system-reminder" && hasAnyPrefix(e.content(text), attaching) {
			e.by = thread.ByAttachment
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
			out = append(out, span{e.lastOpening, len(text), e.by})
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
		if wrappers[name] == "" {
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

// leading are blocks in front of what a person wrote: a project's AGENTS.md, as Codex writes it, and what
// its extensions of editors put there. Each ends with the last of its marks.
var leading = []struct {
	begins, holds, ends string
	by                  thread.Author
}{
	{"# AGENTS.md instructions", "<INSTRUCTIONS>", "</INSTRUCTIONS>", thread.ByHarness},
	{"# Context from my IDE setup:", codexRequest, codexRequest, thread.ByAttachment},
	{"# Files mentioned by the user:", codexRequest, codexRequest, thread.ByAttachment},
}

const codexRequest = "\n## My request for Codex:\n"

// leadingBlock returns how much of the front of a text is such a block; without an end it is all of it.
func leadingBlock(text string) (length int, by thread.Author) {
	for _, b := range leading {
		if strings.HasPrefix(text, b.begins) && strings.Contains(text, b.holds) {
			if i := strings.LastIndex(text, b.ends); i >= 0 {
				return i + len(b.ends), b.by
			}
			return len(text), b.by
		}
	}
	return 0, ""
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
