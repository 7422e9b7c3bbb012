package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// A conversation goes on after the process that began it is gone.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	for _, text := range []string{"Please fix the build.", "And now the tests."} {
		db, err := sqlite.Open(ctx, filepath.Join(folder, "palimpsest.db"), nil)
		if err != nil {
			log.Fatal(err)
		}
		t := db.Tenant("")
		c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: t.Log, Plans: t.Plans}})
		if err != nil {
			log.Fatal(err)
		}
		p, err := c.Session("ticket-4711").PrepareStep(ctx, palimpsest.Step{Messages: []thread.Message{
			{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}},
		}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(p.Messages), "messages to send")
		if err := db.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 1 messages to send
	// 2 messages to send
}
