package arch_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/arch"
)

// External packages, as the table allows them.
const (
	gjson      = "github.com/tidwall/gjson"
	sjson      = "github.com/tidwall/sjson"
	tiktoken   = "github.com/tiktoken-go/tokenizer"
	uax29      = "github.com/clipperhouse/uax29/v2"
	shsyntax   = "mvdan.cc/sh/v3"
	snowball   = "github.com/blevesearch/snowballstem"
	cobra      = "github.com/spf13/cobra"
	pflag      = "github.com/spf13/pflag"
	otel       = "go.opentelemetry.io/otel"
	goyaml     = "github.com/goccy/go-yaml"
	goleak     = "go.uber.org/goleak"
	gocmp      = "github.com/google/go-cmp"
	jsonschema = "github.com/google/jsonschema-go"
	rapid      = "pgregory.net/rapid"
	testscript = "github.com/rogpeppe/go-internal"
	mcpsdk     = "github.com/modelcontextprotocol/go-sdk"
	prometheus = "github.com/prometheus/client_golang"
	river      = "github.com/riverqueue/river"
	pgx        = "github.com/jackc/pgx/v5"
	sqlite     = "modernc.org/sqlite"
	// Codex and others send zstd bodies, which the standard library cannot read. It
	// is in the module graph anyway, by client_golang.
	zstd = "github.com/klauspost/compress"
	// A character device may be no terminal, such as the null device. It is in the module graph
	// anyway, by modernc.org/sqlite.
	isatty = "github.com/mattn/go-isatty"
	// What is written to a terminal comes in pieces that may part a character. In the module graph anyway,
	// by snowballstem.
	xtext = "golang.org/x/text"
	// Codex asks for responses on a WebSocket, by default.
	ws = "github.com/coder/websocket"
)

