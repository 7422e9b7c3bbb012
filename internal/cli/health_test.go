package cli

import "testing"

// TestReachable: a daemon that listens on all addresses is asked on this machine.
func TestReachable(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:7433":    "http://127.0.0.1:7433",
		"0.0.0.0:18733":     "http://127.0.0.1:18733",
		":18733":            "http://127.0.0.1:18733",
		"[::]:80":           "http://127.0.0.1:80",
		"[fe80::1]:80":      "http://[fe80::1]:80",
		"daemon.local:7433": "http://daemon.local:7433",
	} {
		if got := reachable(listen); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
}
