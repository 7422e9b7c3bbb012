package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// conversations shows a conversation and those beside it, each on a line.
func conversations(t *testing.T, session string) string {
	t.Helper()
	f, err := transcript.Read(strings.NewReader(session), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Transcripts) != 1 {
		t.Fatalf("%d conversations", len(f.Transcripts))
	}
	var all []string
	show := func(m []*thread.Message) {
		var texts []string
		for _, m := range m {
			said := m.Text()
			for _, c := range m.Calls() {
				said += "*" + c.ID
			}
			if r, ok := m.Result(); ok {
				said = r.CallID + " " + r.Text()
			}
			texts = append(texts, fmt.Sprintf("%s %s", m.Role, said))
		}
		all = append(all, strings.Join(texts, "|"))
	}
	list := func(t transcript.Transcript) (all []*thread.Message) {
		for _, m := range t.Thread.All() {
			all = append(all, m)
		}
		return all
	}
	show(list(f.Transcripts[0]))
	for _, s := range f.Transcripts[0].Side {
		show(list(s))
	}
	return strings.Join(all, "\n")
}

// What the user took back is no longer in the conversation, and not lost.
func TestCodexTurnsTakenBack(t *testing.T) {
	const meta = `{"type":"session_meta","payload":{"id":"c"}}`
	user := func(text string) string {
		return fmt.Sprintf(`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, text)
	}
	answer := func(text string) string {
		return fmt.Sprintf(`{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}}`, text)
	}
	back := func(n int) string {
		return fmt.Sprintf(`{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":%d}}`, n)
	}
	const (
		environment = "<environment_context>\n<cwd>/w</cwd>\n</environment_context>"
		summary     = "Another language model started to solve this problem and produced a summary. One is done."
		compacted   = `{"type":"compacted","payload":{"message":"` + summary + `"}}`
	)
	for _, tt := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"the last turn", []string{user("one"), answer("1"), user("two"), answer("2"), back(1), user("three")}, "user one|assistant 1|user three\nuser two|assistant 2"},
		{"two turns", []string{user("one"), answer("1"), user("two"), answer("2"), user("three"), back(2), user("four")}, "user one|assistant 1|user four\nuser two|assistant 2|user three"},
		{"again", []string{user("one"), user("two"), back(1), user("three"), back(2), user("four")}, "user four\nuser two\nuser one|user three"},
		{"more than there are", []string{user(environment), user("one"), answer("1"), back(9), user("two")}, "user " + environment + "|user two\nuser one|assistant 1"},
		{"what the client adds opens no turn", []string{user("one"), answer("1"), user("two"), user(environment), answer("2"), back(1)}, "user one|assistant 1\nuser two|user " + environment + "|assistant 2"},
		{"none", []string{user("one"), back(0)}, "user one"},
		{"over a compaction", []string{user("one"), answer("1"), user("two"), compacted, answer("2"), back(1), user("three")}, "user one|assistant 1|user three\nuser two|user " + summary + "|assistant 2"},
		{"after a compaction", []string{user("one"), compacted, user("two"), answer("2"), back(1), user("three")}, "user one|user " + summary + "|user three\nuser two|assistant 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := conversations(t, meta+"\n"+strings.Join(tt.lines, "\n")); got != tt.want {
				t.Errorf("%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestKimiUndo(t *testing.T) {
	const meta = `{"type":"metadata","protocol_version":"1"}` + "\n"
	say := func(role, text string) string {
		return fmt.Sprintf(`{"type":"context.append_message","message":{"role":%q,"content":[{"type":"text","text":%q}]}}`, role, text)
	}
	const undo, clear, notice = `{"type":"context.undo","count":1}`, `{"type":"context.clear"}`, `{"type":"context.append_message","message":{"role":"user","origin":{"kind":"system"},"content":"note"}}`
	for _, tt := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"none", []string{say("user", "one"), say("assistant", "1")}, "user one|assistant 1"},
		{"a turn", []string{say("user", "one"), say("assistant", "1"), say("user", "two"), notice, say("assistant", "2"), undo, say("user", "three")}, "user one|assistant 1|user three\nuser two|user note|assistant 2"},
		{"all", []string{say("user", "one"), say("assistant", "1"), clear, say("user", "two")}, "user two\nuser one|assistant 1"},
		{"what was added for it", []string{say("user", "one"), `{"type":"context.append_message","message":{"role":"user","origin":{"kind":"injection","ownerPromptId":"p"},"content":"its file"}}`,
			`{"type":"context.append_message","message":{"role":"user","id":"p","content":"two"}}`, undo}, "user one\nuser its file|user two"},
		{"a command of the user", []string{say("user", "one"), `{"type":"context.append_message","message":{"role":"user","origin":{"kind":"skill_activation","trigger":"user-slash"},"content":"skill"}}`, undo}, "user one\nuser skill"},
		{"after all", []string{say("user", "one"), clear, say("user", "two"), undo, say("user", "three")}, "user three\nuser one\nuser two"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := conversations(t, meta+strings.Join(tt.lines, "\n")); got != tt.want {
				t.Errorf("%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestOpenCodeUndo(t *testing.T) {
	const messages = `"messages":[
{"info":{"id":"m1","role":"user"},"parts":[{"id":"p1","type":"text","text":"one"}]},
{"info":{"id":"m2","role":"assistant"},"parts":[{"id":"p2","type":"text","text":"1"}]},
{"info":{"id":"m3","role":"user"},"parts":[{"id":"p3","type":"text","text":"two"}]},
{"info":{"id":"m4","role":"assistant"},"parts":[{"id":"p4","type":"text","text":"I look."},{"id":"p5","type":"tool","tool":"bash","callID":"c1","state":{"status":"completed","input":{},"output":"a.go"}},
{"id":"p6","type":"step-start"},{"id":"p7","type":"text","text":"2"}]}]}`
	const live = "user one|assistant 1|user two|assistant I look.*c1|tool c1 a.go|assistant 2"
	for _, tt := range []struct{ name, revert, want string }{
		{"none", "", live},
		{"a message", `,"revert":{"messageID":"m3","snapshot":"5a"}`, "user one|assistant 1\nuser two|assistant I look.*c1|tool c1 a.go|assistant 2"},
		{"a part", `,"revert":{"messageID":"m4","partID":"p6"}`, "user one|assistant 1|user two|assistant I look.*c1|tool c1 a.go\nassistant 2"},
		{"the first part", `,"revert":{"messageID":"m4","partID":"p4"}`, "user one|assistant 1|user two\nassistant I look.*c1|tool c1 a.go|assistant 2"},
		{"all", `,"revert":{"messageID":"m1"}`, "\n" + live},
		{"a message that is not there", `,"revert":{"messageID":"m9"}`, live},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := conversations(t, `{"info":{"id":"ses_1"`+tt.revert+`},`+messages); got != tt.want {
				t.Errorf("%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestRewinds: where the user went back to an earlier message and on from there, the rest stands beside the session.
func TestRewinds(t *testing.T) {
	gemini := func(lines ...string) string {
		all := `{"sessionId":"g","projectHash":"00"}`
		for _, l := range lines {
			if id, text, ok := strings.Cut(l, " "); ok {
				kind := map[byte]string{'u': "user", 'm': "gemini"}[id[0]]
				l = fmt.Sprintf(`{"id":%q,"type":%q,"content":%q}`, id, kind, text)
			} else {
				l = fmt.Sprintf(`{"$rewindTo":%q}`, l)
			}
			all += "\n" + l
		}
		return all
	}
	qwen := func(lines ...string) (all string) {
		for i, l := range lines {
			parent, text, _ := strings.Cut(l, " ")
			message := fmt.Sprintf(`"type":%q,"message":{"role":"user","parts":[{"text":%q}]}`, []string{"user", "assistant"}[i%2], text)
			if text == "" {
				message = `"type":"system","subtype":"rewind","systemPayload":{"truncatedCount":2}`
			}
			all += fmt.Sprintf(`{"uuid":"%d","parentUuid":%q,"sessionId":"q",%s}`+"\n", i+1, parent, message)
		}
		return all
	}
	copilot := func(lines ...string) (all string) {
		for i, l := range lines {
			kind, text, _ := strings.Cut(l, " ")
			data := fmt.Sprintf(`{"content":%q}`, text)
			if kind == "session.snapshot_rewind" {
				data = fmt.Sprintf(`{"upToEventId":%q}`, text)
			}
			all += fmt.Sprintf(`{"type":%q,"id":"%d","timestamp":"2026-11-02T08:00:00Z","data":%s}`+"\n", kind, i+1, data)
		}
		return all
	}
	const back = "session.snapshot_rewind"
	for _, tt := range []struct{ name, session, want string }{
		{"Gemini CLI", gemini("u1 one", "m1 1", "u2 two", "m2 2", "u2", "u3 three"), "user one|assistant 1|user three\nuser two|assistant 2"},
		{"Gemini CLI, twice", gemini("u1 one", "m1 1", "u2 two", "u2", "u3 three", "m3 3", "u3", "u4 four"), "user one|assistant 1|user four\nuser two\nuser three|assistant 3"},
		{"Gemini CLI, to what was taken back", gemini("u1 one", "u2 two", "u2", "u2", "u3 three"), "user three\nuser two\nuser one"},
		{"Gemini CLI, to nothing", gemini("u1 one", "m1 1", "u9", "u2 two"), "user two\nuser one|assistant 1"},
		{"Qwen Code", qwen(" one", "1 1", "2 two", "3 2", "2", "5 3"), "user one|assistant 1|assistant 3\nuser two|assistant 2"},
		{"Qwen Code, to the first", qwen(" one", "1 1", "1 two"), "user one|user two\nassistant 1"},
		{"Copilot CLI", copilot("user.message one", "assistant.message 1", "user.message two", "assistant.message 2", back+" 3", "user.message three"), "user one|assistant 1|user three\nuser two|assistant 2"},
		{"Copilot CLI, to nothing", copilot("user.message one", back+" 9", "user.message two"), "user one|user two"},
		{"Copilot CLI, to what was taken back", copilot("user.message one", "user.message two", back+" 2", "user.message three", back+" 2", "user.message four"), "user one|user three|user four\nuser two"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := conversations(t, tt.session); got != tt.want {
				t.Errorf("%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
