package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
)

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
	"notes":         {map[string]any{"trigger.favor": "cost", "tools.overrides": map[string]any{"Grep": map[string]any{"durability": "non_replayable"}}}, talk{steps: 24, window: 12_000, output: 1_000, large: 90}},
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
	if rungs, _ := root["ladder"].(map[string]any); base == "auto" || base == "notes" {
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

// unsummarized has what is mentioned stored, where a fresh window would keep it whole or leave it out.
var unsummarized = map[string]any{"ladder.enable_summarization": false}

// fieldCases are by path, or by base and path where bases differ.
var fieldCases = map[string]fieldCase{
	"trigger.favor":                                  {change: "quality"},
	"trigger.hard":                                   {change: 0.6},
	"trigger.target":                                 {change: 0.3},
	"trigger.working":                                {change: 1_000, talk: &talk{steps: 24, window: 12_000, output: 1_000, model: "claude-sonnet-4-5"}},
	"trigger.max_input_tokens":                       {change: 12_000},
	"trigger.soft_threshold_percent":                 {change: 0.6},
	"trigger.safety_buffer_tokens":                   {change: 3_000},
	"trigger.rehydration_reserve_tokens":             {change: 100},
	"trigger.max_rehydration_artifacts":              {change: 0, talk: mentions},
	"trigger.context_limit":                          {change: 9_000},
	"trigger.system_reserve":                         {change: 3_000},
	"session trigger.output_reserve":                 {change: 3_000},
	"workstream trigger.output_reserve":              {change: 8_000},
	"trigger.safety_buffer":                          {change: 3_000},
	"trigger.threshold_percent":                      {change: 0.5},
	"trigger.max_tokens":                             {change: 7_000},
	"trigger.share":                                  {change: 0.5},
	"trigger.context_size":                           {change: 9_000},
	"trigger.safety_margin":                          {change: 8_000},
	"trigger.long_context":                           {change: true, with: map[string]any{"trigger.context_limit": "auto"}, talk: &talk{steps: 14, model: "sonnet-of-ours", huge: 60_000, lines: 1}},
	"trigger.max_output":                             {change: 5_000},
	"trigger.utilization":                            {change: 0.5},
	"cut.messages":                                   {change: 4},
	"cut.tokens":                                     {change: 1_000},
	"cut.split_turns":                                {change: false},
	"cut.turns":                                      {change: 2},
	"cut.ratio":                                      {change: 0.1},
	"cut.preserve_recent_turns":                      {change: 1},
	"cut.keep":                                       {change: 4},
	"cut.keep_recent":                                {change: 1_000},
	"cut.tail":                                       {change: 3},
	"cut.preserve":                                   {change: 0.2},
	"ladder.enable_externalization":                  {change: false},
	"auto ladder.enable_externalization":             {change: false, talk: &talk{steps: 24, window: 40_000, output: 1_000, large: 400}},
	"ladder.enable_summarization":                    {change: false},
	"ladder.enable_clearing":                         {change: false, with: map[string]any{"ladder.enable_summarization": false}},
	"ladder.enable_dropping":                         {change: false, with: map[string]any{"ladder.enable_summarization": false, "ladder.enable_clearing": false}},
	"auto ladder.enable_dropping":                    {change: false, with: map[string]any{"ladder.enable_externalization": false, "ladder.enable_summarization": false, "ladder.enable_clearing": false}},
	"ladder ladder.enable_dropping":                  {change: false, with: map[string]any{"ladder.enable_externalization": false, "ladder.enable_summarization": false, "ladder.enable_clearing": false}, talk: &talk{steps: 40, window: 14_000, output: 1_000, every: 1}},
	"ladder.externalize_threshold_tokens":            {change: 700},
	"ladder.summarize_target_ratio":                  {change: 0.05},
	"summary.tokens":                                 {change: 100},
	"summary.prefix_tokens":                          {change: 40, talk: &talk{steps: 24, window: 20_000, output: 1_000, every: 100}},
	"summary.rollup_tokens":                          {change: 60},
	"summary.role":                                   {change: "user"},
	"summary.show_state":                             {change: true},
	"transcript.tool_names":                          {change: []string{"Bash"}},
	"transcript.tool_prefixes":                       {change: []string{"Ba"}},
	"transcript.chunk_chars":                         {change: 2_000, model: true},
	"state.key_decisions":                            {change: 0, model: true},
	"state.active_constraints":                       {change: 0, model: true},
	"state.tasks":                                    {change: 0, model: true},
	"state.open_questions":                           {change: 0, model: true},
	"state.risks":                                    {change: 0, model: true},
	"state.artifacts":                                {change: 0, model: true},
	"state.agent_contributions":                      {change: 0, model: true},
	"expire.ttl":                                     {change: "1h", talk: &talk{steps: 8, window: 20_000, output: 1_000, age: 5 * time.Hour}},
	"cache_points.offset":                            {change: 1, talk: &talk{steps: 30, window: 20_000, output: 1_000, every: 2, lines: 12}},
	"cache_points.min_rounds":                        {change: 1, with: map[string]any{"cache_points.offset": 2}, talk: &talk{steps: 30, window: 20_000, output: 1_000, every: 4, lines: 12}},
	"counter":                                        {change: "chars/4"},
	"summarizer.use":                                 {change: []string{"extractive"}, model: true},
	"summarizer.rules":                               {change: "table", model: true},
	"summarizer.standing":                            {change: 0.01, talk: &talk{steps: 40, window: 12_000, output: 1_000, every: 1}},
	"summarizer.timeout":                             {change: "1ms", model: true, slow: true},
	"summarizer.temperature":                         {change: 1.5, model: true},
	"summarizer.max_output":                          {change: 777, model: true},
	"summarizer.chunk_characters":                    {change: 1_000, model: true},
	"summarizer.trust":                               {change: "model", model: true},
	"summarizer.cache":                               {change: false, model: true, talk: &talk{steps: 16, window: 12_000, output: 1_000, again: true}},
	"last-turns summarizer.cache":                    {change: false, model: true, talk: &talk{steps: 16, window: 10_000, output: 1_000, again: true}},
	"notes rehydration.enabled":                      {change: false, talk: mentions, with: unsummarized},
	"notes rehydration.max_artifacts_per_turn":       {change: 1, talk: mentions, with: unsummarized},
	"notes rehydration.max_tokens_per_artifact":      {change: 200, talk: mentions, with: unsummarized},
	"notes rehydration.total_budget_tokens":          {change: 300, talk: mentions, with: unsummarized},
	"notes rehydration.auto_rehydrate_sensitivities": {change: []string{"public"}, talk: mentions, with: unsummarized},
	"rehydration.enabled":                            {change: false, talk: mentions},
	"rehydration.max_artifacts_per_turn":             {change: 1, talk: mentions},
	"rehydration.max_tokens_per_artifact":            {change: 200, talk: mentions},
	"rehydration.total_budget_tokens":                {change: 300, talk: mentions},
	"rehydration.cooldown_turns":                     {change: 6, talk: mentions, with: map[string]any{"ladder.enable_summarization": false}},
	"rehydration.auto_rehydrate_sensitivities":       {change: []string{"public"}, talk: mentions},
	"retrieval.enabled":                              {change: true, with: map[string]any{"retrieval.tokens": 1_500}},
	"retrieval.tokens":                               {change: 200, with: map[string]any{"retrieval.enabled": true}},
	"retrieval.vector_store":                         {change: "openai:text-embedding-3-small", with: map[string]any{"retrieval.enabled": true}, embeds: true},
	"tools.default_durability":                       {change: "ephemeral", with: map[string]any{"ladder.enable_summarization": false}},
	"tools.overrides.durability":                     {change: "ephemeral", tool: "make_order", with: map[string]any{"ladder.enable_summarization": false}},
	"tools.overrides.preserve_fields":                {change: []string{"order_id"}, tool: "make_order", with: map[string]any{"ladder.enable_summarization": false}, talk: &talk{steps: 24, window: 12_000, output: 1_000, structured: true}},
	"tools.overrides.externalize_threshold_tokens":   {change: 300, with: map[string]any{"ladder.enable_summarization": false}},
	"tools.overrides.sensitivity":                    {change: "restricted"},
	"tools.overrides.replay_cost":                    {change: "expensive", tool: "Read", with: map[string]any{"ladder.enable_summarization": false}, talk: &talk{steps: 24, window: 12_000, output: 1_000, determinism: true}},
	"tools.overrides.ttl":                            {change: "2h"},
}

// mentions is a conversation in which the agent names what was externalized.
var mentions = &talk{steps: 24, window: 20_000, output: 1_000, large: 120, mention: 3}
