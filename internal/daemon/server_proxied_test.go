package daemon_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
)

// TestProxied: what is none of the API's goes to the proxy of the tenant whose key
// was sent, and to nobody without one; the key goes no further, and what the
// provider says is not dressed up. A wrong method at an address of the API is
// never passed on.
func TestProxied(t *testing.T) {
	var tenants []string
	upstream := func(tenant string) (http.Handler, error) {
		if tenant == "broken" {
			return nil, errors.New("no upstream for CANARY")
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tenants = append(tenants, tenant)
			for name, values := range r.Header {
				if strings.Contains(strings.Join(values, " "), "plk_") {
					t.Errorf("the provider is sent our key as %s", name)
				}
			}
			w.Header().Set("X-Provider", "yes") // it is held against no document of ours
			w.Header().Set("X-Request-Id", "req_of_provider")
			w.WriteHeader(http.StatusTeapot)
			io.Copy(w, r.Body)
		}), nil
	}
	h := start(t, daemon.Config{Proxy: upstream})
	answer, body := h.do(t, "POST", "/v1/messages", "hello", "Authorization", "Bearer sk-provider")
	if answer.StatusCode != http.StatusTeapot || body != "hello" || strings.Join(answer.Header.Values("X-Request-Id"), ",") != "req_of_provider" {
		t.Errorf("%d %q %v", answer.StatusCode, body, answer.Header)
	}
	if answer, _ := h.do(t, "PUT", "/v1/threads", ""); answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a wrong method: %d", answer.StatusCode)
	}
	// A slip in an address of ours stays here, with what was sent to it.
	for _, path := range []string{"/v1/threads/t/mesages", "/v1/threads/", "/v1//threads/t/mesages", "/v1/models/../threads/t/x"} {
		if answer, body := h.do(t, "POST", path, "secret"); answer.StatusCode != http.StatusNotFound || strings.Contains(body, "secret") {
			t.Errorf("%s: %d %s", path, answer.StatusCode, body)
		}
	}
	// So does what is no provider's: a browser that looks for a page.
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/index.html", 404, ""}, {"GET", "/ui", 404, ""}, {"POST", "/", 405, "GET"}, {"GET", "/favicon.ico", 404, ""}, {"POST", "/v1/nothing", 404, ""},
		{"GET", "/v1/messages", 405, "POST"}, {"PUT", "/v1/models", 405, "GET"}, {"POST", "/healthz", 405, "GET"},
	} {
		answer, body := h.do(t, c.method, c.path, "secret")
		if answer.StatusCode != c.status || strings.Join(answer.Header.Values("Allow"), ", ") != c.allow || !strings.Contains(body, `"detail":"`) || strings.Contains(body, "secret") {
			t.Errorf("%s %s: %d %v %s", c.method, c.path, answer.StatusCode, answer.Header.Values("Allow"), body)
		}
	}
	if len(tenants) != 1 {
		t.Errorf("%d requests went on", len(tenants))
	}
	if answer, _ := h.do(t, "POST", "/v1/messages", "", "Origin", "https://evil.example"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a page of another origin: %d", answer.StatusCode)
	}

	keys := tenantKeys{"plk_acme": {Grant: apikey.Grant{Tenant: "acme", Rights: apikey.Read | apikey.Write}}, "plk_writer": {Grant: apikey.Grant{Tenant: "acme", Rights: apikey.Write}}, "plk_reader": {Grant: apikey.Grant{Tenant: "acme", Rights: apikey.Read}}, "plk_broken": {Grant: apikey.Grant{Tenant: "broken", Rights: apikey.Read | apikey.Write}}}
	h = start(t, daemon.Config{Proxy: upstream, Keys: keys})
	for _, test := range []struct {
		key  string
		want int
	}{
		{"plk_acme", http.StatusTeapot},
		{"plk_reader", http.StatusForbidden},
		{"plk_writer", http.StatusForbidden},
		{"plk_wrong", http.StatusUnauthorized},
		{"plk_broken", http.StatusInternalServerError},
		{"", http.StatusUnauthorized},
	} {
		answer, body := h.do(t, "POST", "/v1/messages", "{}", "Authorization", "Bearer sk-provider", daemon.KeyHeader, test.key)
		if answer.StatusCode != test.want || strings.Contains(body, "CANARY") {
			t.Errorf("key %q: %d %s", test.key, answer.StatusCode, body)
		}
	}
	if got := strings.Join(tenants, " "); got != " acme" { // one request without a tenant, one of acme's
		t.Errorf("served the tenants %q", got)
	}
	// Without a proxy there is nothing.
	h = start(t, daemon.Config{})
	if answer, _ := h.do(t, "POST", "/v1/messages", ""); answer.StatusCode != http.StatusNotFound {
		t.Errorf("without a proxy: %d", answer.StatusCode)
	}
}

// tenantKeys are keys by their token.
type tenantKeys map[string]apikey.Key

func (k tenantKeys) Check(_ context.Context, token string) (apikey.Key, error) {
	key, ok := k[token]
	if !ok {
		return key, apikey.ErrUnauthorized
	}
	return key, nil
}
