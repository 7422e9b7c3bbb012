package summarize

// shares divide a budget: floors, requests, mostRequests and snippets are ratios of it.
type shares struct {
	// floors are what each section may fill, in this order, before the sections compete.
	// Without them the most numerous kind of candidate would take everything.
	floors []floor
	// requests is for the user's messages in full, before they are trimmed in the middle;
	// mostRequests is for all of them at keptRequest bytes each.
	requests, mostRequests float32
	// snippets is for lines of output, until everything else worth saying is said.
	snippets float32
	// words and changes are no ratios: they weigh what the assistant said and what edits
	// changed.
	words, changes float32
}

type floor struct {
	section section
	share   float32
}

var largeShares = shares{
	floors: []floor{
		{secConstraint, 0.08}, {secPlan, 0.08}, {secFile, 0.12}, {secDecision, 0.06}, {secFailed, 0.14}, {secSaid, 0.45}, {secReport, 0.06},
		{secOutcome, 0.05}, {secFact, 0.05}, {secOpen, 0.04}, {secArtifact, 0.05}, {secChange, 0.10}, {secSnippet, 0.15},
	},
	requests: 0.30, mostRequests: 0.55, snippets: 0.20, words: wordsWeight, changes: wordsWeight,
}

// smallShares are for a small budget: its reader needs the story.
var smallShares = shares{
	floors: []floor{
		{secConstraint, 0.08}, {secPlan, 0.08}, {secFile, 0.08}, {secDecision, 0.06}, {secFailed, 0.14}, {secSaid, 0.60}, {secReport, 0.04},
		{secOutcome, 0.0167}, {secFact, 0.05}, {secOpen, 0.04}, {secArtifact, 0.05}, {secChange, 0.10}, {secSnippet, 0.05},
	},
	requests: 0.20, mostRequests: 0.55, snippets: 0.10, words: wordsWeight, changes: wordsWeight / 2,
}

// modelFloors replace the others where a model wrote facts, decisions and open items: what
// it understood comes before sentences that code found.
var modelFloors = []floor{
	{secConstraint, 0.08}, {secPlan, 0.10}, {secOpen, 0.10}, {secDecision, 0.15}, {secFact, 0.45}, {secFailed, 0.15}, {secFile, 0.06}, {secSaid, 0.12},
	{secChange, 0.05}, {secOutcome, 0.03}, {secArtifact, 0.03}, {secSnippet, 0.03},
}

// smallBudget is the budget, in tokens, below which smallShares apply.
const smallBudget = 4000

// sharesFor returns the shares of a budget in tokens; 0 is no limit. byModel says that a
// model wrote some of the items: it tells what the user wanted as well.
func sharesFor(budget int, byModel bool) shares {
	s := largeShares
	if 0 < budget && budget < smallBudget {
		s = smallShares
	}
	if byModel {
		s.floors, s.requests, s.mostRequests, s.words = modelFloors, 0.20, 0.30, wordsWithModel
	}
	return s
}
