package wire

// Limits are the sizes of a request, beside its tokens, that an API takes. Zero is not known.
type Limits struct {
	// Bytes is the largest body.
	Bytes int
	// Pictures is the largest number of images.
	Pictures int
}

// The rules of Problems about sizes.
const (
	BytesRule    = "size"
	PicturesRule = "pictures"
)

// limits are the published ones.
var limits = map[string]Limits{
	// https://docs.anthropic.com/en/api/overview (request size limits)
	// https://docs.anthropic.com/en/docs/build-with-claude/vision (images per request)
	Anthropic: {Bytes: 32 << 20, Pictures: 100},
}

// LimitsOf returns the limits of an API, the zero value for one without known limits.
func LimitsOf(api string) Limits { return limits[api] }
