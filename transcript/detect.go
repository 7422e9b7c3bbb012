package transcript

import (
	"fmt"
	"io"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// detectLines is how many lines are searched for the format.
const detectLines = 200

// detect finds the format from the first line that shows it, and puts the lines back.
func detect(in *input) (Format, error) {
	first, number, err := in.next()
	if err != nil {
		return "", err
	}
	in.unread(first, number)
	format := sniff(gjson.ParseBytes(first))
	for n := 1; format == "" && n < detectLines; n++ {
		line, number, err := in.readChecked()
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
		in.unread(line, number)
		format = sniff(gjson.ParseBytes(line))
	}
	if format == "" {
		return "", fmt.Errorf("%w: the file starts with %s; name the format if it is one of %s", ErrUnknownFormat, describeValue(gjson.ParseBytes(in.pending[0].line)), joinFormats(Formats()))
	}
	return format, nil
}

// describeValue describes a JSON value in messages about unknown content.
func describeValue(v gjson.Result) string {
	switch {
	case v.IsArray() && v.Get("#").Int() == 0:
		return "an empty array"
	case v.IsArray():
		return fmt.Sprintf("an array of %d elements", v.Get("#").Int())
	case v.IsObject():
		var keys []string
		for name := range rawjson.Members(v) {
			if keys = append(keys, clip.Line(name, 30)); len(keys) == 8 {
				break
			}
		}
		if len(keys) == 0 {
			return "an empty object"
		}
		return "an object with " + strings.Join(keys, ", ")
	}
	return fmt.Sprintf("the value %s", clip.Line(v.Raw, 40))
}
