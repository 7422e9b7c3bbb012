package config

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	c, err := Parse(strings.NewReader(`
# production
listen = :9000
carrier.url = https://api.northpost.example/
workers = 4          # one per core
dispatch.lease = 90s
retry.max_attempts = 8
retry.jitter = 0.5
`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != ":9000" || c.CarrierURL != "https://api.northpost.example" || c.Workers != 4 {
		t.Errorf("config = %+v", c)
	}
	if c.Lease != 90*time.Second || c.Retry.MaxAttempts != 8 || c.Retry.Jitter != 0.5 {
		t.Errorf("config = %+v", c)
	}
	if c.Retry.Base != 250*time.Millisecond {
		t.Errorf("retry.base = %v, want the default", c.Retry.Base)
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"no equals sign", "listen :9000", "line 1: no '='"},
		{"unknown key", "\nport = 1", `line 2: unknown key "port"`},
		{"bad number", "workers = many", `"many" is not a number`},
		{"bad duration", "retry.cap = 30", `"30" is not a duration`},
		{"no workers", "workers = 0", "at least 1"},
		{"cap below base", "retry.cap = 1ms", "not above retry.cap"},
		{"jitter", "retry.jitter = 2", "between 0 and 1"},
	}
	for _, tt := range tests {
		_, err := Parse(strings.NewReader(tt.in))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}
