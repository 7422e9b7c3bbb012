package river

import (
	"context"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"
)

// sqliteDriver is River's driver for SQLite with a fault of v0.31.0 mended: it
// keeps the times of a job that failed or was put off as Go words them, in the
// zone of the machine, and compares the words with others in UTC. East of
// Greenwich the next attempt would come hours late, west of it at once.
type sqliteDriver struct{ *riversqlite.Driver }

// GetExecutor implements riverdriver.Driver.
func (d sqliteDriver) GetExecutor() riverdriver.Executor {
	return sqliteExecutor{d.Driver.GetExecutor()}
}

type sqliteExecutor struct{ riverdriver.Executor }

// JobSetStateIfRunningMany implements riverdriver.Executor.
func (e sqliteExecutor) JobSetStateIfRunningMany(ctx context.Context, p *riverdriver.JobSetStateIfRunningManyParams) ([]*rivertype.JobRow, error) {
	fixed := *p
	fixed.ScheduledAt, fixed.FinalizedAt = inUTC(p.ScheduledAt), inUTC(p.FinalizedAt)
	return e.Executor.JobSetStateIfRunningMany(ctx, &fixed)
}

// inUTC returns the times in UTC, and without the reading of the monotonic clock,
// which would be among the words.
func inUTC(times []*time.Time) []*time.Time {
	out := make([]*time.Time, len(times))
	for i, at := range times {
		if at != nil {
			utc := at.UTC().Round(0)
			out[i] = &utc
		}
	}
	return out
}
