package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// interruptibleReader ends a read when the context ends, so that Ctrl-C works while a
// command waits for standard input.
type interruptibleReader struct {
	ctx context.Context
	r   io.Reader
}

// Read reads, or returns the context's error. It is not safe for concurrent use.
func (i *interruptibleReader) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	var n int
	var err error
	buf, read := make([]byte, len(p)), make(chan struct{})
	go func() { // an abandoned read ends when its file is closed
		n, err = i.r.Read(buf)
		close(read)
	}()
	select {
	case <-read:
		return copy(p, buf[:n]), err
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	}
}

// openInput opens a file, or "-" for standard input. A pipe ends with the context of stdin.
func openInput(path string, stdin io.Reader) (io.ReadCloser, error) {
	switch {
	case path == "-":
		return io.NopCloser(stdin), nil
	case isPipe(path):
		return io.NopCloser(openPipe(path, stdin)), nil
	}
	if err := checkNoFolder(path); err != nil {
		return nil, err
	}
	return os.Open(path)
}

func isPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}

// openPipe opens a pipe at the first read: nobody may ever write to it, and to open it waits too.
func openPipe(path string, stdin io.Reader) io.Reader {
	r := &pipe{path: path}
	if i, ok := stdin.(*interruptibleReader); ok {
		return &interruptibleReader{ctx: i.ctx, r: r}
	}
	return r
}

type pipe struct {
	path string
	file *os.File
	err  error // of its end
}

// Read implements io.Reader. It closes the pipe at its end.
func (p *pipe) Read(data []byte) (n int, err error) {
	if p.file == nil && p.err == nil {
		p.file, p.err = os.Open(p.path)
	}
	if p.err != nil {
		return 0, p.err
	}
	if n, p.err = p.file.Read(data); p.err != nil {
		p.file.Close()
	}
	return n, p.err
}

// checkNoFolder returns an error for the name of a folder.
func checkNoFolder(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory; name a file in it", path)
	}
	return nil
}
