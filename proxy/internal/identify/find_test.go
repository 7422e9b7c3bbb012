package identify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// TestClearedOfOneID: where a provider counts calls anew in every answer, a result that was cleared is not read as
// that of another call with the same id.
func TestClearedOfOneID(t *testing.T) {
	read := func(id string, results ...string) *Request {
		var list []string
		for n, result := range results {
			list = append(list, fmt.Sprintf(`{"role":"user","content":"Read %d."}`, n),
				fmt.Sprintf(`{"role":"assistant","content":"","tool_calls":[{"id":"%[1]s","type":"function","function":{"name":"read","arguments":"{\"n\":%[2]d}"}}]}`, strings.ReplaceAll(id, "#", fmt.Sprint(n)), n),
				fmt.Sprintf(`{"role":"tool","tool_call_id":"%s","content":"%s"}`, strings.ReplaceAll(id, "#", fmt.Sprint(n)), result))
		}
		r, err := Read(openai.Chat{}, `{"model":"m","messages":[`+strings.Join(list, ",")+`]}`, func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for id, most := range map[string]int{"call_#": 2, "call_0": 0} {
		whole := read(id, "one one one one one one one one one", "two two two two two two two two two")
		log, err := thread.New("a").Append(whole.kept(0)...)
		if err != nil {
			t.Fatal(err)
		}
		cleared := read(id, "[cleared]", "[cleared]")
		got, _, err := cleared.withResults(2, "a", Logs{Load: func(string) (*thread.Thread, error) { return log, nil }})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range whole.IDs {
			is := cleared
			if got != nil {
				is = got
			}
			if result, ok := is.Prompt.Messages[i].Result(); ok && result.Text() != "[cleared]" {
				n++
				if is.IDs[i] != whole.IDs[i] {
					t.Errorf("%s: message %d is %q", id, i, result.Text())
				}
			}
		}
		if n != most {
			t.Errorf("%s: %d results are read whole, want %d", id, n, most)
		}
	}
}
