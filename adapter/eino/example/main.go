// The program runs an agent of eino with a scripted model: it reads a report of 60
// parts of 8 KB through a window of 24,000 tokens, and tells what stood in the first. It does
// so with both kinds of eino's messages.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/adapter/eino/internal/reader"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
)

func main() {
	for _, way := range []struct {
		of  string
		run func(context.Context, *palimpsest.Compactor, *adapter.Options, *adaptertest.Script, bool) error
	}{{"messages", reader.Run}, {"messages of blocks", reader.RunAgentic}} {
		ctx := context.Background()
		c, err := palimpsest.New(palimpsest.Config{Recall: &palimpsest.Recall{}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(way.of)
		o := &adapter.Options{Window: adaptertest.Window, Output: adaptertest.Output}
		model := &adaptertest.Script{Window: adaptertest.Window}
		err = way.run(ctx, nil, nil, model, true)
		fmt.Printf("without: %v\n         %v\n", model.Report(), err)

		model = &adaptertest.Script{Window: adaptertest.Window}
		err = way.run(ctx, c, o, model, true)
		fmt.Printf("with:    %v\n", model.Report())
		if err != nil {
			log.Fatal(err)
		}
	}
}
