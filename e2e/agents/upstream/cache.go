package main

import (
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// cache is a provider's prompt cache that forgets nothing: of a request it gives the longest prefix
// that an earlier request wrote. Anthropic writes at the client's marks, and finds what was
// written at most twenty blocks before one; the others write by themselves.
type cache struct {
	seed    maphash.Seed
	written map[uint64]bool
	all     int64 // bytes of the prompts
	read    int64 // of them those that the cache gave
	// unmarked says that no message of the first request had a mark where the provider asks for
	// marks: later ones have the proxy's.
	unmarked bool
}

const (
	lookBack = 20      // blocks before a mark
	piece    = 4 * 128 // bytes: the others cache 128 tokens at a time
	least    = 8 * piece
)

// share is the part of all prompts so far that the cache gave.
func (c *cache) share() string {
	share := fmt.Sprintf("%.2f", float64(c.read)/float64(max(c.all, 1)))
	if c.unmarked {
		share += " (no marks of its own)"
	}
	return share
}

// take reads a request and writes what it may leave, and returns the part that was there, as a share.
func (c *cache) take(q *proxytest.Request) float64 {
	var text strings.Builder
	var ends, marks []int // of the blocks, in bytes; and the blocks that are marked, by number
	body := gjson.ParseBytes(q.Body)
	block := func(v gjson.Result) {
		if v.Get("cache_control").Exists() {
			marks = append(marks, len(ends))
		}
		text.WriteString(unread.ReplaceAllString(v.Raw, ""))
		ends = append(ends, text.Len())
	}
	for _, field := range []string{"tools", "system", "systemInstruction", "instructions", "messages", "input", "contents"} {
		if !body.Get(field).IsArray() {
			block(body.Get(field))
			continue
		}
		for _, m := range body.Get(field).Array() {
			if field != "messages" || !m.Get("content").IsArray() {
				block(m)
				continue
			}
			text.WriteString(m.Get("role").Raw)
			for _, b := range m.Get("content").Array() {
				block(b)
			}
		}
	}
	if q.API == wire.Anthropic && body.Get("cache_control").Exists() { // one mark at the end, which moves
		marks = append(marks, len(ends)-1)
	}
	if q.API != wire.Anthropic {
		ends = ends[:0]
		for n := least; n <= text.Len(); n += piece {
			marks, ends = append(marks, len(ends)), append(ends, n)
		}
	}
	marked := body.Get("cache_control").Exists() || strings.Contains(body.Get("messages").Raw, `"cache_control"`)
	c.unmarked = c.unmarked || c.all == 0 && q.API == wire.Anthropic && !marked
	read := c.find(text.String(), ends, marks)
	c.all += int64(text.Len())
	c.read += int64(read)
	return float64(read) / float64(max(text.Len(), 1))
}

// find gives the bytes of the longest prefix that was written, and writes those up to the marks.
func (c *cache) find(text string, ends, marks []int) int {
	if c.written == nil {
		c.seed, c.written = maphash.MakeSeed(), map[uint64]bool{}
	}
	var h maphash.Hash
	h.SetSeed(c.seed)
	sums, at := make([]uint64, len(ends)), 0
	for i, end := range ends {
		h.WriteString(text[at:end])
		sums[i], at = h.Sum64(), end
	}
	found := 0
	for _, mark := range marks {
		for i := mark; i >= max(mark-lookBack, 0); i-- {
			if c.written[sums[i]] {
				found = max(found, ends[i])
				break
			}
		}
	}
	for _, mark := range marks {
		c.written[sums[mark]] = true
	}
	return found
}
