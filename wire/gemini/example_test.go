package gemini_test

import (
	"fmt"

	"github.com/palimpsest-ai/palimpsest/wire/gemini"
)

// A request is read, its output limit set, and the rest sent on as it was.
func Example() {
	body := `{"contents": [{"role": "user", "parts": [{"text": "Hello"}]}], "safetySettings": []}`
	p, err := gemini.Codec{}.Decode(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	p.MaxOutput = 256
	out, err := gemini.Codec{}.Encode(p)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(out))
	fmt.Println(len((gemini.Codec{}).Validate(out)), "problems")
	// Output:
	// {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}], "safetySettings": [],"generationConfig":{"maxOutputTokens":256}}
	// 0 problems
}

func ExampleCodec_Validate() {
	body := `{"contents":[{"role":"user","parts":[{"text":""}]}]}`
	for _, problem := range (gemini.Codec{}).Validate([]byte(body)) {
		fmt.Println(problem)
	}
	// Output:
	// contents[0].parts[0].text: empty text; leave the part out (empty-text)
}
