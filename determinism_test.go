package palimpsest_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// digestsWanted makes a run of this test binary print so many digests and nothing
// else.
const digestsWanted = "PALIMPSEST_TEST_DIGESTS"

// TestSameBytesEverywhere: runs under each policy, in a long run 48, in processes with one to four
// processors, each with its own order of maps, give the same plans and the same
// request bodies.
func TestSameBytesEverywhere(t *testing.T) {
	processes, each := 2, len(digestPolicies)/2 // each policy in one other process
	if corpus.Long() {
		processes, each = 4, 2*len(digestPolicies)
	}
	counter := o200k(t)
	if n, err := strconv.Atoi(os.Getenv(digestsWanted)); err == nil {
		for run := range each {
			fmt.Printf("digest %d %s\n", n+run, digest(t, counter, n+run))
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for run := range digestPolicies {
		want = append(want, digest(t, counter, run))
	}
	seen := 0
	for n := range processes {
		c := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.count=1")
		c.Env = append(os.Environ(), digestsWanted+"="+strconv.Itoa(n*each), "GOMAXPROCS="+strconv.Itoa(1+n%4))
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			var run int
			var got string
			if k, err := fmt.Sscanf(line, "digest %d %s", &run, &got); err != nil || k != 2 {
				continue
			}
			seen++
			if got != want[run%len(want)] {
				t.Errorf("run %d in process %d gave %s, want %s", run, n, got, want[run%len(want)])
			}
		}
	}
	if seen != processes*each {
		t.Errorf("%d digests, want %d", seen, processes*each)
	}
}

// digestPolicies are compacted with in turn, each for one API.
var digestPolicies = []policy.Policy{policy.Auto{}, policy.Ladder{}, policy.Session{}, policy.Timeline{}, policy.Workstream{}, policy.Loop{}}

// digest compacts a session step by step under the policy of a run, and takes the
// hash of all plans and request bodies.
func digest(t *testing.T, counter *token.Counter, run int) string {
	t.Helper()
	f, err := transcript.Open(filepath.Join("testdata", "sessions", "import-csv.openai-chat.json"), nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := f.Transcripts[0]
	codecs := []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}}
	p, codec := digestPolicies[run%len(digestPolicies)], codecs[run%len(digestPolicies)%len(codecs)]
	sum := sha256.New()
	var plans store.Memory
	c, err := palimpsest.New(palimpsest.Config{
		Policy: p, Counter: counter, Log: &plans, Plans: &plans, Recall: &palimpsest.Recall{},
		Now: func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		t.Fatal(err)
	}
	th := c.Session(tr.Thread.ID())
	base := prompt.Prompt{Model: "a-model", System: tr.System, Tools: tr.Tools}
	messages := tr.Thread.Messages()
	for part := range 3 {
		from, to := part*len(messages)/3, (part+1)*len(messages)/3
		sent, err := th.PrepareStep(t.Context(), palimpsest.Step{Base: &base, Messages: messages[from:to], Profile: render.For(codec.API()), Budget: 6_000})
		if err != nil {
			t.Fatal(err)
		}
		body, err := codec.Encode(sent.Prompt)
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(body)
	}
	made, err := th.Plans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(made) == 0 {
		t.Errorf("%s made no plan", p.Name())
	}
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	sum.Write(text)
	return fmt.Sprintf("%x", sum.Sum(nil))
}
