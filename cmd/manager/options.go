package main

import (
	"os"
	"strings"
	"time"

	"github.com/stowage-dev/stowage/internal/program"
)

type options struct {
	program.Options
	scope                   string
	leaderElect             bool
	leaderElectionNamespace string
	localBase               string
	nfsMounts               string
	resync                  time.Duration
	attachmentCheck         time.Duration
	forceDetachAfter        time.Duration
}

// namespace returns the manager's own namespace; empty if neither a flag nor the pod names it.
func (o options) namespace() string {
	if o.leaderElectionNamespace != "" {
		return o.leaderElectionNamespace
	}
	name, err := os.ReadFile(podNamespace)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

// podNamespace is the file with the name of a pod's own namespace.
const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
