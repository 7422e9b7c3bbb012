package sqlite

// OpenSteps is Open with a function that is told each step of a write.
var OpenSteps = open
