package ownformat_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// listening is a summarizer that remembers what it read as conversation.
type listening struct {
	summarize.Extractive
	heard []string
}

func (l *listening) Summarize(ctx context.Context, in summarize.Input) (summarize.Result, error) {
	for i := range in.Messages {
		m := &in.Messages[i]
		if m.Kind == thread.Recap {
			continue
		}
		for _, p := range m.Parts {
			if text, ok := p.(thread.Text); ok && m.Role != thread.Tool {
				l.heard = append(l.heard, text.Text)
			}
		}
	}
	return l.Extractive.Summarize(ctx, in)
}

// TestOwnPromptsComeBack: a real session is compacted under each policy, written
// for each API and read again. Each summary is known for one, the user's words are
// the user's, and a second compaction reads no summary as conversation. F10
func TestOwnPromptsComeBack(t *testing.T) {
	f, err := transcript.Open(filepath.Join(corpus.Dir(t, "transcripts"), "pi-mono", "before-compaction.jsonl.gz"), nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := f.Transcripts[0]
	messages := tr.Thread.Messages()
	if len(messages) > 300 {
		messages = messages[:300]
	}
	for i := range messages {
		messages[i].ID = ""
	}
	base := &prompt.Prompt{Model: "m", MaxOutput: 1000}
	const window = 24_000
	policies := []policy.Policy{
		policy.Auto{}, policy.Notes{}, policy.Ladder{}, policy.Timeline{}, policy.Loop{ContextLimit: window, MaxOutput: 1000},
		policy.Session{ContextLimit: window}, policy.Workstream{ContextSize: window, Role: thread.User}, policy.Workstream{ContextSize: window},
	}
	codecs := []wire.Codec{anthropic.Codec{}, gemini.Codec{}, openai.Chat{}, openai.Responses{}}
	for n, p := range policies {
		for i, codec := range codecs {
			if !corpus.Long() && i != n%len(codecs) {
				continue // every policy, and every API with one or two of them
			}
			t.Run(p.Name()+"/"+codec.API(), func(t *testing.T) {
				step := palimpsest.Step{Base: base, Profile: render.For(codec.API()), Window: window, Messages: messages}
				shown := compacted(t, palimpsest.Config{Policy: p}, step)
				if !slices.ContainsFunc(shown.Messages, func(m thread.Message) bool { return m.Kind == thread.Recap }) {
					t.Fatal("nothing was compacted")
				}
				body, err := codec.Encode(shown)
				if err != nil {
					t.Fatal(err)
				}
				back, err := codec.Decode(string(body))
				if err != nil {
					t.Fatal(err)
				}
				back.Messages = ownformat.MarkRecaps(back.Messages, nil)
				for i := range back.Messages {
					if m := &back.Messages[i]; m.Role == thread.User {
						m.Kind = injected.MessageKind(m, nil)
					}
				}
				if again, err := codec.Encode(back); err != nil || len(codec.Validate(again)) > len(codec.Validate(body)) {
					t.Errorf("it is not valid any more: %v, %v", err, codec.Validate(again))
				} else if (codec.API() == wire.Anthropic || codec.API() == wire.Gemini) && string(again) != string(body) {
					t.Error("the bytes changed")
				}
				if got, want := said(back.Messages, thread.Plain), said(shown.Messages, thread.Plain); !slices.Equal(got, want) {
					t.Errorf("the user said %d texts, want %d:\n%.300q\n%.300q", len(got), len(want), got, want)
				}
				recaps := map[string]bool{}
				for i := range shown.Messages {
					if m := &shown.Messages[i]; m.Kind == thread.Recap {
						recaps[strings.TrimSpace(m.Text())] = true
						delete(recaps, "Understood.") // where it is joined to what follows, it stays there
					}
				}
				for i := range back.Messages {
					m := &back.Messages[i]
					for _, part := range m.Parts {
						if text, ok := part.(thread.Text); ok && m.Kind != thread.Recap && recaps[strings.TrimSpace(text.Text)] {
							t.Errorf("message %d is not known as ours: %.200q", i, text.Text)
						}
					}
				}
				// It goes on in another session.
				log, err := thread.New("again").Append(back.Messages...)
				if err != nil {
					t.Fatal(err)
				}
				if plain := len(said(shown.Messages, thread.Plain)); log.Turns() > plain {
					t.Errorf("%d turns from %d messages of the user", log.Turns(), plain)
				}
				ear := &listening{}
				compacted(t, palimpsest.Config{Policy: p, Summarizer: ear}, palimpsest.Step{
					Base: base, Profile: step.Profile, Window: window / 3, Messages: back.Messages,
				})
				for _, text := range ear.heard {
					if recaps[strings.TrimSpace(text)] || strings.Contains(text, "[Summary v1.0]") {
						t.Errorf("a summary was read as conversation: %.200q", text)
					}
				}
			})
		}
	}
}

// compacted is the prompt of a step after a compaction. Where there is nothing
// left to compact it is what the step is shown.
func compacted(t *testing.T, config palimpsest.Config, step palimpsest.Step) *prompt.Prompt {
	t.Helper()
	c, err := palimpsest.New(config)
	if err != nil {
		t.Fatal(err)
	}
	th := c.Session("t")
	p, err := th.PrepareStep(t.Context(), step)
	if err != nil {
		t.Logf("prepare: %v", err)
	}
	step.Messages = nil
	if _, err := th.Compact(t.Context(), step, ""); err != nil {
		t.Logf("compact: %v", err)
		return promptOf(p)
	}
	if p, err = th.PrepareStep(t.Context(), step); err != nil {
		t.Logf("prepare again: %v", err)
	}
	return promptOf(p)
}

func promptOf(p *palimpsest.Prepared) *prompt.Prompt {
	if p == nil {
		return nil
	}
	return p.Prompt
}

// said are the texts of the user of a kind.
func said(messages []thread.Message, kind thread.Kind) []string {
	var out []string
	for i := range messages {
		if m := &messages[i]; m.Role == thread.User && m.Kind == kind {
			out = append(out, strings.TrimSpace(m.Text()))
		}
	}
	return out
}
