package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/scripttest"
)

func TestMain(m *testing.M) {
	corpus.CollectLessOften()
	testscript.Main(m, map[string]func(){"palimpsest-eval": main})
}

func TestScript(t *testing.T) { scripttest.Run(t, "palimpsest-eval", run) }
