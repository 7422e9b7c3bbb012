package policy_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/injectedtest"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// refusals are ways to say no, and to say nothing. None is written as in the list that the check
// knows the words from.
var refusals = []string{
	"I'm sorry, I can't help with that.",
	"I’m sorry, but I can’t assist with that request.",
	"I cannot comply with this request.",
	"Sorry — I won't summarize this conversation, since it appears to contain material that goes against my usage guidelines. Is there anything else I can do for you?",
	"As a large language model I am unable to process this content. Please try again with a different question.",
	"I do not have enough information to write a summary. Could you please share the conversation?",
	"Unfortunately, I can't continue.\n\nIf you have other questions, please let me know, and I will be glad to help.",
	"## Current State\n- I can't help with this.\n## Pending Work\n- [ ] I can't help with this.",
	"This request has been declined for safety reasons.",
	"Of course! What would you like me to help you with today?",
	"Es tut mir leid, dabei kann ich nicht helfen.",
	"Entschuldigung, diese Anfrage kann ich leider nicht bearbeiten. Kann ich sonst noch etwas für Sie tun?",
	"Je suis désolé, je ne peux pas vous aider avec cela.",
	"Lo siento, no puedo ayudarte con esa petición.",
	"Desculpe, não posso ajudar com esse pedido.",
	"Mi dispiace, non posso aiutarti con questo.",
	"Извините, я не могу помочь с этим.",
	"抱歉，我无法协助处理这个请求。",
	"申し訳ございませんが、お手伝いできません。",
	"죄송합니다. 도와드릴 수 없습니다.",
}

// polite is the same conversation in which much is asked for and apologized for, so that the words of
// a refusal stand in it.
func polite() []thread.Message {
	messages := injectedtest.Conversation(injectedtest.Attack{User: []string{"Please mend the bell."}})
	for i := range messages {
		if m := &messages[i]; m.Role == thread.Assistant {
			text := "Sorry, I can't do everything at once, but I can help with that request. Unfortunately I am unable to continue without your help. " + refusals[i%len(refusals)]
			m.Parts = append([]thread.Part{thread.Text{Text: text}}, m.Parts...)
		}
	}
	return messages
}

// TestRefusalsAreNoSummary: what a model says without naming anything of the messages is a failure,
// under all policies and in all languages: code writes the summary instead.
func TestRefusalsAreNoSummary(t *testing.T) {
	plain := injectedtest.Conversation(injectedtest.Attack{User: []string{"Please mend the bell."}})
	for n, refusal := range refusals {
		for _, name := range []string{"auto", "session", "timeline", "workstream", "loop"} {
			for about, messages := range map[string][]thread.Message{"plain": plain, "polite": polite()} {
				t.Run(fmt.Sprint(n, "/", name, "/", about), func(t *testing.T) {
					t.Parallel()
					answer := told{text: refusal}
					if name == "workstream" || name == "auto" {
						items := func(key string) string { return fmt.Sprintf(`[{%q:%q,"sources":[1,2,3]}]`, key, refusal) }
						answer.json = fmt.Sprintf(`{"facts":%s,"open_items":%s,"summary":{"key_facts":[%q],"conversation_flow":[%q],"open_threads":[]},"state_delta":{}}`, items("text"), items("description"), refusal, refusal)
					}
					shown, rest := compactedOnce(t, six(answer, "")[name], slices.Clone(messages))
					said, _, _ := strings.Cut(strings.TrimPrefix(refusal, "## Current State\n- "), "\n")
					if about == "plain" && strings.Contains(shown, said) {
						t.Errorf("the refusal stands in the summary:\n%s", shown)
					}
					if !strings.Contains(shown+rest, injectedtest.Request) {
						t.Errorf("the task is not told:\n%s%s", shown, rest)
					}
					code, _ := compactedOnce(t, six(nil, "")[name], slices.Clone(messages))
					if len(shown) < len(code)/2 {
						t.Errorf("%d bytes of a summary, and by code %d:\n%s", len(shown), len(code), shown)
					}
				})
			}
		}
	}
}

// TestShortSummaries: a few words are a summary if they name what was spoken of.
func TestShortSummaries(t *testing.T) {
	for _, tt := range []struct{ said, summary string }{
		{"Please find me a train to Lisbon for Tuesday.", "A train to Lisbon is wanted."},
		{"How do I cook lentils?", "Lentils."},
		{"Set the limit to 250.", "The limit is 250."},
		{"Bitte die Heizung im Keller prüfen.", "Die Heizung wird geprüft."},
		{"Peux-tu corriger la facture de mars ?", "Corriger la facture."},
		{"Почини часы на башне.", "Часы на башне."},
		{"请修理塔上的时钟。", "修理塔上的时钟。"},
		{"塔の時計を直してください。", "塔の時計を直す。"},
		{"탑의 시계를 고쳐 주세요.", "탑의 시계를 고친다."},
		{"ok", "ok"},
	} {
		g := summarize.NewGrounds(t.Context(), []thread.Message{speak(thread.User, tt.said)}, "")
		if !g.Names(tt.summary) {
			t.Errorf("%q is taken to say nothing of %q", tt.summary, tt.said)
		}
	}
}

// TestOwnSummariesNameSomething: no summary that an agent's own model wrote is taken for a refusal,
// of the messages before it or of few of them; refusals of the same messages are.
func TestOwnSummariesNameSomething(t *testing.T) {
	seen, passed := 0, 0
	check := func(name string, messages []thread.Message, text string) {
		seen++
		for _, part := range [][]thread.Message{messages, messages[max(0, len(messages)-20):]} {
			g := summarize.NewGrounds(t.Context(), part, "")
			p, err := g.Prose(text)
			if len(part) == len(messages) && (err != nil || !g.Names(p.Text)) || !g.Names(text) {
				t.Errorf("%s: of %d messages, it is refused: %v", name, len(part), err)
			}
			for _, refusal := range refusals {
				if g.Names(refusal) {
					passed++
					t.Logf("%s, of %d messages: %s", name, len(part), refusal)
				}
			}
		}
	}
	err := filepath.WalkDir(corpus.Dir(t, "transcripts"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !corpus.Long() && !strings.HasPrefix(d.Name(), "long-9") && !strings.Contains(path, "own-runs") {
			return err
		}
		file, err := transcript.Open(path, nil)
		if err != nil {
			return nil // not all files there are transcripts
		}
		for _, tr := range file.Transcripts {
			from := 0
			for n, c := range tr.Compactions {
				at, ok := tr.Thread.Index(c.Summary)
				if !ok || at <= from {
					continue
				}
				check(fmt.Sprint(filepath.Base(path), " ", n), tr.Thread.Messages()[from:at:at], ownText(tr.Thread.At(at).Text()))
				from = at
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen == 0 {
		t.Fatal("the transcripts hold no summary")
	}
	t.Logf("%d summaries; of %d refusals %d pass", seen, 2*seen*len(refusals), passed)
	if 20*passed > 2*seen*len(refusals) {
		t.Errorf("%d of %d refusals pass", passed, 2*seen*len(refusals))
	}
}
