package summarize

// terms are the words with a content, and the pairs of them that stand side by side,
// of what the assistant said. A choice that covers the frequent ones once tells more
// than one that repeats itself (coverage of concepts weighted by frequency: Gillick
// and Favre 2009, "A Scalable Global Model for Summarization").
type terms struct {
	id    map[string]int32
	count []float32 // how many pieces hold it
}

// termsOf lists the terms of a text.
func termsOf(s string) []string {
	var all []string
	last := ""
	for w := range stems(s) {
		if last != "" {
			all = append(all, last+" "+w)
		}
		all = append(all, w)
		last = w
	}
	return all
}

// add counts the terms of a piece and returns their numbers.
func (t *terms) add(all []string) []int32 {
	if t.id == nil {
		t.id = map[string]int32{}
	}
	numbers := make([]int32, len(all))
	for i, s := range all {
		n, ok := t.id[s]
		if !ok {
			n = int32(len(t.count))
			t.id[s], t.count = n, append(t.count, 0)
		}
		t.count[n]++
		numbers[i] = n
	}
	return numbers
}
