package keyring

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Current returns the id of a tenant's newest key, or "" if it has none yet.
func (r *Keyring) Current(ctx context.Context, tenant string) (keyID string, err error) {
	defer wrapErr(&err, "Current", tenant)
	version, err := r.newest(ctx, tenant)
	if err != nil || version == 0 {
		return "", err
	}
	return nameOf(version), nil
}

func (r *Keyring) newest(ctx context.Context, tenant string) (int, error) {
	return r.count(ctx, r.holder(tenant), r.refresh)
}

// Stale reports whether text was sealed with an older key than Seal uses now. The first
// Overhead bytes are enough. The error wraps ErrOpen if it is not sealed text.
func (r *Keyring) Stale(ctx context.Context, tenant string, sealed []byte) (stale bool, err error) {
	defer wrapErr(&err, "Stale", tenant)
	version, err := versionOf(sealed)
	if err != nil {
		return false, err
	}
	newest, err := r.newest(ctx, tenant)
	return version < newest, err
}

// Erased reports whether the keys of a tenant were erased.
func (r *Keyring) Erased(ctx context.Context, tenant string) (erased bool, err error) {
	defer wrapErr(&err, "Erased", tenant)
	_, err = r.newest(ctx, tenant)
	if errors.Is(err, ErrErased) {
		return true, nil
	}
	return false, err
}

// Rotate gives a tenant its next data key and returns the key's id. What was sealed before
// still opens. Concurrent calls may add one key together. Other processes use it after
// Options.Fresh at the latest.
func (r *Keyring) Rotate(ctx context.Context, tenant string) (keyID string, err error) {
	defer wrapErr(&err, "Rotate", tenant)
	h := r.holder(tenant)
	h.changing.Lock()
	defer h.changing.Unlock()
	before, err := r.count(ctx, h, r.load)
	if err != nil {
		return "", err
	}
	for range attempts {
		if err := r.add(ctx, h, 0); err != nil {
			return "", err
		}
		h.mu.Lock()
		n := len(h.keys)
		h.mu.Unlock()
		if n > before {
			return nameOf(n), nil
		}
	}
	return "", ErrConflict
}

// count returns how many keys a tenant has, after load or refresh.
func (r *Keyring) count(ctx context.Context, h *holder, look func(context.Context, *holder) error) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := look(ctx, h)
	return len(h.keys), err
}

// Tenants yields the tenants that have keys, as Keys.Tenants does.
func (r *Keyring) Tenants(ctx context.Context) iter.Seq2[string, error] { return r.keys.Tenants(ctx) }

// RotateMaster wraps every data key with the newest master key, and returns how many it
// changed. Data keys and sealed text stay the same. After it has returned no error, older
// master keys are no longer needed. The error names each tenant that failed; the others
// are done. It may be called again, and while the keys are in use.
func (r *Keyring) RotateMaster(ctx context.Context) (n int, err error) {
	var failed error
	for tenant, err := range r.keys.Tenants(ctx) {
		if err == nil {
			var changed int
			changed, err = r.rewrap(ctx, tenant)
			n += changed
		}
		if err != nil && !errors.Is(err, ErrErased) { // just erased: nothing to do
			failed = errors.Join(failed, fmt.Errorf("tenant %q: %w", tenant, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	if s, ok := r.keys.(Settler); ok && n > 0 {
		failed = errors.Join(failed, s.Settle(ctx))
	}
	if failed != nil {
		failed = fmt.Errorf("keyring.RotateMaster: %w", failed)
	}
	return n, failed
}

// rewrap does one tenant. It starts again if another process was faster.
func (r *Keyring) rewrap(ctx context.Context, tenant string) (n int, err error) {
	for range attempts {
		wrapped, err := r.keys.Load(ctx, tenant)
		if err != nil {
			return n, err
		}
		done := true
		for _, w := range wrapped {
			if w.Master == r.masters.newest().id {
				continue
			}
			key, err := r.masters.unwrap(w)
			if err != nil {
				return n, err
			}
			w.Revision++
			switch err := r.keys.Put(ctx, r.masters.wrap(w, key)); {
			case err == nil:
				n++
			case errors.Is(err, ErrConflict):
				done = false
			default:
				return n, err
			}
		}
		if done {
			return n, nil
		}
	}
	return n, ErrConflict
}

// Erase deletes the keys of a tenant for good: nothing that was sealed for it can be read
// any more, and nothing can be sealed for it again. Other processes that hold the keys in
// memory drop them after Options.Fresh.
func (r *Keyring) Erase(ctx context.Context, tenant string) (err error) {
	defer wrapErr(&err, "Erase", tenant)
	h := r.holder(tenant)
	h.changing.Lock()
	defer h.changing.Unlock()
	if err := r.keys.Erase(ctx, tenant); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keys, h.loaded = nil, time.Time{}
	return nil
}