// floors is the architecture: every package of the module, its floor, the arrows
// within the floor, and what it takes from outside.
var floors = map[string]arch.Package{
	// 7: programs.
	"cmd/palimpsest":  {Floor: 7, Same: []string{"internal/cli"}},
	"internal/cli":    {Floor: 7, Same: []string{"internal/setup", "internal/config", "internal/daemon", "internal/install", "internal/mcp", "internal/sessions", "internal/web", "internal/dsn"}, External: []string{cobra, pflag, gjson, isatty, xtext}},
	"internal/config": {Floor: 7, Same: []string{"internal/dsn"}, External: []string{goyaml}},
	"internal/daemon": {Floor: 7, Same: []string{"internal/mcp", "internal/web", "store/mem"}, External: []string{prometheus, gjson}},

	// 7: what agents ask by the Model Context Protocol.
	"internal/mcp": {Floor: 7, External: []string{mcpsdk}},
	"internal/web": {Floor: 7},

	// 7: the sessions that agents left on this machine.
	"internal/sessions": {Floor: 7, External: []string{gjson, sqlite}},

	// 7: what is put into the agents of this machine.
	"internal/install": {Floor: 7, Same: []string{"internal/sessions"}, External: []string{gjson}},

	// 1: what a model notes of its own context.
	"internal/notes": {Floor: 1, External: []string{gjson}},

	// 4: what a compaction lost.
	"internal/lost": {Floor: 4},

	// 7: the page on which conversations are looked at.

	// 7: names, files and environment become a policy with its models.
	"internal/setup": {Floor: 7, External: []string{gjson}},

	// Files for other programs.
	"integrations": {Floor: 6},
	// It starts programs and asks them over HTTP.
	"internal/ondemand": {Floor: 6},

	// 6: what the daemon and its clients say to each other.
	"api":      {Floor: 6, Same: []string{"api/view"}},
	"api/view": {Floor: 6},

	// 7: every store, by name.
	"internal/dsn": {Floor: 7, Same: []string{"store/mem"}, Leaf: true},

	// 7: nothing outlives the process.
	"store/mem": {Floor: 7, Leaf: true},

	// 6: HTTP in front of providers.
	"proxy": {Floor: 6, Same: []string{"emulate", "proxy/internal/dialect"}, External: []string{gjson, sjson, zstd, ws}},
	// 6: the providers' own compaction, in front of a proxy.
	"emulate":                {Floor: 6, External: []string{gjson, sjson}},
	"proxy/internal/dialect": {Floor: 6, External: []string{gjson, sjson}},
	// 6: what the adapters to agent frameworks share; each is a module of its own.
	"adapter": {Floor: 6},
	// 6: beside the front door, for programs.
	"policy/policyfile": {Floor: 6, External: []string{goyaml}},
	// 6: what agents ask their hooks.
	"internal/hook": {Floor: 6, External: []string{gjson, sjson}},
	// What files of policies and settings are parsed by.
	"internal/yamlfile": {Floor: 0, External: []string{goyaml}},

	// 5: the front door.
	".":      {Floor: 5, Same: []string{"policy"}},
	"policy": {Floor: 5},

	// 4: the ladder and its rungs.
	"strategy": {Floor: 4, External: []string{gjson}},

	// 3: what makes the text that stands in place of messages.
	"summarize":       {Floor: 3, External: []string{gjson, uax29}},
	"summarize/model": {Floor: 3, Same: []string{"summarize"}, External: []string{gjson}},

	"event/quality": {Floor: 3},

	// 3: what brings content back that was externalized.
	"internal/rehydrate": {Floor: 3, External: []string{gjson}},

	// 2: contracts and portable types.
	"artifact":   {Floor: 2, Same: []string{"store/keyring"}},
	"transcript": {Floor: 2, External: []string{gjson, zstd}},
	"recall":     {Floor: 2, Same: []string{"artifact", "event", "internal/failsafe"}, External: []string{gjson, snowball}},
	"store":      {Floor: 2, Same: []string{"store/apikey", "artifact", "event", "store/keyring"}},
	"event":      {Floor: 2},
	"job":        {Floor: 2},
	"llm":        {Floor: 2, External: []string{gjson}},

	"store/apikey":  {Floor: 2},
	"store/keyring": {Floor: 2},

	// What implementations in files have in common.
	"internal/durable": {Floor: 2, Same: []string{"internal/crash"}},

	// Where tests end a process. Only those import an external package.
	"internal/crash": {Floor: 2, External: []string{pgx}},

	// What the clients of models have in common.
	"internal/retry":        {Floor: 2, Same: []string{"llm"}},
	"internal/apicodec":     {Floor: 2},
	"internal/sse":          {Floor: 2},
	"internal/httpbody":     {Floor: 2, Same: []string{"internal/sse", "internal/failsafe"}, External: []string{zstd}},
	"internal/failsafe":     {Floor: 2},
	"llm/internal/exchange": {Floor: 2, Same: []string{"llm", "internal/retry"}, External: []string{gjson}},

	// Leaves: implementations, which only programs and tests choose.
	"internal/care":           {Floor: 2, Same: []string{"store", "artifact", "event", "job", "recall"}},
	"event/slogsink":          {Floor: 2, Same: []string{"event"}, Leaf: true},
	"event/otelsink":          {Floor: 2, Same: []string{"event"}, External: []string{otel}, Leaf: true},
	"job/river":               {Floor: 2, Same: []string{"job"}, External: []string{river, pgx}, Leaf: true},
	"llm/anthropic":           {Floor: 2, Same: []string{"llm", "llm/internal/exchange"}, External: []string{gjson}, Leaf: true},
	"llm/gemini":              {Floor: 2, Same: []string{"llm", "llm/internal/exchange"}, External: []string{gjson}, Leaf: true},
	"llm/openai":              {Floor: 2, Same: []string{"llm", "llm/internal/exchange"}, External: []string{gjson}, Leaf: true},
	"store/internal/sqlstore": {Floor: 2, Same: []string{"store", "store/apikey", "artifact", "event", "store/keyring", "internal/durable", "internal/crash"}},
	"store/sqlite":            {Floor: 2, Same: []string{"store", "store/internal/sqlstore", "internal/durable"}, External: []string{sqlite}, Leaf: true},
	"store/postgres":          {Floor: 2, Same: []string{"store", "store/internal/sqlstore"}, External: []string{pgx}, Leaf: true},

	// 1: pure functions. The renderer takes the names of the APIs from wire and
	// knows no codec.
	"token":               {Floor: 1, External: []string{tiktoken}},
	"strategy/cut":        {Floor: 1, Same: []string{"token"}},
	"render":              {Floor: 1, Same: []string{"token", "wire", "internal/hosted"}, External: []string{gjson}},
	"wire":                {Floor: 1},
	"wire/anthropic":      {Floor: 1, Same: []string{"wire", "wire/internal/codec", "wire/internal/shape", "internal/hosted"}, External: []string{gjson}},
	"wire/gemini":         {Floor: 1, Same: []string{"wire", "wire/internal/codec", "wire/internal/shape", "internal/hosted"}, External: []string{gjson}},
	"wire/openai":         {Floor: 1, Same: []string{"wire", "wire/internal/codec", "wire/internal/shape", "internal/hosted"}, External: []string{gjson}},
	"internal/text":       {Floor: 1, Same: []string{"wire"}},
	"wire/internal/codec": {Floor: 1, Same: []string{"wire"}, External: []string{gjson}},
	"wire/internal/shape": {Floor: 1, Same: []string{"wire"}, External: []string{gjson}},
	// What a message, a call or a result is about, in a few words.
	"internal/describe": {Floor: 1, External: []string{gjson}},
	"internal/injected": {Floor: 1, Same: []string{"internal/hosted"}, External: []string{gjson}},
	// Which of what a person said stands.
	"internal/standing": {Floor: 1},
	"internal/hosted":   {Floor: 1, Same: []string{"wire"}, External: []string{gjson}},

	// 1: the JSON form of messages and prompts.
	"api/neutral":        {Floor: 1, Same: []string{"internal/hosted"}},
	"internal/ownformat": {Floor: 0, Same: []string{"thread", "internal/lazyregexp"}},

	// 1: what requests ask of their provider's own compaction.
	"internal/native": {Floor: 1, Same: []string{"wire", "wire/anthropic"}, External: []string{gjson, sjson}},

	// 1: where the work stands, read off a log.
	"summarize/internal/work": {Floor: 1, Same: []string{"internal/injected"}, External: []string{gjson}},

	// 1: which conversation a request goes on with.
	"proxy/internal/identify": {Floor: 1, Same: []string{"wire", "internal/hosted", "internal/injected"}, External: []string{gjson, sjson}},

	// 0: values.
	"thread":             {Floor: 0, Same: []string{"internal/canonjson"}},
	"prompt":             {Floor: 0, Same: []string{"thread"}},
	"plan/state":         {Floor: 0, Same: []string{"thread"}},
	"plan/summary":       {Floor: 0, Same: []string{"thread", "plan/state", "internal/glyph"}},
	"internal/glyph":     {Floor: 0},
	"plan":               {Floor: 0, Same: []string{"thread", "plan/summary", "plan/state"}},
	"policy/toolpolicy":  {Floor: 0, Same: []string{"thread", "internal/toolclass"}},
	"internal/toolclass": {Floor: 0, Same: []string{"thread", "internal/clip", "internal/scan", "internal/shell"}, External: []string{gjson}},
	"internal/canonjson": {Floor: 0, Same: []string{"internal/rawjson"}, External: []string{gjson}},
	// What is secret in texts.
	"internal/secret":     {Floor: 0, Same: []string{"thread", "prompt", "internal/lazyregexp"}},
	"internal/redact":     {Floor: 2},
	"internal/suggest":    {Floor: 0},
	"internal/clip":       {Floor: 0, External: []string{uax29}},
	"internal/effort":     {Floor: 0},
	"internal/ident":      {Floor: 0, Same: []string{"internal/effort", "internal/scan"}},
	"internal/scan":       {Floor: 0},
	"internal/shell":      {Floor: 0, Same: []string{"internal/clip", "internal/lazyregexp", "internal/rawjson", "internal/scan"}, External: []string{gjson, shsyntax}},
	"internal/jsonrows":   {Floor: 0, Same: []string{"internal/rawjson", "internal/effort"}, External: []string{gjson}},
	"internal/rawjson":    {Floor: 0, External: []string{gjson}},
	"internal/jsonedit":   {Floor: 0, Same: []string{"internal/rawjson"}, External: []string{gjson, sjson}},
	"internal/lru":        {Floor: 0},
	"internal/media":      {Floor: 0, Same: []string{"thread"}},
	"internal/lazyregexp": {Floor: 0},
	"internal/ratelimit":  {Floor: 0, Same: []string{"internal/lru"}},

	// For tests.
	"internal/arch":              {Support: true},
	"internal/test/corpus":       {Support: true},
	"internal/test/items":        {Support: true, External: []string{gjson}},
	"internal/test/cputime":      {Support: true},
	"internal/test/golden":       {Support: true},
	"internal/test/leak":         {Support: true},
	"internal/test/scenario":     {Support: true, External: []string{goyaml}},
	"internal/test/longhistory":  {Support: true},
	"internal/test/hostile":      {Support: true, External: []string{gjson, zstd, ws}},
	"internal/test/threadgen":    {Support: true},
	"internal/test/property":     {Support: true},
	"internal/test/scripttest":   {Support: true, External: []string{testscript}},
	"internal/test/apikeytest":   {Support: true},
	"internal/test/artifacttest": {Support: true},
	"internal/test/proxytest":    {Support: true, External: []string{gjson, sjson, zstd}},
	"internal/test/keyringtest":  {Support: true},
	"internal/test/llmtest":      {Support: true, External: []string{gjson}},
	"internal/test/adaptertest":  {Support: true, External: []string{gocmp}},
	"internal/test/jobtest":      {Support: true},
	"internal/test/pgtest":       {Support: true, External: []string{pgx}},
	"store/storetest":            {Support: true, External: []string{gocmp}},
	"internal/test/strategytest": {Support: true},
	"internal/test/wiretest":     {Support: true, External: []string{gjson, sjson}},

	"internal/test/injectedtest": {Support: true},
}

