package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/eval"
)

// progress draws a bar with the time left, where the stream is a terminal.
func progress(w io.Writer, what string) eval.Progress {
	if !terminal(w) {
		return nil
	}
	return bar(w, what, time.Now)
}

// bar draws over its own line, and wipes it away at the end.
func bar(w io.Writer, what string, now func() time.Time) eval.Progress {
	start := now()
	return func(done, total int) {
		if done >= total {
			wipe(w)
			return
		}
		const width = 20 // all of it fits into 60 columns
		full := width * done / max(1, total)
		left := now().Sub(start) / time.Duration(max(1, done)) * time.Duration(total-done)
		fmt.Fprintf(w, "\r%s [%s%s] %d of %d, about %s left\x1b[K", what, strings.Repeat("#", full), strings.Repeat(".", width-full), done, total, left.Round(time.Second))
	}
}

// wipe takes a bar away, so that what follows begins a line.
func wipe(w io.Writer) { fmt.Fprint(w, "\r\x1b[K") }
