// Shipqd serves the HTTP API and runs the dispatch workers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"example.com/shipq/carrier"
	"example.com/shipq/config"
	"example.com/shipq/dispatch"
	"example.com/shipq/httpapi"
	"example.com/shipq/ratelimit"
	"example.com/shipq/retry"
	"example.com/shipq/store"
)

func main() {
	path := flag.String("config", "shipq.conf", "configuration file")
	flag.Parse()
	if err := run(*path); err != nil {
		fmt.Fprintln(os.Stderr, "shipqd:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	cfg, err := config.Parse(f)
	f.Close()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	st := store.New(nil)
	client := &carrier.Client{
		BaseURL: cfg.CarrierURL,
		APIKey:  cfg.CarrierKey,
		HTTP:    &http.Client{Timeout: 20 * time.Second},
		Retry: retry.Runner{
			Policy: cfg.Retry,
			OnRetry: func(attempt int, err error, d time.Duration) {
				log.Warn("label request will be repeated", "attempt", attempt, "delay", d, "err", err)
			},
		},
	}
	limiter := ratelimit.New(cfg.Rate, cfg.Burst, nil)

	var wg sync.WaitGroup
	for i := range cfg.Workers {
		w := &dispatch.Worker{
			Name:    fmt.Sprintf("w%d", i+1),
			Store:   st,
			Shipper: client,
			Limiter: limiter,
			Log:     log,
			Lease:   cfg.Lease,
			Requeue: cfg.Requeue,
			Idle:    time.Second,
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			w.Run(ctx)
		}()
	}

	srv := &http.Server{Addr: cfg.Listen, Handler: (&httpapi.API{Store: st, Log: log}).Handler()}
	go func() {
		<-ctx.Done()
		shut, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		srv.Shutdown(shut)
	}()
	log.Info("listening", "addr", cfg.Listen, "workers", cfg.Workers)
	err = srv.ListenAndServe()
	stop()
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
