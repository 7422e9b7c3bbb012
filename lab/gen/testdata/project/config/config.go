// Package config reads the configuration file of shipqd: lines of the form
// "key = value", with # for comments.
package config

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"example.com/shipq/retry"
)

// Config is everything shipqd can be told.
type Config struct {
	Listen     string
	CarrierURL string
	CarrierKey string
	Workers    int
	Rate       int // label requests per second
	Burst      int
	Lease      time.Duration
	Requeue    time.Duration
	Retry      retry.Policy
}

// Default is the configuration without a file.
func Default() Config {
	return Config{
		Listen:  ":8080",
		Workers: 2,
		Rate:    5,
		Burst:   10,
		Lease:   2 * time.Minute,
		Requeue: 30 * time.Second,
		Retry:   retry.Default,
	}
}

// setters maps a key to the function that stores its value.
var setters = map[string]func(*Config, string) error{
	"listen":             func(c *Config, v string) error { c.Listen = v; return nil },
	"carrier.url":        func(c *Config, v string) error { c.CarrierURL = strings.TrimRight(v, "/"); return nil },
	"carrier.key":        func(c *Config, v string) error { c.CarrierKey = v; return nil },
	"workers":            func(c *Config, v string) error { return setInt(&c.Workers, v) },
	"carrier.rate":       func(c *Config, v string) error { return setInt(&c.Rate, v) },
	"carrier.burst":      func(c *Config, v string) error { return setInt(&c.Burst, v) },
	"dispatch.lease":     func(c *Config, v string) error { return setDuration(&c.Lease, v) },
	"dispatch.requeue":   func(c *Config, v string) error { return setDuration(&c.Requeue, v) },
	"retry.max_attempts": func(c *Config, v string) error { return setInt(&c.Retry.MaxAttempts, v) },
	"retry.base":         func(c *Config, v string) error { return setDuration(&c.Retry.Base, v) },
	"retry.cap":          func(c *Config, v string) error { return setDuration(&c.Retry.Cap, v) },
	"retry.jitter":       func(c *Config, v string) error { return setFloat(&c.Retry.Jitter, v) },
}

// Parse reads a file on top of the defaults. It reports all bad lines at once.
func Parse(r io.Reader) (Config, error) {
	c := Default()
	var errs []error
	sc := bufio.NewScanner(r)
	for n := 1; sc.Scan(); n++ {
		line, _, _ := strings.Cut(sc.Text(), "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			errs = append(errs, fmt.Errorf("line %d: no '='", n))
			continue
		}
		key = strings.TrimSpace(key)
		set, ok := setters[key]
		if !ok {
			errs = append(errs, fmt.Errorf("line %d: unknown key %q", n, key))
			continue
		}
		if err := set(&c, strings.TrimSpace(value)); err != nil {
			errs = append(errs, fmt.Errorf("line %d: %s: %w", n, key, err))
		}
	}
	if err := sc.Err(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return Config{}, errors.Join(errs...)
	}
	return c, c.validate()
}

func (c Config) validate() error {
	switch {
	case c.Workers < 1:
		return errors.New("workers must be at least 1")
	case c.Rate < 1 || c.Burst < 1:
		return errors.New("carrier.rate and carrier.burst must be at least 1")
	case c.Retry.Base <= 0 || c.Retry.Cap < c.Retry.Base:
		return errors.New("retry.base must be positive and not above retry.cap")
	case c.Retry.Jitter < 0 || c.Retry.Jitter > 1:
		return errors.New("retry.jitter must be between 0 and 1")
	}
	return nil
}

func setInt(p *int, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil {
		return fmt.Errorf("%q is not a number", v)
	}
	*p = n
	return nil
}

func setFloat(p *float64, v string) error {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return fmt.Errorf("%q is not a number", v)
	}
	*p = f
	return nil
}

func setDuration(p *time.Duration, v string) error {
	d, err := time.ParseDuration(v)
	if err != nil {
		return fmt.Errorf("%q is not a duration", v)
	}
	*p = d
	return nil
}
