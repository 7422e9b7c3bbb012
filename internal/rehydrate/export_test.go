package rehydrate

// Shown returns what the thread was shown within the cooldown.
func (r *Rehydrator) Shown(threadID string) []shownArtifact { return r.cooldowns.shown(threadID) }
