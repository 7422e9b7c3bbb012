// Package estimators measures how far estimates of token counts are off, by class of
// content, on recorded conversations.
package estimators

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Report says how far estimates of tokens are off, by class of content.
type Report struct {
	Split    references.Split `json:"split"`
	Sessions int              `json:"sessions"`
	Corpus   string           `json:"corpus"`
	// Real names the exact counter that the estimates are compared with. It is a stand-in
	// for models whose tokenizer is not public; docs/tokens.md compares the estimates for
	// them with recorded usage.
	Real string `json:"real"`
	Rows []Row  `json:"rows"`
}

// Row is one estimator over the texts of one class. Errors are
// (estimate - real) / real, of each text.
type Row struct {
	Estimator string `json:"estimator"`
	Class     string `json:"class"`
	// Made: the conversations hold too few such texts; these are artificial.
	Made  bool `json:"made,omitempty"`
	Texts int  `json:"texts"`
	// Tokens are the real ones, Whole the error over all of them.
	Tokens int     `json:"tokens"`
	Whole  float64 `json:"whole"`
	P1     float64 `json:"p1"`
	P50    float64 `json:"p50"`
	P99    float64 `json:"p99"`
}

// Options tune Measure; nil and the zero value take everything.
type Options struct {
	// Split is the half to measure on; empty for all.
	Split references.Split
	// Progress is told how many sessions are done.
	Progress references.Progress
}

// The classes of content, in the order of the report.
const (
	proseClass  = "prose"
	codeClass   = "code"
	jsonClass   = "JSON"
	base64Class = "base64"
	cjkClass    = "CJK"
)

var contentClasses = []string{proseClass, codeClass, jsonClass, base64Class, cjkClass}

// The estimators that are measured.
var estimators = []string{"chars/4", "bytes/3.5", "claude", "gemini"}

// Texts below fewestTokens are not measured: one token more is a large error there. For a
// class of fewer than fewestTexts, artificial texts are measured.
const (
	fewestTokens = 50
	fewestTexts  = 100
)

// Measure compares the estimates of token counts with the exact counter of the set, over
// the texts of its conversations by class of content. It is the same for the same set
// and options; the error wraps that of the context.
func Measure(ctx context.Context, set *references.Set, o *Options) (*Report, error) {
	o = cmp.Or(o, &Options{})
	real := set.Counter
	if !real.Exact() {
		return nil, fmt.Errorf("estimators.Measure: the counter %s is an estimate itself; take o200k or cl100k", real.Name())
	}
	var counters []*token.Counter
	for _, name := range estimators {
		c, err := token.New(name, nil)
		if err != nil {
			return nil, fmt.Errorf("estimators.Measure: %w", err)
		}
		counters = append(counters, c)
	}
	sessions := set.OfSplit(o.Split, 0)
	sum := map[string]*misjudged{}
	for i, s := range sessions {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("estimators.Measure: %w", err)
		}
		reads := codeReads(s.Thread)
		for _, m := range s.Thread.All() {
			classified(m, reads, func(class, text string) {
				if sum[class] == nil {
					sum[class] = &misjudged{}
				}
				sum[class].add(text, real, counters)
			})
		}
		if o.Progress != nil {
			o.Progress(i+1, len(sessions))
		}
	}
	r := &Report{Split: cmp.Or(o.Split, references.All), Sessions: len(sessions), Corpus: references.CorpusHash(slices.Values(sessions)), Real: real.Name()}
	for _, class := range contentClasses {
		all := sum[class]
		made := all == nil || all.texts < fewestTexts
		if made {
			all = &misjudged{}
			for _, text := range madeTexts(class) {
				all.add(text, real, counters)
			}
		}
		for k, c := range counters {
			if row := all.row(k); row.Texts > 0 {
				row.Estimator, row.Class, row.Made = c.Name(), class, made
				r.Rows = append(r.Rows, row)
			}
		}
	}
	slices.SortStableFunc(r.Rows, func(a, b Row) int {
		return cmp.Compare(slices.Index(estimators, a.Estimator), slices.Index(estimators, b.Estimator))
	})
	return r, nil
}

// misjudged are the errors of all estimators over some texts.
type misjudged struct {
	texts, tokens int
	estimated     []int       // in all, by estimator
	errors        [][]float64 // by estimator
}

func (x *misjudged) add(text string, real *token.Counter, counters []*token.Counter) {
	n := real.Text(text)
	if n < fewestTokens {
		return
	}
	if x.errors == nil {
		x.estimated, x.errors = make([]int, len(counters)), make([][]float64, len(counters))
	}
	x.texts++
	x.tokens += n
	for k, c := range counters {
		e := c.Text(text)
		x.estimated[k] += e
		x.errors[k] = append(x.errors[k], float64(e-n)/float64(n))
	}
}

