// Package progress shows on a terminal how far a measure is.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
)

// To returns a function that draws a bar on w, or nil if w is no terminal.
func To(w io.Writer, what string) func(done, total int) {
	if !isTerminal(w) {
		return nil
	}
	return bar(w, what, time.Now)
}

// Clear removes the bar of a measure that was interrupted, so that the next output starts on an
// empty line.
func Clear(w io.Writer) {
	if isTerminal(w) {
		clearLine(w)
	}
}

func clearLine(w io.Writer) { fmt.Fprint(w, "\r\x1b[K") }

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && isatty.IsTerminal(f.Fd())
}

// bar redraws its line, and clears it at the end.
func bar(w io.Writer, what string, now func() time.Time) func(done, total int) {
	start := now()
	return func(done, total int) {
		if done >= total {
			clearLine(w)
			return
		}
		const width = 20 // all of it fits into 60 columns
		full := width * done / max(1, total)
		left := now().Sub(start) / time.Duration(max(1, done)) * time.Duration(total-done)
		fmt.Fprintf(w, "\r%s [%s%s] %d of %d, about %s left\x1b[K", what, strings.Repeat("#", full), strings.Repeat(".", width-full), done, total, left.Round(time.Second))
	}
}
