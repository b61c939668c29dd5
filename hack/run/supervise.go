package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/cluster"
)

const (
	restartPause  = time.Second
	checkInterval = 2 * time.Second
	deafChecks    = 5
)

// errAPIServer ends a run: nothing works without the API server.
var errAPIServer = errors.New("the API server does not answer any more")

// supervise starts programs again that ended, and ends the run if the API
// server is gone.
func supervise(ctx context.Context, c *cluster.Cluster, cancel context.CancelCauseFunc) {
	for _, program := range []*cluster.Program{c.Manager, c.Agent, c.Cloud} {
		go keepRunning(ctx, program)
	}
	for deaf := 0; deaf < deafChecks && pause(ctx, checkInterval); deaf++ {
		check, done := context.WithTimeout(ctx, checkInterval)
		if err := c.Client.Get(check, client.ObjectKey{Name: corev1.NamespaceDefault}, &corev1.Namespace{}); err == nil {
			deaf = -1
		}
		done()
	}
	if ctx.Err() == nil {
		cancel(fmt.Errorf("%w; see %s", errAPIServer, c.Folder.Log("control-plane")))
	}
}

func keepRunning(ctx context.Context, program *cluster.Program) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-program.Ended():
		}
		if !pause(ctx, restartPause) {
			return
		}
		printLine(time.Now(), "program", program.Name,
			fmt.Sprintf("ended by itself (%v) and is started again; why: %s", program.Err(), near(program.LogFile)))
		if err := program.Start(); err != nil {
			printLine(time.Now(), "program", program.Name, err.Error())
			return
		}
	}
}

func pause(ctx context.Context, duration time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(duration):
		return true
	}
}
