package transcript_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// samples are the files in testdata, one or more for each format.
func samples(t testing.TB) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(path string) bool {
		return strings.HasSuffix(path, ".golden") || filepath.Base(path) == "fuzz"
	})
	if len(all) < len(transcript.Formats()) {
		t.Fatalf("only %d samples for %d formats", len(all), len(transcript.Formats()))
	}
	return all
}

func TestGolden(t *testing.T) {
	covered := map[transcript.Format]bool{}
	for _, path := range samples(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, err := transcript.Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			covered[f.Format] = true
			if name := filepath.Base(path); !strings.HasPrefix(name, string(f.Format)) {
				t.Errorf("%s was taken for %s", name, f.Format)
			}
			got := layout(f)
			golden.Equal(t, path+".golden", got)
		})
	}
	for _, f := range transcript.Formats() {
		if !covered[f] {
			t.Errorf("no sample of %s", f)
		}
	}
}

// layout shows what was read of a file, a line for each message.
func layout(f *transcript.File) string {
	var b strings.Builder
	fmt.Fprintf(&b, "format %s, %d lines\n", f.Format, f.Report.Lines)
	for _, t := range f.Transcripts {
		layoutOne(&b, t, "")
	}
	for _, counts := range []struct {
		name   string
		counts map[string]int
	}{{"skipped", f.Report.Skipped}, {"unknown", f.Report.Unknown}} {
		for _, k := range sorted(counts.counts) {
			fmt.Fprintf(&b, "%s %s: %d\n", counts.name, k, counts.counts[k])
		}
	}
	for _, w := range f.Report.Warnings {
		fmt.Fprintf(&b, "warning %s\n", w)
	}
	return b.String()
}

func sorted(m map[string]int) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func layoutOne(b *strings.Builder, t transcript.Transcript, indent string) {
	fmt.Fprintf(b, "%s%s title=%q model=%q\n", indent, t.Name, t.Title, t.Model)
	indent += "  "
	for _, s := range t.System {
		fmt.Fprintf(b, "%ssystem (%s) %q\n", indent, s.Role, firstText(s.Text))
	}
	for _, tool := range t.Tools {
		fmt.Fprintf(b, "%stool %s %q\n", indent, tool.Name, firstText(tool.Description))
	}
	for i, m := range t.Thread.All() {
		for _, c := range t.Compactions {
			if c.At == i {
				left := ""
				if c.TokensAfter > 0 {
					left = fmt.Sprintf(", %d after", c.TokensAfter)
				}
				fmt.Fprintf(b, "%s-- compacted (%s) at %d tokens%s, recap %v\n", indent, c.Trigger, c.TokensBefore, left, c.Summary != "")
			}
		}
		kind := []string{"", " injected", " recap", " attached", " relayed"}[m.Kind]
		at := ""
		if !m.Time.IsZero() {
			at = m.Time.Format(" 15:04:05")
		}
		fmt.Fprintf(b, "%s%d %s%s turn %d%s\n", indent, i, m.Role, kind, m.Turn, at)
		for _, p := range m.Parts {
			fmt.Fprintf(b, "%s    %s\n", indent, describe(p))
		}
	}
	for _, s := range t.Side {
		fmt.Fprintf(b, "%sbeside it:\n", indent)
		layoutOne(b, s, indent)
	}
}

// firstText gives the first 60 characters of a text.
func firstText(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60])
	}
	return s
}

func describe(p thread.Part) string {
	switch p := p.(type) {
	case thread.Text:
		return fmt.Sprintf("text %q", firstText(p.Text))
	case thread.Reasoning:
		return fmt.Sprintf("reasoning %q sealed=%v by=%s", firstText(p.Text), p.Signature != "", p.API)
	case thread.Media:
		return fmt.Sprintf("media %s %s name=%q url=%q data=%q text=%q", p.Type, p.MIME, p.Name, p.URL, firstText(p.Data), firstText(p.Text))
	case thread.ToolCall:
		return fmt.Sprintf("call %s %s %s %s", p.ID, p.Name, p.Type, firstText(p.Arguments))
	case thread.ToolResult:
		var inner []string
		for _, c := range p.Content {
			inner = append(inner, describe(c))
		}
		return fmt.Sprintf("result %s %s %s structured=%q [%s]", p.CallID, p.Tool, p.Outcome, p.Structured, strings.Join(inner, "; "))
	case thread.Opaque:
		return fmt.Sprintf("opaque %s %q", p.Kind, firstText(p.Text))
	}
	return fmt.Sprintf("%T", p)
}

// TestForcedFormat proves that a named format is read as that.
func TestForcedFormat(t *testing.T) {
	array := `[{"role":"user","content":"Hello"}]`
	for _, format := range []transcript.Format{"openai-chat", "anthropic", "ai-sdk", "inspect"} {
		f, err := transcript.Read(strings.NewReader(array), &transcript.Options{Format: format})
		if err != nil || f.Format != format || f.Transcripts[0].Thread.Len() != 1 {
			t.Errorf("as %s: %v, %v", format, f, err)
		}
	}
}

// TestNameIsKept proves that the file's name is used when it holds no id.
func TestNameIsKept(t *testing.T) {
	f, err := transcript.Read(bytes.NewReader([]byte(`[{"role":"user","content":"Hello"}]`)), &transcript.Options{Name: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Transcripts[0]; got.Name != "mine" || got.Thread.ID() != "mine" {
		t.Errorf("named %q, thread %q", got.Name, got.Thread.ID())
	}
}
