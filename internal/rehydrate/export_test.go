package rehydrate

// Shown returns what the thread was shown within the cooldown.
func (r *Rehydrator) Shown(threadID string) []shownArtifact { return r.cooldowns.shown(threadID) }

// Handles reports whether the handler answers the named tool.
func (h *Handler) Handles(name string) bool {
	_, ok := h.find(name)
	return ok
}