func (x *misjudged) row(k int) Row {
	if x.texts == 0 {
		return Row{}
	}
	all := slices.Sorted(slices.Values(x.errors[k]))
	at := func(q float64) float64 { return all[min(len(all)-1, int(q*float64(len(all))))] }
	return Row{
		Texts: x.texts, Tokens: x.tokens, Whole: float64(x.estimated[k]-x.tokens) / float64(x.tokens),
		P1: at(0.01), P50: at(0.50), P99: at(0.99),
	}
}

// classified calls each for the texts of a message that are of one class. Prose is what
// people and models say, unless it has fences; code is what was read from code files;
// the other classes are told by their characters. Other texts, such as the output of
// commands, are left out.
func classified(m *thread.Message, reads map[string]bool, each func(class, text string)) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case thread.Text:
			if class := marked(p.Text); class != "" {
				each(class, p.Text)
			} else if !strings.Contains(p.Text, "```") {
				each(proseClass, p.Text)
			}
		case thread.ToolCall:
			if marked(p.Arguments) == jsonClass {
				each(jsonClass, p.Arguments)
			}
		case thread.ToolResult:
			for _, c := range p.Content {
				text, ok := c.(thread.Text)
				if !ok {
					continue
				}
				if class := marked(text.Text); class != "" {
					each(class, text.Text)
				} else if reads[p.CallID] {
					each(codeClass, text.Text)
				}
			}
		}
	}
}

// codeEndings are the endings of files of code.
var codeEndings = []string{".go", ".py", ".ts", ".tsx", ".js", ".rs", ".java", ".c", ".h", ".cpp", ".rb", ".sh", ".sql"}

// codeReads are the ids of the calls that read a file of code.
func codeReads(t *thread.Thread) map[string]bool {
	reads := map[string]bool{}
	for _, m := range t.All() {
		for _, c := range m.Calls() {
			if toolclass.ClassOf(c.Name) == toolclass.Read && slices.Contains(codeEndings, path.Ext(references.FileOf(gjson.Parse(c.Arguments)))) {
				reads[c.ID] = true
			}
		}
	}
	return reads
}

// marked is the class of a text by its characters; empty for none.
func marked(text string) string {
	trimmed := strings.TrimSpace(text)
	if len(trimmed) < 2 {
		return ""
	}
	runes, east, run, dense := 0, 0, 0, 0
	for _, r := range trimmed {
		runes++
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			east++
		}
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("+/=", r)) {
			if run++; run == longestWordLike {
				dense += run
			} else if run > longestWordLike {
				dense++
			}
		} else if r != '\n' && r != '\r' {
			run = 0
		}
	}
	switch {
	case east*3 > runes:
		return cjkClass
	case dense*2 > runes:
		return base64Class
	case (trimmed[0] == '{' || trimmed[0] == '[') && rawjson.Valid(trimmed):
		return jsonClass
	}
	return ""
}

// longestWordLike is how many letters and digits in a row a word may have; longer runs
// are base64 and the like.
const longestWordLike = 60

// madeTexts are artificial texts of a class, the same each time; none for classes that
// cannot be made by rule.
func madeTexts(class string) []string {
	rng := rand.New(rand.NewPCG(6, 4))
	var all []string
	for n := range 2 * fewestTexts {
		switch class {
		case base64Class:
			raw := make([]byte, 100+n*40)
			for i := range raw {
				raw[i] = byte(rng.Uint32())
			}
			all = append(all, base64.StdEncoding.EncodeToString(raw))
		case cjkClass:
			var b strings.Builder
			for range 4 + n/4 {
				b.WriteString(eastern[n%3][rng.IntN(len(eastern[n%3]))])
			}
			all = append(all, b.String())
		}
	}
	return all
}

// eastern are sentences of work on software in Chinese, Japanese and Korean.
var eastern = [3][]string{
	{"请先运行测试，然后再提交修改。", "这个函数没有处理空列表的情况。", "数据库连接在超时之后没有被关闭。", "我已经把配置文件移到了新的目录。", "用户希望订单在发货之前仍然可以取消。", "日志显示第二次请求被服务器拒绝了。"},
	{"まずテストを実行してから変更をコミットしてください。", "この関数は空のリストを処理していません。", "設定ファイルを新しいディレクトリに移動しました。", "ログによると二回目のリクエストは拒否されました。", "接続はタイムアウトの後も閉じられていませんでした。"},
	{"먼저 테스트를 실행한 다음 변경 사항을 커밋하세요.", "이 함수는 빈 목록을 처리하지 않습니다.", "설정 파일을 새 디렉터리로 옮겼습니다.", "로그에 따르면 두 번째 요청이 거부되었습니다.", "연결이 시간 초과 후에도 닫히지 않았습니다."},
}
