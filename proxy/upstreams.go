package proxy

// Upstream is a provider that a Proxy sends requests to.
type Upstream struct {
	// Name is that of the provider: "Anthropic", "OpenAI" or "Gemini".
	Name string
	// URL is where its requests go, without a password.
	URL string
	// Requests counts those that asked a model, as Totals does.
	Requests int64
}

// Upstreams are the providers of a proxy, and how many requests each had so far.
// Together these are Totals.Requests.
func (p *Proxy) Upstreams() []Upstream {
	var all []Upstream
	for _, u := range []struct {
		name   string
		vendor vendor
	}{{"Anthropic", anthropicVendor}, {"OpenAI", openaiVendor}, {"Gemini", geminiVendor}} {
		all = append(all, Upstream{u.name, p.upstreams[u.vendor].Redacted(), p.transport.byVendor[u.vendor].Load()})
	}
	return all
}

// requested counts a request that asks a model.
func (t *Transport) requested(e endpoint) {
	t.requests.Add(1)
	t.byVendor[e.vendor()].Add(1)
}
