package token

import (
	"bufio"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Claude Code writes down the usage of every response: the tokens of the whole
// request, system and tools included, which the transcript does not have. The
// growth from one request to the next is what stands between them: the
// response and the results of its calls. That is compared with the estimate.

// step is the growth of a session by one response and its tool results.
type step struct {
	model    string
	kind     string // the tool that gave most of the text
	messages []thread.Message
	chars    int // bytes of all text in the messages
	truth    int // tokens by the provider
	thinking bool
	other    bool // user text, images: what the harness adds to it is not recorded
}

// hidden reports that the provider counted more than the recorded text can be:
// reminders and files that Claude Code adds to a request without writing them
// down. No text of these sessions has as many as a token to 1.8 bytes.
func (s *step) hidden() bool {
	return float64(s.truth) > float64(s.chars)/1.8+120*float64(len(s.messages))
}

type claudeLine struct {
	Type        string
	IsSidechain bool
	Message     struct {
		ID, Model string
		Content   json.RawMessage
		Usage     *struct {
			Input int `json:"input_tokens"`
			Write int `json:"cache_creation_input_tokens"`
			Read  int `json:"cache_read_input_tokens"`
		}
	}
}

type claudeBlock struct {
	Type, Text, Thinking, Signature, Name string
	ID                                    string
	ToolUseID                             string `json:"tool_use_id"`
	Input, Content                        json.RawMessage
}

// readSteps reads the steps of one Claude Code session.
func readSteps(t *testing.T, path string) []step {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 64<<20)
	var steps []step
	var now step
	total, id := 0, ""
	tools, sizes := map[string]string{}, map[string]int{}
	add := func(role thread.Role, p thread.Part, text string) {
		now.messages = append(now.messages, thread.Message{Role: role, Parts: []thread.Part{p}})
		now.chars += len(text)
	}
	for lines.Scan() {
		var l claudeLine
		if json.Unmarshal(lines.Bytes(), &l) != nil || l.IsSidechain || l.Type != "user" && l.Type != "assistant" {
			continue
		}
		if u := l.Message.Usage; l.Type == "assistant" && u != nil && l.Message.ID != id {
			size := u.Input + u.Write + u.Read
			if total > 0 && size > total && now.model == l.Message.Model && len(now.messages) > 0 {
				now.truth = size - total
				now.kind = "text only"
				most := 0
				for name, n := range sizes {
					if n > most || n == most && name < now.kind {
						now.kind, most = name, n
					}
				}
				steps = append(steps, now)
			}
			now, total, id = step{model: l.Message.Model}, size, l.Message.ID
			clear(sizes)
		}
		var blocks []claudeBlock
		if json.Unmarshal(l.Message.Content, &blocks) != nil {
			now.other = true
			continue
		}
		for _, b := range blocks {
			switch {
			case b.Type == "text" && l.Type == "assistant":
				add(thread.Assistant, thread.Text{Text: b.Text}, b.Text)
			case b.Type == "thinking":
				now.thinking = true
				add(thread.Assistant, thread.Reasoning{Text: b.Thinking, Signature: b.Signature}, b.Thinking)
			case b.Type == "tool_use":
				tools[b.ID] = b.Name
				sizes[b.Name] += len(b.Input)
				add(thread.Assistant, thread.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)}, b.Name+string(b.Input))
			case b.Type == "tool_result":
				text, ok := resultText(b.Content)
				now.other = now.other || !ok
				sizes[tools[b.ToolUseID]] += len(text)
				add(thread.Tool, thread.ToolResult{CallID: b.ToolUseID, Content: []thread.Part{thread.Text{Text: text}}}, text)
			default:
				now.other = true
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}

// resultText returns the text of a result, and whether there was nothing else.
func resultText(content json.RawMessage) (string, bool) {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s, true
	}
	var blocks []claudeBlock
	if json.Unmarshal(content, &blocks) != nil {
		return "", false
	}
	var b strings.Builder
	for _, x := range blocks {
		if x.Type != "text" {
			return "", false
		}
		b.WriteString(x.Text)
	}
	return b.String(), true
}

