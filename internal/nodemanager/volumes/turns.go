package volumes

import "github.com/stowage-dev/stowage/internal/keyed"

// Turns are the locks of what several pods of the node share. A new user takes keyed.Locks.
type Turns = keyed.Locks
