package palimpsest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestLargeRequestStaysTheUsers: a request that nobody has answered and that is larger than its room is shortened, and
// ends the prompt in the user's role, beginning and end, without what else is told. F1
func TestLargeRequestStaysTheUsers(t *testing.T) {
	counter := o200k(t)
	var list strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&list, "Order %d of shop %d was sent twice.\n", 7000+i, i%19)
	}
	request := "Translate this to German: begin here.\n" + list.String() + "And sort it by shop, please."
	chat := []thread.Message{plain(thread.User, "yes"), plain(thread.Assistant, "ok"), plain(thread.User, "yes"), plain(thread.Assistant, "ok")}
	work := []thread.Message{plain(thread.User, "Mend the parser.")}
	for i := range 30 {
		call := thread.ToolCall{ID: fmt.Sprint("c", i), Name: "Bash", Arguments: fmt.Sprintf(`{"command":"go test ./part%d"}`, i)}
		work = append(work, thread.Message{Role: thread.Assistant, Parts: []thread.Part{call}}, thread.NewResult(call, thread.Success, fmt.Sprintf("ok  	shop/part%d	0.%02ds\n%s", i, i, strings.Repeat("log line\n", 40))))
	}
	work = append(work, plain(thread.Assistant, "All parts pass."))
	for name, before := range map[string][]thread.Message{"chat": chat, "work": work} {
		for _, p := range []policy.Policy{policy.Auto{}, policy.Notes{}, policy.Ladder{}} {
			for _, budget := range []int{3000, 7000} {
				t.Run(fmt.Sprint(name, p.Name(), budget), func(t *testing.T) {
					log, err := thread.New("t").Append(append(before[:len(before):len(before)], plain(thread.User, request))...)
					if err != nil {
						t.Fatal(err)
					}
					c, err := palimpsest.New(palimpsest.Config{Policy: p, Counter: counter})
					if err != nil {
						t.Fatal(err)
					}
					r, err := c.Compact(t.Context(), palimpsest.Request{Thread: log, Budget: budget, Profile: render.For(wire.Chat)})
					if err != nil {
						t.Fatal(err)
					}
					last := r.Prompt.Messages[len(r.Prompt.Messages)-1]
					text := last.Text()
					if last.Role != thread.User || !strings.Contains(text, "Translate this to German: begin here.") || !strings.Contains(text, "And sort it by shop, please.") {
						t.Errorf("the last message is of %s: %.300s … %s", last.Role, text, text[max(0, len(text)-200):])
					}
					if strings.Contains(text, "Where the work stands") || strings.Contains(text, "parser") {
						t.Errorf("in the user's role stands what they did not say: %.600s", text)
					}
				})
			}
		}
	}
}
