package csi

import (
	"errors"
	"time"
)

// lockPatience is how long a call waits for another one for the same volume.
const lockPatience = time.Minute

// errLocked: another call for the same volume hasn't ended.
var errLocked = errors.New("another mount, unmount or growth of the same volume isn't over")
