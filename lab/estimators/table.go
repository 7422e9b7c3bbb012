package estimators

import (
	"fmt"
	"io"
	"strings"

	"github.com/palimpsest-ai/palimpsest/lab/texttable"
)

// WriteTable writes the report for people, in 80 columns.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nEstimators of token counts: (estimate - %s) / %s of each text\n%d conversations (%s), corpus %s\n\n", r.Real, r.Real, r.Sessions, r.Split.String(), r.Corpus)
	g := texttable.Table{Head: []string{"estimator, class", "texts", "tokens", "p1", "p50", "p99", "all together"}}
	made := false
	for _, x := range r.Rows {
		name := x.Estimator + ", " + x.Class
		if x.Made {
			name, made = name+" *", true
		}
		signed := func(v float64) string { return fmt.Sprintf("%+.3f", v) }
		g.Row(name, fmt.Sprint(x.Texts), fmt.Sprint(x.Tokens), signed(x.P1), signed(x.P50), signed(x.P99), signed(x.Whole))
	}
	g.Write(&b)
	if made {
		b.WriteString("* made texts: the conversations hold too few of the class\n")
	}
	b.WriteString("claude and gemini are for tokenizers that are not public: docs/tokens.md has claude\nbeside recorded usage.\n")
	_, err := io.WriteString(w, b.String())
	return err
}
