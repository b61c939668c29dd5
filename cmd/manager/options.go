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

// namespace is the manager's own; empty where nobody says.
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

// podNamespace is where a pod finds the name of its own namespace.
const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
