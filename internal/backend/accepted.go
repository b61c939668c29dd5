package backend

import "context"

type acceptedKey struct{}

// OnTaken returns a context for a call whose caller wants to know when the storage has
// taken it, and what is left is to wait.
func OnAccepted(ctx context.Context, accepted func()) context.Context {
	return context.WithValue(ctx, acceptedKey{}, accepted)
}

// Taken says that the storage has taken the call of this context. What is left is to wait
// for its end, which keeps no other call from being made. It can be repeated.
func Accepted(ctx context.Context) {
	if accepted, wanted := ctx.Value(acceptedKey{}).(func()); wanted {
		accepted()
	}
}
