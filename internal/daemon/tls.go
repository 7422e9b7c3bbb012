package daemon

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// TLS makes the configuration for Config.TLS from the files of a certificate (with
// those of its issuers behind it) and of its key, both PEM. They are read anew when
// they have changed, so that a certificate can be renewed while the daemon runs;
// where the new ones cannot be used the old one stays. The error says which file
// cannot be used now.
func TLS(certFile, keyFile string) (*tls.Config, error) {
	p := &pair{files: [2]string{certFile, keyFile}}
	if _, err := p.get(nil); err != nil {
		return nil, err
	}
	return &tls.Config{GetCertificate: p.get}, nil
}

// pair is a certificate and the files that it comes from.
type pair struct {
	files [2]string

	mu     sync.Mutex
	read   [2]stamp // of the files as they were tried last
	loaded *tls.Certificate
}

// stamp tells one state of a file from another.
type stamp struct {
	changed time.Time
	size    int64
}

// get implements tls.Config.GetCertificate.
func (p *pair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var now [2]stamp
	for n, file := range p.files {
		// One that is not there has the zero stamp, and loading says so.
		if info, err := os.Stat(file); err == nil {
			now[n] = stamp{info.ModTime(), info.Size()}
		}
	}
	if p.loaded != nil && now == p.read {
		return p.loaded, nil
	}
	p.read = now
	fresh, err := tls.LoadX509KeyPair(p.files[0], p.files[1])
	switch {
	case err == nil:
		p.loaded = &fresh
	case p.loaded == nil:
		return nil, fmt.Errorf("daemon.TLS(%s, %s): %w", p.files[0], p.files[1], err)
	}
	return p.loaded, nil
}
