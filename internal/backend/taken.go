package backend

import "context"

type takenKey struct{}

// OnTaken returns a context for a call whose caller wants to know when the storage has
// taken it, and what is left is to wait.
func OnTaken(ctx context.Context, taken func()) context.Context {
	return context.WithValue(ctx, takenKey{}, taken)
}

// Taken says that the storage has taken the call of this context. What is left is to wait
// for its end, which keeps no other call from being made. It can be repeated.
func Taken(ctx context.Context) {
	if taken, wanted := ctx.Value(takenKey{}).(func()); wanted {
		taken()
	}
}
