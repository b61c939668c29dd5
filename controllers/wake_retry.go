package controllers

import "time"

// conflictRetry is how soon what met a conflict is looked at again: the
// cache needs a moment to see what the other writer wrote.
const conflictRetry = 50 * time.Millisecond

// contendedRetry is how soon is tried again what another is just at work on.
const contendedRetry = time.Second

// retryUnanswered is how soon a backend that doesn't tell when it is done is
// asked again; those that do wake who asked.
const retryUnanswered = 30 * time.Second