// reserved are functions that one package calls for all others.
var reserved = []arch.Reserved{
	{
		Import: gjson, Names: []string{"Valid", "ValidBytes"},
		Why: "it recurses without a bound, and a text of brackets ends the process; use internal/rawjson",
	},
	{
		Import: "encoding/json", Names: []string{"Valid"},
		Why: "what is JSON here has one reader and one depth: use internal/rawjson",
	},
	{
		Import: "text/template", Names: []string{"New", "Must", "Template"},
		Why: "it calls methods by name, and the program then keeps every method of every type: 3 MB; write the text by code",
	},
	{
		Import: "html/template", Names: []string{"New", "Must", "Template"},
		Why: "it calls methods by name, and the program then keeps every method of every type: 3 MB; write the page by code, as lab/eval/htmlreport does",
	},
}

// exceptions are few, and each says why.
var exceptions = []arch.Exception{
	{Rule: "context-value", At: "internal/daemon/observe.go", Why: "the log of a request: middleware of net/http has no other way to hand it on"},
	{Rule: "many-names", At: "thread", Why: "the values of the ground: messages, their parts, and who wrote them"},
	{Rule: "many-values", At: "thread", Why: "its roles, kinds, media and authors: each list is whole in one place"},
}

// ceilings go down with what is taken out. They go up only by what a new capability was
// allowed before it was built; those of the summaries never do.
var ceilings = &arch.Ceilings{
	Lines: []arch.LineCeiling{
		{Of: "floor 0", Floor: 0, Most: 10083},
		{Of: "floor 1", Floor: 1, Most: 21125},
		{Of: "floor 2", Floor: 2, Most: 23533},
		{Of: "floor 3", Floor: 3, Most: 11213},
		{Of: "floor 4", Floor: 4, Most: 3093},
		{Of: "floor 5", Floor: 5, Most: 10186},
		{Of: "floor 6", Floor: 6, Most: 12034},
		{Of: "floor 7", Floor: 7, Most: 21543},
		{Of: "summaries", In: []string{"summarize", "internal/shell", "internal/ident", "plan/summary", "plan/state"}, Most: 13742},
	},
	Packages: 101, Public: 45, Names: 748,
	Methods: 25, Types: map[string]int{
		"summarize/internal/work.fold":   27,
		"summarize.selection":            28,
		"summarize.builder":              51,
		"strategy.View":                  68,
		"store/internal/sqlstore.tenant": 37,
		"store/internal/sqlstore.DB":     29,
		"api.Client":                     36,
	},
}

func TestModule(t *testing.T) {
	problems, err := arch.Check("../..", arch.Rules{
		Packages:      floors,
		TestLibraries: []string{gocmp, jsonschema, goleak, sqlite, rapid, testscript, mcpsdk},
		Reserved:      reserved,
		Properties:    "internal/test/property",
		Ceilings:      ceilings,
		Exceptions:    exceptions,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}
