package local

import "github.com/stowage-dev/stowage/internal/backend/local/requests"

// Requests are those of all backends.
func (k Kind) Requests() *requests.Requests { return k.requests }
