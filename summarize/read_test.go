package summarize

import (
	"context"
	"os"
	"strconv"
	"testing"
)

func TestReadOut(t *testing.T) {
	name := os.Getenv("SESSION")
	if name == "" {
		t.SkipNow()
	}
	b, _ := strconv.Atoi(os.Getenv("B"))
	m := session(t, name)
	cut := len(m) - 20
	e := &Extractive{}
	s, err := e.Summarize(context.Background(), Input{Messages: m[:cut], Context: m[cut:], Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	r := s.Render()
	t.Logf("len msgs %d tokens %d\n%s", len(m), (len(r)+3)/4, r)
}
