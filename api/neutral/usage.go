package neutral

// Usage is what a provider counted, in tokens.
type Usage struct {
	// Input is the whole request, cached or not.
	Input int `json:"input"`
	// CacheRead and CacheWrite are the parts of Input that were read from and
	// written to the provider's prompt cache.
	CacheRead  int `json:"cache_read,omitempty"`
	CacheWrite int `json:"cache_write,omitempty"`
	// Output is the answer.
	Output int `json:"output"`
}
