package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func checkCommand(s Streams) *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a request body against the rules of an API, and say what it would refuse",
		Long: `Check reads a request body and lists what the API would refuse, by JSON path, and
what is likely a mistake although the API would accept it ("advice"). The rules follow
the provider's documentation and are independent of the code that writes requests.
Without --to it is the API that the body looks like one of.`,
		Example: "  palimpsest check prompt.json --to anthropic\n  palimpsest compact session.jsonl --budget 32000 --to gemini | palimpsest check - --to gemini",
		Args:    exactArgs(1, "one FILE with the body of a request"),
		RunE: func(c *cobra.Command, args []string) error {
			body, err := readBody(args[0], s.In)
			if err != nil {
				return err
			}
			if file, err := transcript.Read(bytes.NewReader(body), nil); err == nil {
				to = cmp.Or(to, file.Format.API()) // as compact detects it
			}
			codec := apicodec.For(to)
			if codec == nil {
				return fmt.Errorf("%w: --to %s: say which API reads it: %s", errUsage, cmp.Or(to, "is missing"), strings.Join(targets[:len(targets)-1], ", "))
			}
			problems := append([]wire.Problem{}, codec.Validate(body)...)
			broken := len(brokenRules(problems))
			err = writeResult(s.Out, c, problems, func(p *printer) {
				for _, problem := range problems {
					kind := "broken"
					if problem.Advice {
						kind = "advice"
					}
					p.line("%s  %s: %s (%s)", kind, cmp.Or(problem.Path, "the body"), problem.Message, problem.Rule)
				}
				if broken == 0 {
					p.line("valid for the %s API", to)
				}
			})
			if err == nil && broken > 0 {
				err = fmt.Errorf("%w: the %s API would refuse it: %s", ErrInvalid, to, plural(broken, "broken rule"))
			}
			return err
		},
	}
	c.Flags().StringVar(&to, "to", "", "check against the rules of `API`: anthropic, openai, responses, gemini (default: what the body looks like)")
	c.Flags().Bool("json", false, "write the problems as a JSON array")
	return c
}

// checkJSON returns an error that names the place where a body is not valid JSON or nests too
// deep.
func checkJSON(path string, body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return fmt.Errorf("%w: %s is empty", ErrInvalid, path)
	}
	err := rawjson.Check(body)
	if errors.Is(err, rawjson.ErrDepth) {
		return fmt.Errorf("%w: %s: %w", ErrInvalid, path, err)
	}
	var syntax *json.SyntaxError
	var any json.RawMessage
	if err == nil || !errors.As(json.Unmarshal(body, &any), &syntax) {
		return nil
	}
	before := body[:min(int(syntax.Offset), len(body))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n') - 1
	if at := len(before) - 1; at > 0 && strings.IndexByte("{[", body[at]) >= 0 && rawjson.Valid(body[:at]) {
		return fmt.Errorf("%w: %s: line %d: a second value begins; check reads one request body (`palimpsest compact` makes one of a transcript)", ErrInvalid, path, line)
	}
	if int(syntax.Offset) >= len(body) && strings.HasPrefix(syntax.Error(), "unexpected end") {
		return fmt.Errorf("%w: %s: line %d: the file is cut off after byte %d of this line; check needs the whole body: %w", ErrInvalid, path, line, max(column, 1), syntax)
	}
	return fmt.Errorf("%w: %s: line %d, byte %d of it: not valid JSON: %w", ErrInvalid, path, line, max(column, 1), syntax)
}

// readBody reads a JSON body, plain or gzip.
func readBody(path string, stdin io.Reader) ([]byte, error) {
	f, err := openInput(path, stdin)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if path == "-" {
		path = "standard input"
	}
	plain := bufio.NewReader(io.LimitReader(f, maxInput+1))
	r, data := io.Reader(plain), []byte(nil)
	magic, _ := plain.Peek(2)
	packed := bytes.Equal(magic, []byte{0x1f, 0x8b})
	if packed {
		r, err = gzip.NewReader(plain)
	}
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(r, maxInput+1))
	}
	switch {
	case packed && errors.Is(err, io.ErrUnexpectedEOF) && len(data) == 0:
		return nil, fmt.Errorf("%w: %s: the compressed data is cut off at its beginning, nothing could be read", ErrInvalid, path)
	case packed && errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w: %s: the compressed data is cut off after %s; check needs the whole body", ErrInvalid, path, plural(len(data), "unpacked byte"))
	case err != nil && packed: // broken gzip
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, path, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(data) > maxInput:
		return nil, fmt.Errorf("%w: %s is longer than %d MB", ErrInvalid, path, maxInput>>20)
	}
	return data, checkJSON(path, data)
}
