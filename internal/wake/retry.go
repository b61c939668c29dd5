package wake

import "time"

// AfterConflict is the delay before a retry after a conflict. The cache needs a moment to show
// what the other writer wrote.
const AfterConflict = 50 * time.Millisecond

// AfterContention is the delay before a retry if another worker holds the object.
const AfterContention = time.Second

// WithoutAnswer is the delay before the next call to a backend that does not report when its
// work is done. Other backends wake the caller.
const WithoutAnswer = 30 * time.Second
