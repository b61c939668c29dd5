package csi

import (
	"errors"
	"time"
)

// turnPatience is how long a pod waits for another one's turn at a volume.
const turnPatience = time.Minute

// errTurn says that something else is still at work on a volume.
var errTurn = errors.New("another mount, unmount or growth of the same volume isn't over")
