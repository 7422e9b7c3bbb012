// The program runs an agent of ADK with a scripted model: it reads a report of 60
// parts of 8 KB through a window of 24,000 tokens, and tells what stood in the first.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/adapter/adk/v2/internal/reader"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
)

func main() {
	ctx := context.Background()
	c, err := palimpsest.New(palimpsest.Config{Recall: &palimpsest.Recall{}})
	if err != nil {
		log.Fatal(err)
	}
	o := &adapter.Options{Window: adaptertest.Window, Output: adaptertest.Output}
	model := &adaptertest.Script{Window: adaptertest.Window}
	err = reader.Run(ctx, nil, nil, model, false)
	fmt.Printf("without: %v\n         %v\n", model.Report(), err)

	model = &adaptertest.Script{Window: adaptertest.Window}
	err = reader.Run(ctx, c, o, model, false)
	fmt.Printf("with:    %v\n", model.Report())
	if err != nil {
		log.Fatal(err)
	}
}
