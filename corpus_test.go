package palimpsest_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

func TestMain(m *testing.M) {
	corpus.CollectLessOften()
	m.Run()
}

// large is the size in tokens from which a transcript has to be compacted well.
const large = 10_000

// conversations reads transcripts of the corpus, in a long run all.
func conversations(t *testing.T) []transcript.Transcript {
	t.Helper()
	all, err := readConversations(corpus.Dir(t, "transcripts"))
	if err != nil {
		t.Fatal(err)
	}
	least := 30
	if corpus.Long() {
		least = 100
	}
	if len(all) < least {
		t.Fatalf("only %d transcripts were read", len(all))
	}
	return all
}

var readConversations = func() func(dir string) ([]transcript.Transcript, error) {
	var once sync.Once
	var all []transcript.Transcript
	var err error
	read := func(dir string) error {
		var paths []string
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if name := d.Name(); err == nil && !d.IsDir() && name != "README.md" && name != "LICENSE" && name != "index.json" {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, path := range corpus.EveryNth(paths, 6) {
			f, err := transcript.Open(path, nil)
			if errors.Is(err, transcript.ErrEmpty) {
				continue
			}
			if err != nil {
				return err
			}
			for _, tr := range f.Transcripts {
				tr.Title = strings.TrimPrefix(path, filepath.Dir(filepath.Dir(path))+string(filepath.Separator))
				all = append(all, tr)
			}
		}
		return nil
	}
	return func(dir string) ([]transcript.Transcript, error) {
		once.Do(func() { err = read(dir) })
		return all, err
	}
}()

// TestCorpus compacts large transcripts at four budgets and to four APIs, each budget to another
// one: between transcripts every pair of them comes up. It holds the result to what a user may
// expect of it. A12, A16, A21
func TestCorpus(t *testing.T) {
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	codecs := []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}}
	type sized struct {
		transcript.Transcript
		size int
	}
	var found []sized
	for _, tr := range conversations(t) {
		whole := prompt.Prompt{Model: "any-model", System: tr.System, Tools: tr.Tools, Messages: tr.Thread.Messages()}
		if size := counter.Prompt(&whole); size > large {
			found = append(found, sized{tr, size})
		}
	}
	t.Logf("%d transcripts are large enough", len(found))
	least := 10
	if corpus.Long() {
		least = 50
	}
	if len(found) < least {
		t.Errorf("only %d transcripts were large enough", len(found))
	}
	for n, tr := range corpus.EveryNth(found, 7) {
		base := &prompt.Prompt{Model: "any-model", System: tr.System, Tools: tr.Tools}
		t.Run(fmt.Sprintf("%s/%s", tr.Title, tr.Name), func(t *testing.T) {
			t.Parallel()
			for k, budget := range []int{8_000, 16_000, 32_000, tr.size / 2} {
				check(t, tr.Transcript, base, codecs[(n+k)%len(codecs)], counter, budget)
			}
		})
	}
}

func check(t *testing.T, tr transcript.Transcript, base *prompt.Prompt, codec wire.Codec, counter *token.Counter, budget int) {
	t.Helper()
	at := fmt.Sprintf("%s at %d", codec.API(), budget)
	if tr.Prompt != nil && tr.Prompt.Source.API == codec.API() {
		own := *tr.Prompt
		base = &own
	}
	c, err := palimpsest.New(palimpsest.Config{Counter: counter})
	if err != nil {
		t.Fatal(err)
	}
	q := palimpsest.Request{Thread: tr.Thread, Base: base, Budget: budget, Profile: render.For(codec.API())}
	res, err := c.Compact(t.Context(), q)
	if err != nil {
		t.Errorf("%s: %v", at, err)
		return
	}
	if res.After > budget || counter.Prompt(res.Prompt) != res.After {
		t.Errorf("%s: takes %d tokens, reported as %d", at, counter.Prompt(res.Prompt), res.After)
	}
	if !res.Plan.Empty() && res.After < budget*85/100 {
		t.Errorf("%s: only %d tokens are used, of %d before", at, res.After, res.Before)
	}
	body, err := codec.Encode(res.Prompt)
	if err != nil {
		t.Errorf("%s: %v", at, err)
		return
	}
	for _, p := range codec.Validate(body) {
		if !p.Advice {
			t.Errorf("%s: %v", at, p)
		}
	}
	fresh, err := palimpsest.New(palimpsest.Config{Counter: counter})
	if err != nil {
		t.Fatal(err)
	}
	again, err := fresh.Compact(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := codec.Encode(again.Prompt); !bytes.Equal(body, second) {
		t.Errorf("%s: a second run gave other bytes", at)
	}
	verbatim(t, at, tr.Thread, res, budget)
}

// verbatim checks that the task and the last exchange stand as they were said.
// Words that alone would fill a third of the budget may be cut in the middle.
func verbatim(t *testing.T, at string, th *thread.Thread, res *palimpsest.Result, budget int) {
	t.Helper()
	var all strings.Builder
	for _, m := range res.Prompt.Messages {
		all.WriteString(m.Text())
		all.WriteByte('\n')
	}
	first, last, answer := -1, -1, -1
	for i, m := range th.All() {
		switch {
		case m.StartsTurn() && strings.TrimSpace(m.Text()) != "":
			if first < 0 {
				first = i
			}
			last = i
		case m.Role == thread.Assistant && strings.TrimSpace(m.Text()) != "":
			answer = i
		}
	}
	actions := res.Plan.Actions()
	for what, i := range map[string]int{"the task": first, "the last user message": last, "the model's last words": answer} {
		if i < 0 || res.Sizes[i] > budget/3 {
			continue
		}
		m := th.At(i)
		stands := true
		for _, part := range m.Parts {
			if said, ok := part.(thread.Text); ok {
				stands = stands && strings.Contains(all.String(), strings.TrimSpace(said.Text))
			}
		}
		if !stands {
			t.Errorf("%s: %s (message %d, turn %d, %d tokens, %s) does not stand verbatim", at, what, i, m.Turn, res.Sizes[i], actions[m.ID].Action)
		}
	}
	if hidden := len(res.Manifest.Hidden); hidden == 0 && !res.Plan.Empty() {
		t.Errorf("%s: a plan that hides nothing: %v", at, plan.Diff(res.Plan, &plan.Plan{}))
	}
}
