package river

// The same with another time between two looks for jobs, for tests that would wait for
// it.
var (
	OnSQLiteLooking   = onSQLite
	OnPostgresLooking = onPostgres
)
