package strategy

// The levels, as tests name them.
const Generous, Bare = generous, bare
