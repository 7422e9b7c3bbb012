package summarize

// shares are the parts of a budget, as ratios, that kinds of what there is to say may take.
type shares struct {
	// floors are what each section may fill before the sections compete: without them the
	// most numerous kind would take it all.
	floors [sections]float32
	// requests: the user's messages in full, before they are trimmed in the middle.
	requests float32
	// snippets: lines of output, before all else that there is to say is said.
	snippets float32
	// changes is the weight of a change, and no share.
	changes float32
}

var largeShares = shares{
	floors: [sections]float32{
		secConstraint: 0.08, secPlan: 0.08, secDecision: 0.06, secFailed: 0.14, secSaid: 0.45, secReport: 0.06, secChange: 0.10, secFile: 0.12,
		secOutcome: 0.05, secFact: 0.05, secOpen: 0.04, secArtifact: 0.05, secSnippet: 0.15,
	},
	requests: 0.30, snippets: 0.20, changes: wordsWeight,
}

// smallShares are those of a small budget: a reader of so little needs the story.
var smallShares = shares{
	floors: [sections]float32{
		secConstraint: 0.08, secPlan: 0.08, secDecision: 0.06, secFailed: 0.14, secSaid: 0.60, secReport: 0.04, secChange: 0.10, secFile: 0.08,
		secOutcome: 0.0167, secFact: 0.05, secOpen: 0.04, secArtifact: 0.05, secSnippet: 0.05,
	},
	requests: 0.20, snippets: 0.10, changes: wordsWeight / 2,
}

// smallBudget is the budget, in tokens, below which it is a small one.
const smallBudget = 4000

// shares are those of the selection's budget.
func (s *selection) shares() *shares {
	if s.budget > 0 && s.budget < smallBudget {
		return &smallShares
	}
	return &largeShares
}