// readPi reads the steps of a pi session, in which everything that was sent is
// written down.
func readPi(t *testing.T, path string) []step {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 64<<20)
	var steps []step
	var now step
	total := 0
	for lines.Scan() {
		var l struct {
			Type    string
			Message struct {
				Role    string
				Content json.RawMessage
				Usage   *struct{ Input, CacheRead, CacheWrite int }
			}
		}
		if json.Unmarshal(lines.Bytes(), &l) != nil || l.Type != "message" {
			continue
		}
		if u := l.Message.Usage; u != nil {
			size := u.Input + u.CacheRead + u.CacheWrite
			if total > 0 && size > total {
				now.truth = size - total
				steps = append(steps, now)
			}
			now, total = step{}, size
		}
		var blocks []struct {
			Type, Text, Thinking, Name string
			Arguments                  json.RawMessage
		}
		var plain string
		if json.Unmarshal(l.Message.Content, &plain) == nil {
			blocks = append(blocks, struct {
				Type, Text, Thinking, Name string
				Arguments                  json.RawMessage
			}{Type: "text", Text: plain})
		} else if json.Unmarshal(l.Message.Content, &blocks) != nil {
			now.other = true
			continue
		}
		for _, b := range blocks {
			m := thread.Message{Role: thread.Role(l.Message.Role)}
			switch b.Type {
			case "text":
				m.Parts = []thread.Part{thread.Text{Text: b.Text}}
				if l.Message.Role == "toolResult" {
					m = thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{Content: m.Parts}}}
				}
			case "thinking":
				now.thinking = true
				m.Parts = []thread.Part{thread.Reasoning{Text: b.Thinking}}
			case "toolCall":
				m.Parts = []thread.Part{thread.ToolCall{Name: b.Name, Arguments: string(b.Arguments)}}
			default:
				now.other = true
			}
			now.messages = append(now.messages, m)
			now.chars += len(b.Text) + len(b.Thinking) + len(b.Name) + len(b.Arguments)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}

