package backend

import "context"

type acceptedKey struct{}

// OnAccepted returns a context for a call. The storage's Accepted calls the function, possibly
// repeatedly: what is left then is to wait.
func OnAccepted(ctx context.Context, accepted func()) context.Context {
	return context.WithValue(ctx, acceptedKey{}, accepted)
}

// Accepted reports that the storage has accepted the call of this context. What is left is to wait
// for its end, during which other calls can be made. It can be repeated.
func Accepted(ctx context.Context) {
	if accepted, has := ctx.Value(acceptedKey{}).(func()); has {
		accepted()
	}
}
