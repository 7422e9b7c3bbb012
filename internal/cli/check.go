package cli

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/wire"
)

func checkCommand(s Streams) *cobra.Command {
	var to string
	var asJSON bool
	c := &cobra.Command{
		Use:   "check FILE --to API",
		Short: "Check a request body against the rules of an API, and say what it would refuse",
		Args:  exactly(1, "one FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			codec := codecs[to]
			if codec == nil {
				return fmt.Errorf("%w: --to %q: known are %s, %s, %s, %s", errUsage, to, targets[0], targets[1], targets[2], targets[3])
			}
			body, err := readBody(args[0], s.In)
			if err != nil {
				return err
			}
			problems := codec.Validate(body)
			if asJSON {
				if problems == nil {
					problems = []wire.Problem{}
				}
				if err := writeJSON(s.Out, problems); err != nil {
					return err
				}
			}
			broken := 0
			for _, p := range problems {
				kind := "advice"
				if !p.Advice {
					kind, broken = "broken", broken+1
				}
				if !asJSON {
					fmt.Fprintf(s.Out, "%s  %s: %s (%s)\n", kind, p.Path, p.Message, p.Rule)
				}
			}
			if broken > 0 {
				return fmt.Errorf("%w: the %s API would refuse it: %s", errInvalid, to, plural(broken, "broken rule"))
			}
			if !asJSON {
				fmt.Fprintf(s.Out, "valid for the %s API\n", to)
			}
			return nil
		},
	}
	c.Flags().StringVar(&to, "to", "", "check against the rules of `API`: anthropic, openai, responses, gemini")
	c.Flags().BoolVar(&asJSON, "json", false, "write the problems as a JSON array")
	return c
}

// maxBody bounds a request body, in bytes; the providers stop at 32 to 64 MB.
const maxBody = 128 << 20

// readBody reads a body, plain or gzip.
func readBody(path string, stdin io.Reader) ([]byte, error) {
	r := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	}
	data, err := limited(r, path)
	if err != nil || !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, err
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errInvalid, path, err)
	}
	return limited(z, path)
}

func limited(r io.Reader, path string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errInvalid, path, err)
	}
	if len(data) > maxBody {
		return nil, fmt.Errorf("%w: %s is longer than %d MB", errInvalid, path, maxBody>>20)
	}
	return data, nil
}
