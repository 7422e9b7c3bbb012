package cli

import (
	"context"
	"io"
)

// interruptible makes reads end when the context does: a person who is asked
// for input on standard input must be able to leave with Ctrl-C.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

// chunk is what one read gave.
type chunk struct {
	data []byte
	err  error
}

// Read reads, or returns the context's error. It is for one goroutine.
func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	buf := make([]byte, len(p))
	read := make(chan chunk, 1) // a read that nobody waits for any more ends with its file
	go func() {
		n, err := i.r.Read(buf)
		read <- chunk{buf[:n], err}
	}()
	select {
	case got := <-read:
		return copy(p, got.data), got.err
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	}
}