// TestCalibrationHeldOut holds the estimate against a session of another
// project and another agent, which was not used to make it.
func TestCalibrationHeldOut(t *testing.T) {
	c, err := New("claude", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, truth, used, hidden := 0, 0, 0, 0
	for _, s := range readPi(t, filepath.Join(corpus.Dir(t, "transcripts"), "pi-mono", "before-compaction.jsonl.gz")) {
		if s.other || s.hidden() {
			hidden++
			continue
		}
		used++
		truth += s.truth
		for i := range s.messages {
			got += c.Message(&s.messages[i])
		}
	}
	t.Logf("%d steps, %d left out; %d estimated, %d real (%+.1f %%)", used, hidden, got, truth, 100*(float64(got)/float64(truth)-1))
	if used < 300 {
		t.Fatalf("only %d steps could be used", used)
	}
	if float64(got) < float64(truth)*(1-c.Band()) || float64(got) > float64(truth)*(1+2*c.Band()) {
		t.Errorf("%d tokens estimated, %d counted by the provider", got, truth)
	}
}

func quantile(sorted []float64, q float64) float64 {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// TestCalibration holds the Claude estimate against recorded usage (A13). The
// table of docs/tokens.md is what it prints with -v.
func TestCalibration(t *testing.T) {
	dir := corpus.Dir(t, "transcripts")
	files, err := filepath.Glob(filepath.Join(dir, "entire-cli", "*.jsonl.gz"))
	if err != nil || len(files) < 40 {
		t.Fatalf("found %d sessions in %s (%v)", len(files), dir, err)
	}
	c, err := New("claude", nil)
	if err != nil {
		t.Fatal(err)
	}
	errs := map[string][]float64{}
	var sessions []float64
	var used, hidden, other, estimate, truth int
	least := 600
	if corpus.Long() {
		least = 3000
	}
	for _, file := range corpus.EveryNth(files, 4) {
		e, n, k := 0, 0, 0
		for _, s := range readSteps(t, file) {
			switch {
			case s.other:
				other++
				continue
			case s.hidden():
				hidden++
				continue
			}
			got := 0
			for i := range s.messages {
				got += c.Message(&s.messages[i])
			}
			e, n, k = e+got, n+s.truth, k+1
			if s.truth >= 200 {
				r := float64(got)/float64(s.truth) - 1
				think := "no thinking"
				if s.thinking {
					think = "thinking"
				}
				for _, key := range []string{"all", "tool: " + s.kind, "model: " + s.model, think} {
					errs[key] = append(errs[key], r)
				}
			}
		}
		used += k
		if k < 10 {
			continue
		}
		estimate, truth = estimate+e, truth+n
		sessions = append(sessions, float64(e)/float64(n)-1)
		// Never under by more than the band, over a session.
		if float64(e) < float64(n)*(1-c.Band()) {
			t.Errorf("%s: %d tokens estimated, %d counted by the provider, under by more than %.0f %%", filepath.Base(file), e, n, 100*c.Band())
		}
	}
	if used < least {
		t.Fatalf("only %d steps could be used", used)
	}
	slices.Sort(sessions)
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "(est-real)/real\tn\tp1\tp10\tp50\tp90\tp99\n")
	row := func(name string, v []float64) {
		slices.Sort(v)
		fmt.Fprintf(w, "%s\t%d\t%+.3f\t%+.3f\t%+.3f\t%+.3f\t%+.3f\n", name, len(v), quantile(v, .01), quantile(v, .1), quantile(v, .5), quantile(v, .9), quantile(v, .99))
	}
	row("sessions", sessions)
	for _, key := range slices.Sorted(maps.Keys(errs)) {
		if len(errs[key]) >= 20 {
			row(key, errs[key])
		}
	}
	w.Flush()
	t.Logf("%d steps used, %d with hidden content and %d with user text or images left out; in all %d estimated, %d real\n%s", used, hidden, other, estimate, truth, table.String())
}

// classTexts are texts of the classes that the recorded sessions have little of.
func classTexts() map[string]string {
	random := make([]byte, 6000)
	r := rand.New(rand.NewSource(1))
	r.Read(random)
	texts := map[string]string{
		"base64": base64.StdEncoding.EncodeToString(random),
		"hex":    hex.EncodeToString(random),
	}
	for name, unit := range map[string]string{
		"prose":      "The reader keeps a buffer, and when the buffer is full it has to be emptied before anything else can be read. ",
		"code":       "\tif err := r.fill(ctx, n+1); err != nil {\n\t\treturn nil, fmt.Errorf(\"fill: %w\", err)\n\t}\n",
		"JSON":       `{"id":"a91f","name":"ship","count":17,"tags":["x","y"],"nested":{"ok":true,"ratio":0.25}},`,
		"minified":   "function a(b,c){return b?c.map(d=>d.e*2):[]}var f=a(g,h);",
		"UUIDs":      "3f2504e0-4f89-41d3-9a0c-0305e82c3301 ",
		"digits":     "3141592653 2718281828 1414213562 ",
		"blanks":     "    x\n        y\n            z\n",
		"boxes":      "├── src\n│   ├── main.go\n└── ───────────────\n",
		"emoji":      "👍🏽🎉🚀 done ✅ 👨‍👩‍👧 failed ❌ 🇩🇪 ",
		"German":     "Vor dem Lesen der Datei muss geprüft werden, ob der Puffer voll ist, sonst schlägt die Prüfung fehl. ",
		"Russian":    "Перед чтением файла нужно проверить, заполнен ли буфер, иначе тест завершится ошибкой. ",
		"Arabic":     "قبل قراءة الملف يجب التحقق مما إذا كان المخزن المؤقت ممتلئا وإلا سيفشل الاختبار. ",
		"Hindi":      "फ़ाइल पढ़ने से पहले जाँच लें कि बफ़र भरा है या नहीं, अन्यथा परीक्षण विफल हो जाएगा। ",
		"Thai":       "ก่อนอ่านไฟล์ต้องตรวจสอบว่าบัฟเฟอร์เต็มหรือไม่ มิฉะนั้นการทดสอบจะล้มเหลว ",
		"Chinese":    "我们需要在读取文件之前检查缓冲区是否已满，否则测试会失败。请查看第三个函数并修复它的返回值。",
		"Japanese":   "このテストは失敗します。バッファがいっぱいかどうかを確認してください。関数の戻り値を修正する必要があります。",
		"Korean":     "파일을 읽기 전에 버퍼가 가득 찼는지 확인해야 합니다. 그렇지 않으면 테스트가 실패합니다.",
		"long runs":  strings.Repeat("=", 500) + strings.Repeat(" ", 500),
		"identifier": "getUserAccountByIdentifier HTTPServerConnectionPool parse_request_body ",
	} {
		texts[name] = strings.Repeat(unit, 20)
	}
	return texts
}

// Where no recorded usage tells the truth, no known tokenizer of the families is
// more frugal than o200k by more than the band, so an estimate below that would
// be a mistake of its own.
func TestClassesLeanToTheSafeSide(t *testing.T) { // A13
	o := counter(t, "o200k")
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "tokens for one of o200k\tclaude\tclaude-4.7\tgemini\n")
	texts := classTexts()
	for _, class := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprint(w, class)
		for _, name := range []string{"claude", "claude-4.7", "gemini"} {
			c := counter(t, name)
			ratio := float64(c.Text(texts[class])) / float64(o.Text(texts[class]))
			fmt.Fprintf(w, "\t%.2f", ratio)
			if ratio < 1-c.Band() {
				t.Errorf("%s counts %.2f times the tokens of o200k in %s", name, ratio, class)
			}
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	t.Log("\n" + table.String())
}
