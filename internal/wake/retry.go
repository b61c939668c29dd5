package wake

import "time"

// AfterConflict is how soon what met a conflict is looked at again: the
// cache needs a moment to see what the other writer wrote.
const AfterConflict = 50 * time.Millisecond

// AfterContention is how soon is tried again what another is just at work on.
const AfterContention = time.Second

// WithoutAnswer is how soon a backend that doesn't tell when it is done is
// asked again; those that do wake who asked.
const WithoutAnswer = 30 * time.Second
