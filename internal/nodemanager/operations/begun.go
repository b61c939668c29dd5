package operations

// begun is the operations that a View began. The lock of Operations guards it. The methods of nil do
// nothing.
type begun struct {
	// running is how many are queued or run.
	running int
	// hasEnded: one has ended, and its owner doesn't know.
	hasEnded bool
	// left: its owner waits for none any more.
	left bool
	// settled is closed when none runs; nil: its owner doesn't wait.
	settled chan struct{}
}

// add counts an operation.
func (b *begun) add() *begun {
	if b != nil {
		b.running++
	}
	return b
}

// end counts the end of an operation, and reports whether the View's owner will see it.
func (b *begun) end() (seen bool) {
	if b == nil || b.left {
		return false
	}
	b.running--
	b.hasEnded = true
	if b.running == 0 && b.settled != nil {
		close(b.settled)
		b.settled = nil
	}
	return true
}
