package transcript_test

import (
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest/transcript"
)

func ExampleRead() {
	log := `{"type":"session","version":3,"id":"tide","timestamp":"2026-03-01T11:00:00Z","cwd":"/w"}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-03-01T11:00:01Z","message":{"role":"user","content":"When is high tide?"}}
{"type":"message","id":"b","parentId":"a","timestamp":"2026-03-01T11:00:02Z","message":{"role":"assistant","content":[{"type":"text","text":"At noon."}]}}
{"type":"hologram","id":"c","parentId":"b"}`
	file, err := transcript.Read(strings.NewReader(log), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(file.Format, file.Transcripts[0].Name)
	for _, m := range file.Transcripts[0].Thread.All() {
		fmt.Println(m.Turn, m.Role, m.Text())
	}
	fmt.Println("not known:", file.Report.Unknown)
	// Output:
	// pi tide
	// 1 user When is high tide?
	// 1 assistant At noon.
	// not known: map[hologram:1]
}
