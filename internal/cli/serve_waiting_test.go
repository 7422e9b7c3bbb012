package cli

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// due is a thread that a workstream with a window of 9,000 tokens compacts at its next
// step.
func due(t *testing.T, c *api.Client) {
	t.Helper()
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	var log []neutral.Message
	for n := range 7 {
		log = append(log, spoken("user", fmt.Sprintf("Please tidy part %d.", n)), spoken("assistant", strings.Repeat("The queue holds orders. ", 120)))
	}
	if _, err := c.Append(t.Context(), "t", 0, api.Append{Messages: log}); err != nil {
		t.Fatal(err)
	}
}

func spoken(role, text string) neutral.Message {
	return neutral.Message{Role: role, Parts: []neutral.Part{{Type: neutral.TextPart, Text: text}}}
}

// preparedOrWaits asks for the next prompt. It is the version of its plan, or "waits"
// where a daemon that is to wait for ten minutes gives no answer although the thread was
// asked for a thousand times beside it. Any other answer is waited for.
func preparedOrWaits(t *testing.T, c *api.Client, args []string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan string, 1)
	go func() {
		p, err := c.Prepare(ctx, "t", api.Any, api.Step{API: wire.Chat, Messages: []neutral.Message{spoken("user", "Go on.")}})
		if err != nil {
			done <- "no answer"
			return
		}
		done <- fmt.Sprint("plan ", p.PlanVersion)
	}()
	if args[len(args)-1] == "10m" {
		for asked := 0; asked < 1000 && len(done) == 0; asked++ {
			if _, err := c.Thread(t.Context(), "t"); err != nil {
				t.Fatal(err)
			}
		}
		if len(done) == 0 {
			cancel()
			<-done
			return "waits"
		}
	}
	got := <-done
	if got == "no answer" {
		t.Error("the step cannot be prepared")
	}
	return got
}

func clientOf(t *testing.T, address string) *api.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := api.NewClient(address, &api.Options{HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// waitingForModel is a daemon whose summarizer does not answer.
func waitingForModel(t *testing.T, args ...string) string {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer s.Close()
	t.Setenv("OPENAI_BASE_URL", s.URL+"/v1")
	address, stop := running(t, append([]string{"--rate", "100000", "--burst", "100000", "--drain", "1ms"}, args...)...)
	defer stop()
	c := clientOf(t, address)
	due(t, c)
	return preparedOrWaits(t, c, args)
}

// waitingForDead is a daemon on a store in which another process has begun to compact
// the thread and was killed.
func waitingForDead(t *testing.T, args ...string) string {
	file := filepath.Join(t.TempDir(), "dead.db")
	address, stop := running(t, append(args, "--store", "sqlite:"+file, "--rate", "100000", "--burst", "100000")...)
	defer stop()
	c := clientOf(t, address)
	due(t, c)
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	job, _ := json.Marshal(map[string]any{"kind": "compact", "key": "compact::t"})
	now := time.Now().UTC().Format("2006-01-02 15:04:05.000")
	_, err = db.Exec(`INSERT INTO river_job (args, kind, max_attempts, attempt, attempted_at, attempted_by, state, metadata, tags)
		VALUES (?, 'palimpsest', 2, 1, ?, '["dead"]', 'running', '{}', '[]')`, string(job), now)
	if err != nil {
		t.Fatal(err)
	}
	if th, err := c.Thread(t.Context(), "t"); err != nil || !th.Compacting {
		t.Errorf("the thread does not say that it is being compacted: %v", err)
	}
	return preparedOrWaits(t, c, args)
}
