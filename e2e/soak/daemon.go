//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
)

// daemon is `palimpsest serve`, which may be killed and started again at the same
// address.
type daemon struct {
	name    string
	program string
	args    []string
	log     string
	url     string
	client  *api.Client
	http    *http.Client

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
	// starts, kills and stops are how often it was started, killed and asked to stop.
	starts, kills, stops int
	since                time.Time
}

func newDaemon(o options, name, store, upstream string) (*daemon, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	l.Close()
	d := &daemon{name: name, program: o.program, url: "http://" + address, log: filepath.Join(o.work, name+".log"), http: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
	d.args = []string{"serve", "--listen", address, "--store", store, "--rate", "100000", "--burst", "100000", "--window", "24000", "--openai-upstream", upstream + "/v1", "--log-level", "warn", "--drain", "5s"}
	if o.memory != "" {
		d.args = append(d.args, "--memory", o.memory)
	}
	d.client, err = api.NewClient(d.url, &api.Options{HTTP: d.http})
	return d, err
}

// start starts it, unless it runs, and waits until it is ready.
func (d *daemon) start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cmd == nil {
		log, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer log.Close()
		cmd := exec.Command(d.program, d.args...)
		cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Join(filepath.Dir(d.log), "config"), "XDG_DATA_HOME="+filepath.Join(filepath.Dir(d.log), "data"))
		cmd.Stderr = log
		if err := cmd.Start(); err != nil {
			return err
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = cmd.Wait() // how it ended is for its log to say
		}()
		d.cmd, d.ended, d.since = cmd, ended, time.Now()
		d.starts++
	}
	for range 600 {
		if res, err := d.http.Get(d.url + "/readyz"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-d.ended:
			said, _ := os.ReadFile(d.log)
			return fmt.Errorf("%s has ended:\n%s", d.name, said[max(0, len(said)-1000):])
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New(d.name + " is not ready after half a minute")
}

// end sends it a signal and waits until it is gone.
func (d *daemon) end(how os.Signal) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cmd == nil {
		return nil
	}
	if how == os.Kill {
		d.kills++
	} else {
		d.stops++
	}
	err := d.cmd.Process.Signal(how)
	<-d.ended
	d.cmd = nil
	return err
}

// look is what it takes now; false while it is not there.
func (d *daemon) look() (f looked, ok bool) {
	d.mu.Lock()
	if d.cmd == nil {
		d.mu.Unlock()
		return f, false
	}
	pid, since := d.cmd.Process.Pid, d.since
	d.mu.Unlock()
	f.age = time.Since(since)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return f, false
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kb, _ := strconv.Atoi(strings.Fields(rest + " 0")[0])
	f.megabytes = kb >> 10
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return f, false
	}
	if _, rest, _ := strings.Cut(string(stat), ") "); len(strings.Fields(rest)) > 12 {
		for _, ticks := range strings.Fields(rest)[11:13] { // of user and system, each 10 ms
			n, _ := strconv.Atoi(ticks)
			f.processor += time.Duration(n) * 10 * time.Millisecond
		}
	}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return f, false
	}
	f.files = len(entries)
	res, err := d.http.Get(d.url + "/metrics")
	if err != nil {
		return f, false
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		return f, false
	}
	for line := range strings.Lines(string(page)) {
		if value, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			f.goroutines, _ = strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return f, true
}

// looked is what a daemon takes at a time.
type looked struct {
	age, processor               time.Duration
	megabytes, files, goroutines int
}
