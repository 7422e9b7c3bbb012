package quality

// Asks is what a Monitor asks of each message.
func Asks(text string) (Class, bool) { return asks(text) }

// The signs, as tests name them.
const (
	AskedAgain, LostContent   = askedAgain, lostContent
	ArtifactRead, UserRepeats = artifactRead, userRepeats
)
