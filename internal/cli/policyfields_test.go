package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// talk is a conversation with a daemon, the same each time.
type talk struct {
	steps          int
	model          string
	window, output int
	lines          int           // of each result; 0 is 40
	large          int           // lines of every sixth result
	every          int           // steps between messages of the user; 0 is 5
	mention        int           // how many artifacts of the last prompt the agent names at every third step
	determinism    bool          // results say what their sources looked like
	age            time.Duration // how old the first half is
	huge           int           // bytes that every message of the agent has beside
	again          bool          // asks twice for the plan that would be made
	model2         *llmtest.Server
	structured     bool // results hold data beside their text
	misses         bool // the agent says that it does not see something any more
}

// shownArtifact finds pointers in a prompt.
var shownArtifact = regexp.MustCompile(`artifact:(art_[0-9a-z]+)`)

// hold has the conversation, and writes down what the daemon did: each prompt with
// its size, the plans, what was externalized, and what models were asked.
func (k talk) hold(t *testing.T, address string) string {
	t.Helper()
	c, ctx := client(t, address, ""), t.Context()
	var b strings.Builder
	th, err := c.CreateThread(ctx, api.NewThread{ID: "t"})
	if err != nil {
		t.Fatal(err)
	}
	tools := []neutral.Tool{}
	for _, name := range []string{"Grep", "Read", "linear_list", "Bash", "make_order"} {
		tools = append(tools, neutral.Tool{Name: name, Description: "a tool", Schema: json.RawMessage(`{"type":"object"}`)})
	}
	text := func(s string) []neutral.Part { return []neutral.Part{{Type: neutral.TextPart, Text: s}} }
	when := func(n int) time.Time {
		if k.age > 0 && n < k.steps/2 {
			return time.Now().UTC().Add(-k.age)
		}
		return time.Time{}
	}
	news := []neutral.Message{{Role: "user", Parts: text("Please write the queue in parts. Never touch the file vendor.lock."), Time: when(0)}}
	version, aside := 0, []string{}
	names := []string{"Grep", "Read", "linear_list", "Bash", "make_order"}
	for n := range k.steps {
		step := api.Step{Base: &neutral.Prompt{Model: k.model, Tools: tools, System: []neutral.System{{Text: "You write queues."}}}, Messages: news, Window: k.window, Output: k.output}
		p, err := c.Prepare(ctx, th.ID, version, step)
		if err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		prompt, err := json.Marshal(p.Prompt)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "== %d: %d tokens, plan %d\n%s\n", n, p.Tokens, p.PlanVersion, unmade(prompt))
		for _, found := range shownArtifact.FindAllStringSubmatch(string(prompt), -1) {
			if !slices.Contains(aside, found[1]) {
				aside = append(aside, found[1])
			}
		}
		said := fmt.Sprintf("We decided to use Go for part %d. The risk is that part %d breaks. Which port does part %d use? I write src/part%d.go next.", n, n, n, n)
		if n%3 == 0 {
			for _, id := range aside[:min(k.mention, len(aside))] {
				said += " I look at " + id + " again."
			}
		}
		if k.misses {
			said += " I no longer have the earlier output in my context."
		}
		if k.huge > 0 {
			said += strings.Repeat(" word", k.huge/5)
		}
		id, tool := fmt.Sprint("call_", n), names[n%len(names)]
		args, _ := json.Marshal(map[string]any{"file_path": fmt.Sprintf("src/part%d.go", n/len(names)), "pattern": fmt.Sprint("Handle", n)})
		answer, err := c.Finish(ctx, th.ID, p.Version, api.Answer{Messages: []neutral.Message{{Role: "assistant", Time: when(n), Parts: append(text(said), neutral.Part{Type: neutral.ToolCallPart, CallID: id, Tool: tool, Arguments: string(args)})}}})
		if err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		version = answer.Version
		lines := k.lines
		if lines == 0 {
			lines = 40
		}
		if k.large > 0 && n%6 == 5 {
			lines = k.large
		}
		var out strings.Builder
		fmt.Fprintf(&out, "order_id: ORD-%d\n", n)
		for i := range lines {
			fmt.Fprintf(&out, "src/file_%02d_%02d.go:%d: func Handle%d(r *Request) error\n", n, i, i*7, n*100+i)
		}
		result := neutral.Part{Type: neutral.ToolResultPart, CallID: id, Tool: tool, Content: text(out.String())}
		if k.structured {
			result.Structured = json.RawMessage(fmt.Sprintf(`{"order_id":"ORD-%d"}`, n))
		}
		if k.determinism {
			result.Determinism = &thread.Determinism{ContentHash: "h1"}
		}
		news = []neutral.Message{{Role: "tool", Parts: []neutral.Part{result}, Time: when(n)}}
		every := k.every
		if every == 0 {
			every = 5
		}
		if n%every == every-1 {
			answer, err := c.Append(ctx, th.ID, version, api.Append{Messages: append(news, neutral.Message{Role: "assistant", Parts: text(fmt.Sprintf("Part %d is done.", n))})})
			if err != nil {
				t.Fatal(err)
			}
			version, news = answer.Version, []neutral.Message{{Role: "user", Parts: text(fmt.Sprintf("Go on with part %d, and never use port %d.", n+1, 8000+n))}}
		}
	}
	if k.again {
		for range 2 {
			if _, err := c.DryRun(ctx, th.ID, api.Step{Base: &neutral.Prompt{Model: k.model, Tools: tools}, Window: k.window, Output: k.output}); err != nil {
				t.Log(err)
			}
		}
	}
	plans, err := c.Plans(ctx, th.ID, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for v := 1; v <= plans.Current; v++ {
		p, err := c.Plan(ctx, th.ID, v)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := json.Marshal(p)
		fmt.Fprintf(&b, "plan %d: %s\n", v, unmade(data))
	}
	artifacts, err := c.Artifacts(ctx, th.ID, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := json.Marshal(artifacts)
	fmt.Fprintf(&b, "aside: %s\n", unmade(data))
	if k.model2 != nil {
		for _, r := range k.model2.Requests() {
			fmt.Fprintf(&b, "asked: %s\n", r.Body)
		}
	}
	return b.String()
}

// unmade takes out when something was made or said: two conversations with the same
// words are not held in the same second.
func unmade(data []byte) string {
	return madeAt.ReplaceAllString(string(data), "AT")
}

// madeAt finds times, in fields and in the text of summaries.
var madeAt = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// writer is a provider that writes summaries: at once, or so slowly that a client which
// waits a millisecond gets none. One that waits longer than it should gets one.
func writer(t *testing.T, slow bool) *llmtest.Server {
	t.Helper()
	hold := make(chan struct{})
	if slow {
		patient := time.AfterFunc(20*time.Second, func() { close(hold) })
		t.Cleanup(func() { patient.Stop() })
	}
	items := func(texts ...string) map[string]any {
		var set []any
		for _, text := range texts {
			set = append(set, map[string]any{"text": text, "status": "open", "by": "assistant"})
		}
		return map[string]any{"set": set, "remove": []string{}}
	}
	delta := map[string]any{}
	for _, name := range []string{"key_decisions", "active_constraints", "tasks", "open_questions", "risks", "artifacts", "agent_contributions"} {
		delta[name] = items("We decided to use Go for part 0", "Please write the queue in parts", "Never touch the file vendor.lock")
	}
	structured, _ := json.Marshal(map[string]any{
		"summary":     map[string]any{"key_facts": []string{"We decided to use Go for part 0.", "Please write the queue in parts.", "The moon is made of cheese_9000."}, "conversation_flow": []string{"We decided to use Go for part 0."}, "open_threads": []string{}},
		"state_delta": delta,
	})
	items4 := `{"facts":[{"text":"We decided to use Go for part 0.","sources":[1,2,3,4,5,6]},{"text":"The moon is made of cheese_9000.","sources":[1]}],"decisions":[],"plan":[],"open_items":[],"failed_attempts":[],"tool_outcomes":[]}`
	return llmtest.NewProvider(t, llmtest.Provider{
		Windows: map[string]int{"gpt-5-mini": 400_000},
		Reply: func(r llmtest.Request) llmtest.Answer {
			text := "We decided to use Go for part 0. Please write the queue in parts. The moon is made of cheese_9000."
			switch {
			case strings.Contains(r.Body, "state_delta"):
				text = string(structured)
			case strings.Contains(r.Body, "failed_attempts"):
				text = items4
			case strings.Contains(r.Body, "which sentences still stand"):
				text = `{"stand":[1,2,3],"changes":[]}`
			}
			answer := llmtest.Answer{Text: text, Usage: wire.Usage{Input: 1000, Output: 50, Known: true}}
			if slow {
				answer.Hold = hold
			}
			return answer
		},
	})
}

// fieldCase is what shows that a field acts: a file, what of it is changed, and a
// conversation in which the change is seen. What is not set is as for the base.
type fieldCase struct {
	change any            // the new value of the field
	with   map[string]any // what else the file says, by path, in both files
	talk   *talk
	model  bool   // a model writes the summaries
	slow   bool   // it takes its time once the field is changed
	embeds bool   // a model makes vectors
	tool   string // whose field it is; empty is Grep
}

// bases are the file and the conversation of each base.
var fieldBases = map[string]struct {
	with map[string]any
	talk talk
}{
	"auto":          {map[string]any{"trigger.favor": "cost", "tools.overrides": map[string]any{"Grep": map[string]any{"durability": "non_replayable"}}}, talk{steps: 24, window: 12_000, output: 1_000, large: 90}},
	"ladder":        {map[string]any{"trigger.max_input_tokens": 14_000, "ladder.externalize_threshold_tokens": 2_000}, talk{steps: 24, window: 20_000, output: 1_000, large: 120}},
	"session":       {map[string]any{"trigger.context_limit": 12_000, "trigger.system_reserve": 300, "trigger.output_reserve": 300, "trigger.safety_buffer": 300}, talk{steps: 24, window: 20_000, output: 1_000}},
	"timeline":      {map[string]any{"trigger.max_tokens": 9_000, "cut.keep_recent": 2_000}, talk{steps: 24, window: 20_000, output: 1_000}},
	"workstream":    {map[string]any{"trigger.context_size": 16_000, "trigger.output_reserve": 1_000, "trigger.safety_margin": 1_000}, talk{steps: 24, window: 20_000, output: 1_000}},
	"loop":          {map[string]any{"trigger.context_limit": 12_000, "trigger.max_output": 1_000}, talk{steps: 24, window: 20_000, output: 1_000}},
	"last-messages": {nil, talk{steps: 24, window: 10_000, output: 1_000}},
	"last-tokens":   {map[string]any{"cut.tokens": 3_000}, talk{steps: 24, window: 10_000, output: 1_000, every: 12}},
	"last-turns":    {map[string]any{"cut.turns": 1}, talk{steps: 24, window: 10_000, output: 1_000}},
	"ratio":         {map[string]any{"cut.ratio": 0.3}, talk{steps: 24, window: 10_000, output: 1_000}},
}

// policyText writes a policy file of the values by path.
func policyText(t *testing.T, base string, values ...map[string]any) string {
	t.Helper()
	root := map[string]any{"base": base}
	for _, all := range values {
		for _, path := range slices.Sorted(maps.Keys(all)) {
			at, keys := root, strings.Split(path, ".")
			for _, key := range keys[:len(keys)-1] {
				if _, ok := at[key].(map[string]any); !ok {
					at[key] = map[string]any{}
				}
				at = at[key].(map[string]any)
			}
			at[keys[len(keys)-1]] = all[path]
		}
	}
	// Where a rung is off, prices do not count, and what goes by them is refused.
	if rungs, _ := root["ladder"].(map[string]any); base == "auto" {
		for name := range rungs {
			if trigger, ok := root["trigger"].(map[string]any); ok && strings.HasPrefix(name, "enable_") {
				delete(trigger, "favor")
			}
		}
	}
	data, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// talkedTo has a conversation with a daemon under a policy file: as `serve` makes it,
// but that nothing is prepared in the background, since when that is ready is chance.
func talkedTo(t *testing.T, file string, k talk) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return heldWith(t, map[string]string{"store": "memory:", "policy": path}, k)
}

// heldWith is held for any settings.
func heldWith(t *testing.T, flags map[string]string, k talk) string {
	t.Helper()
	address, stop := servedWith(t, flags, nil)
	defer stop()
	return k.hold(t, address)
}

// servedWith starts a daemon with settings, after a change that no setting makes.
func servedWith(t *testing.T, flags map[string]string, change func(*daemon.Config)) (address string, stop func()) {
	t.Helper()
	loaded, err := config.Load(config.Sources{Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	made, err := newServing(loaded, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	db, err := made.store().open(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.attachStore(t.Context(), db); err != nil {
		db.Close()
		t.Fatal(err)
	}
	made.daemon.Jobs = nil
	if change != nil {
		change(&made.daemon)
	}
	d, err := daemon.New(made.daemon)
	if err != nil {
		db.Close()
		t.Fatal(err)
	}
	server := httptest.NewServer(d)
	return server.URL, func() {
		d.Stop()
		server.Close()
		db.Close()
	}
}

// fieldPaths lists the fields of a base as the schema has them, those of single
// tools as tools.overrides.NAME.
func fieldPaths(t *testing.T, base string) []string {
	t.Helper()
	var schema struct {
		Defs map[string]map[string]any `json:"$defs"`
	}
	if err := json.Unmarshal(policyfile.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	var paths []string
	var walk func(path string, s map[string]any)
	walk = func(path string, s map[string]any) {
		if either, ok := s["anyOf"].([]any); ok && path == "summarizer" {
			s = either[0].(map[string]any)
		}
		if more, ok := s["additionalProperties"].(map[string]any); ok {
			s = more
		}
		properties, ok := s["properties"].(map[string]any)
		if !ok {
			paths = append(paths, path)
			return
		}
		for name, property := range properties {
			if p, ok := property.(map[string]any); ok {
				walk(strings.TrimPrefix(path+"."+name, "."), p)
			}
		}
	}
	walk("", schema.Defs[base])
	slices.Sort(paths)
	return paths
}

// firstDifference shows where two texts part.
func firstDifference(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	near := func(s string) string { return s[max(0, n-200):min(len(s), n+300)] }
	return fmt.Sprintf("at byte %d of %d and %d:\n%q\n%q", n, len(a), len(b), near(a), near(b))
}

// TestEveryFieldActs: each field of each policy file, changed, changes what a
// running daemon does. A field that is not in the table fails. F6, A19
func TestEveryFieldActs(t *testing.T) {
	if testing.Short() {
		t.Skip("has two hundred conversations")
	}
	alone(t)
	shown := map[string]bool{}
	for _, base := range corpus.EveryNth(policyfile.Bases(), 3) { // all in a long run
		t.Run(base, func(t *testing.T) {
			usual := fieldBases[base]
			file := policyText(t, base, usual.with)
			first := talkedTo(t, file, usual.talk)
			if second := talkedTo(t, file, usual.talk); first != second {
				t.Errorf("the same conversation is treated otherwise a second time: the test shows nothing\n%s", firstDifference(first, second))
			}
			known := map[string]string{} // conversations that were held before, by file and talk
			for n, path := range fieldPaths(t, base) {
				if shown[path] && !corpus.Long() {
					continue // under another base
				}
				shown[path] = true
				f, ok := fieldCases[base+" "+path]
				if !ok {
					if f, ok = fieldCases[path]; !ok {
						t.Errorf("%s: nothing shows that it acts; add it to fieldCases", path)
						continue
					}
				}
				if n%6 > 0 && !corpus.Long() {
					continue
				}
				k := usual.talk
				if f.talk != nil {
					k = *f.talk
				}
				with := maps.Clone(f.with)
				if with == nil {
					with = map[string]any{}
				}
				if f.embeds {
					environment(t, vectors(t))
				}
				hold := func(change map[string]any) string {
					if f.model {
						k.model2 = writer(t, f.slow && len(change) > 0)
						environment(t, k.model2.URL)
						with["summarizer.use"] = []string{"openai:gpt-5-mini"}
					}
					if strings.HasPrefix(path, "tools.overrides.") && len(change) > 0 {
						change = overriding(usual.with, cmp.Or(f.tool, "Grep"), strings.TrimPrefix(path, "tools.overrides."), f.change)
					}
					file := policyText(t, base, usual.with, with, change)
					key := fmt.Sprintf("%s %+v", file, k)
					if known[key] == "" || f.model {
						known[key] = talkedTo(t, file, k)
					}
					return known[key]
				}
				if before, after := hold(nil), hold(map[string]any{path: f.change}); before == after {
					t.Errorf("%s: %v changes nothing", path, f.change)
				}
			}
		})
	}
}

// vectors is a server that says of each text how many digits it has.
func vectors(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.URL.Path != "/v1/embeddings" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		var data []map[string]any
		for i, text := range asked.Input {
			digits := len(text) - len(strings.Map(func(c rune) rune {
				if c >= '0' && c <= '9' {
					return -1
				}
				return c
			}, text))
			data = append(data, map[string]any{"index": i, "embedding": []int{1, digits % 13}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// overriding is the settings of single tools with one more, by path.
func overriding(file map[string]any, tool, field string, value any) map[string]any {
	tools, _ := file["tools.overrides"].(map[string]any)
	tools = maps.Clone(tools)
	if tools == nil {
		tools = map[string]any{}
	}
	fields, _ := tools[tool].(map[string]any)
	fields = maps.Clone(fields)
	if fields == nil {
		fields = map[string]any{}
	}
	fields[field] = value
	tools[tool] = fields
	return map[string]any{"tools.overrides": tools}
}

// fieldCases are by path, or by base and path where bases differ.
var fieldCases = map[string]fieldCase{
	"trigger.favor":                                {change: "quality"},
	"trigger.hard":                                 {change: 0.6},
	"trigger.target":                               {change: 0.3},
	"trigger.working":                              {change: 1_000, talk: &talk{steps: 24, window: 12_000, output: 1_000, model: "claude-sonnet-4-5"}},
	"trigger.max_input_tokens":                     {change: 12_000},
	"trigger.soft_threshold_percent":               {change: 0.6},
	"trigger.safety_buffer_tokens":                 {change: 3_000},
	"trigger.rehydration_reserve_tokens":           {change: 100},
	"trigger.max_rehydration_artifacts":            {change: 0, talk: mentions},
	"trigger.context_limit":                        {change: 9_000},
	"trigger.system_reserve":                       {change: 3_000},
	"session trigger.output_reserve":               {change: 3_000},
	"workstream trigger.output_reserve":            {change: 8_000},
	"trigger.safety_buffer":                        {change: 3_000},
	"trigger.threshold_percent":                    {change: 0.5},
	"trigger.max_tokens":                           {change: 7_000},
	"trigger.share":                                {change: 0.5},
	"trigger.context_size":                         {change: 9_000},
	"trigger.safety_margin":                        {change: 8_000},
	"trigger.long_context":                         {change: true, with: map[string]any{"trigger.context_limit": "auto"}, talk: &talk{steps: 14, model: "sonnet-of-ours", huge: 60_000, lines: 1}},
	"trigger.max_output":                           {change: 5_000},
	"trigger.utilization":                          {change: 0.5},
	"cut.messages":                                 {change: 4},
	"cut.tokens":                                   {change: 1_000},
	"cut.split_turns":                              {change: false},
	"cut.turns":                                    {change: 2},
	"cut.ratio":                                    {change: 0.1},
	"cut.preserve_recent_turns":                    {change: 1},
	"cut.keep":                                     {change: 4},
	"cut.keep_recent":                              {change: 1_000},
	"cut.tail":                                     {change: 3},
	"cut.preserve":                                 {change: 0.2},
	"ladder.enable_externalization":                {change: false},
	"ladder.enable_summarization":                  {change: false},
	"ladder.enable_clearing":                       {change: false, with: map[string]any{"ladder.enable_summarization": false}},
	"ladder.enable_dropping":                       {change: false, with: map[string]any{"ladder.enable_summarization": false, "ladder.enable_clearing": false}},
	"auto ladder.enable_dropping":                  {change: false, with: map[string]any{"ladder.enable_externalization": false, "ladder.enable_summarization": false, "ladder.enable_clearing": false}},
	"ladder ladder.enable_dropping":                {change: false, with: map[string]any{"ladder.enable_externalization": false, "ladder.enable_summarization": false, "ladder.enable_clearing": false}, talk: &talk{steps: 7, window: 20_000, output: 1_000, lines: 50, large: 220}},
	"ladder.externalize_threshold_tokens":          {change: 700},
	"ladder.summarize_target_ratio":                {change: 0.05},
	"summary.tokens":                               {change: 100},
	"summary.prefix_tokens":                        {change: 40, talk: &talk{steps: 24, window: 20_000, output: 1_000, every: 100}},
	"summary.rollup_tokens":                        {change: 60},
	"summary.role":                                 {change: "user"},
	"summary.show_state":                           {change: true},
	"transcript.tool_names":                        {change: []string{"Bash"}},
	"transcript.tool_prefixes":                     {change: []string{"Ba"}},
	"transcript.chunk_chars":                       {change: 2_000, model: true},
	"state.key_decisions":                          {change: 0, model: true},
	"state.active_constraints":                     {change: 0, model: true},
	"state.tasks":                                  {change: 0, model: true},
	"state.open_questions":                         {change: 0, model: true},
	"state.risks":                                  {change: 0, model: true},
	"state.artifacts":                              {change: 0, model: true},
	"state.agent_contributions":                    {change: 0, model: true},
	"expire.ttl":                                   {change: "1h", talk: &talk{steps: 8, window: 20_000, output: 1_000, age: 5 * time.Hour}},
	"cache_points.offset":                          {change: 1, talk: &talk{steps: 30, window: 20_000, output: 1_000, every: 2, lines: 12}},
	"cache_points.min_rounds":                      {change: 1, with: map[string]any{"cache_points.offset": 2}, talk: &talk{steps: 30, window: 20_000, output: 1_000, every: 4, lines: 12}},
	"counter":                                      {change: "chars/4"},
	"summarizer.use":                               {change: []string{"extractive"}, model: true},
	"summarizer.rules":                             {change: "table", model: true},
	"summarizer.standing":                          {change: 0.01, talk: &talk{steps: 40, window: 12_000, output: 1_000, every: 1}},
	"summarizer.timeout":                           {change: "1ms", model: true, slow: true},
	"summarizer.temperature":                       {change: 1.5, model: true},
	"summarizer.max_output":                        {change: 777, model: true},
	"summarizer.chunk_characters":                  {change: 1_000, model: true},
	"summarizer.trust":                             {change: "model", model: true},
	"summarizer.cache":                             {change: false, model: true, talk: &talk{steps: 16, window: 12_000, output: 1_000, again: true}},
	"last-turns summarizer.cache":                  {change: false, model: true, talk: &talk{steps: 16, window: 10_000, output: 1_000, again: true}},
	"rehydration.enabled":                          {change: false, talk: mentions},
	"rehydration.max_artifacts_per_turn":           {change: 1, talk: mentions},
	"rehydration.max_tokens_per_artifact":          {change: 200, talk: mentions},
	"rehydration.total_budget_tokens":              {change: 300, talk: mentions},
	"rehydration.cooldown_turns":                   {change: 6, talk: mentions, with: map[string]any{"ladder.enable_summarization": false}},
	"rehydration.auto_rehydrate_sensitivities":     {change: []string{"public"}, talk: mentions},
	"retrieval.enabled":                            {change: true, with: map[string]any{"retrieval.tokens": 1_500}},
	"retrieval.tokens":                             {change: 300, with: map[string]any{"retrieval.enabled": true}},
	"retrieval.vector_store":                       {change: "openai:text-embedding-3-small", with: map[string]any{"retrieval.enabled": true}, embeds: true},
	"tools.default_durability":                     {change: "ephemeral", with: map[string]any{"ladder.enable_summarization": false}},
	"tools.overrides.durability":                   {change: "ephemeral", tool: "make_order", with: map[string]any{"ladder.enable_summarization": false}},
	"tools.overrides.preserve_fields":              {change: []string{"order_id"}, tool: "make_order", with: map[string]any{"ladder.enable_summarization": false}, talk: &talk{steps: 24, window: 12_000, output: 1_000, structured: true}},
	"tools.overrides.externalize_threshold_tokens": {change: 300, with: map[string]any{"ladder.enable_summarization": false}},
	"tools.overrides.sensitivity":                  {change: "restricted"},
	"tools.overrides.replay_cost":                  {change: "expensive", tool: "Read", with: map[string]any{"ladder.enable_summarization": false}, talk: &talk{steps: 24, window: 12_000, output: 1_000, determinism: true}},
	"tools.overrides.ttl":                          {change: "2h"},
}

// mentions is a conversation in which the agent names what was externalized.
var mentions = &talk{steps: 24, window: 20_000, output: 1_000, large: 120, mention: 3}
