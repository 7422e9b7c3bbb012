package dir_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store/dir"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// What a plan removes is saved before the plan is used, and found again.
func Example() {
	path, err := os.MkdirTemp("", "store")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(path)
	s, err := dir.Open(path, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	t, err := thread.New("ticket-4711").Append(
		thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Deploy to eu-west.\nThe key is in vault/shipq."}}},
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: "Done."}}},
	)
	if err != nil {
		log.Fatal(err)
	}
	p := &plan.Plan{ThreadID: t.ID(), ThreadVersion: t.Version(), Drops: []plan.Removal{{Span: t.Range(0, 1)}}}

	ctx := context.Background()
	if err := s.Save(ctx, t, p); err != nil {
		log.Fatal(err)
	}
	hits, damage, err := s.Recall(ctx, "where is the key?", nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range damage {
		log.Print(d)
	}
	fmt.Println(hits[0].Excerpt)
	content, err := s.Artifact(ctx, string(hits[0].MessageID), "")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(content.Text), "bytes of turn", content.Turn)
	// Output:
	// Deploy to eu-west.
	// The key is in vault/shipq.
	// 45 bytes of turn 1
}
