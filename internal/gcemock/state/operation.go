package state

import (
	"encoding/json"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// Operation is a change under way, or what became of it.
type Operation struct {
	// Public is what clients see.
	Public compute.Operation
	// Method and Job say what to do, also after a restart.
	Method string
	Job    json.RawMessage
	// RequestID and Request identify a request that is sent again.
	RequestID, Request string
	// Failure is the error that it is to end in, by a fault.
	Failure *wire.Error
	// Delay is how much longer it takes, by a fault.
	Delay time.Duration
}
