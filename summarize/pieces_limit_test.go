package summarize

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestRoom: of a span with more lines than are held, those of the newest outputs can be chosen, and
// what was done and asked is known of all of it.
func TestRoom(t *testing.T) {
	messages := []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Look at all servers, and never restart db_main."}}}}
	for i := range 40 {
		id := fmt.Sprintf("call_%d", i)
		text := fmt.Sprintf("server_%d.go\n", i) + strings.Repeat("a.go\n", 1400)
		messages = append(messages,
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: fmt.Sprintf("Server %d uses pool_%d, because its cache_%d is slow.", i, i, i)}, thread.ToolCall{ID: id, Name: "Read", Arguments: fmt.Sprintf(`{"file_path":"list_%d.txt"}`, i)}}},
			thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "Read", Content: []thread.Part{thread.Text{Text: text}}}}})
	}
	th, err := thread.New("t").Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	in := &Input{Messages: th.Messages()}
	held, all := 0, 0
	facts, left := readSpan(in, read)
	for i := range in.Messages {
		if r := read(&in.Messages[i]).result; r != nil {
			all += len(r.idLines)
		}
	}
	for i, f := range facts {
		if f.result == nil {
			continue
		}
		if f.work().Result != &f.result.Result || f.result.First != fmt.Sprintf("server_%d.go", (i-2)/2) {
			t.Errorf("message %d: the first line is %q", i, f.result.First)
		}
		if held += len(f.result.idLines); len(f.result.idLines) == 0 && i > len(in.Messages)-20 || i < 20 && len(f.result.idLines) > 0 {
			t.Errorf("message %d of %d has %d lines", i, len(in.Messages), len(f.result.idLines))
		}
	}
	if most := manyPieces + in.bytes()/bytesOfPiece; held > most || held < most-1500 {
		t.Errorf("%d lines are held", held)
	}
	if left.leftLines != all-held || left.leftSaid != 0 {
		t.Errorf("of %d lines %d are held, and %d counted as left out", all, held, left.leftLines)
	}
	var e Extractive
	made, err := e.Summarize(context.Background(), *in)
	if err != nil {
		t.Fatal(err)
	}
	if text := made.Render(); !strings.Contains(text, fmt.Sprintf("[note by the compaction: %d lines of older outputs and edits were left out here]", all-held)) || !strings.Contains(text, "never restart db_main") || !strings.Contains(text, "list_0.txt") || !strings.Contains(text, "server_39.go") || strings.Contains(text, "server_0.go") {
		t.Errorf("the summary says\n%s", text)
	}
}

// TestFilesLeftOut: the files of a patch that names very many are counted where they are not listed,
// within the budget.
func TestFilesLeftOut(t *testing.T) {
	patch := "*** Begin Patch\n"
	for i := range maxFiles + 50 {
		patch += fmt.Sprintf("*** Add File: part_%d.go\n+package a\n", i)
	}
	k := new(talk).user("Split the file into parts, please.")
	k.calls("apply_patch", args{"input": patch + "*** End Patch\n"}, "Done!", thread.Success)
	k.says("It is split.")
	for _, budget := range []int{0, 400} {
		s := summarizeNow(t, Input{Messages: k.done(t), Budget: budget})
		text := s.Render()
		if want := fmt.Sprintf("[note by the compaction: 50 more files of calls that name over %d were left out here]", maxFiles); !strings.Contains(text, want) || budget > 0 && (len(text)+3)/4 > budget {
			t.Errorf("budget %d: %d bytes\n%s", budget, len(text), text)
		}
	}
}

// TestRoomOfWords: of messages whose words have no room, the calls stay, with what they name.
func TestRoomOfWords(t *testing.T) {
	var messages []thread.Message
	for i := range 40 {
		var words strings.Builder
		for k := range 200 {
			fmt.Fprintf(&words, "relay_%d_%d.go is read.\n\n", i, k)
		}
		id := fmt.Sprintf("call_%d", i)
		messages = append(messages,
			thread.Message{ID: thread.ID(id), Turn: 1, Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: words.String()}, thread.ToolCall{ID: id, Name: "Read", Arguments: fmt.Sprintf(`{"file_path":"list_%d.txt"}`, i)}}},
			thread.Message{ID: thread.ID(id + "r"), Turn: 1, Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "Read", Content: []thread.Part{thread.Text{Text: "ok"}}}}})
	}
	made, err := (&Extractive{}).Summarize(t.Context(), Input{Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	if text := made.Render(); !strings.Contains(text, "list_0.txt") || strings.Contains(text, "relay_0_0.go") || !strings.Contains(text, "relay_39_0.go") {
		t.Errorf("the summary says\n%.3000s", text)
	}
}
