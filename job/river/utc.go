package river

import (
	"context"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"
)

// sqliteDriver works around a bug in River v0.31.0: it stores the times of failed and snoozed
// jobs as text in the local time zone and compares it with text in UTC. East of Greenwich the
// next attempt would come hours late, west of it at once.
type sqliteDriver struct{ *riversqlite.Driver }

func (d sqliteDriver) GetExecutor() riverdriver.Executor {
	return sqliteExecutor{d.Driver.GetExecutor()}
}

type sqliteExecutor struct{ riverdriver.Executor }

func (e sqliteExecutor) JobSetStateIfRunningMany(ctx context.Context, p *riverdriver.JobSetStateIfRunningManyParams) ([]*rivertype.JobRow, error) {
	fixed := *p
	fixed.ScheduledAt, fixed.FinalizedAt = inUTC(p.ScheduledAt), inUTC(p.FinalizedAt)
	return e.Executor.JobSetStateIfRunningMany(ctx, &fixed)
}

// inUTC returns the times in UTC, without the monotonic clock reading, which would be in the
// text.
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
