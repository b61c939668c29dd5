package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"sync"
	"time"

	"github.com/stowage-dev/stowage/test/controlplane"
	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/story"
	"github.com/stowage-dev/stowage/test/testbed"
)

// patience is how long anything may take, with many stories told at once on a machine
// that is busy.
const patience = 5 * time.Minute

// bed is what all stories are told on.
type bed struct {
	testbed.Bed
	story   *story.Story
	overlay string
	// chosen are the stories that are told, by name.
	chosen *regexp.Regexp

	share                *guests.NFSServer
	cloud, machinesCloud *cloud

	mu       sync.Mutex
	problems []error
}

// newBed reads what `make e2e` was asked for.
func newBed(ctx context.Context, folder guests.Folder) (*bed, error) {
	chosen, err := regexp.Compile(os.Getenv("STOWAGE_E2E_STORIES"))
	if err != nil {
		return nil, fmt.Errorf("reading which stories are to be told: %w", err)
	}
	b := &bed{Bed: testbed.Bed{Folder: folder}, story: story.New(ctx), overlay: besideIt, chosen: chosen}
	if asked := os.Getenv("STOWAGE_E2E_OVERLAY"); asked != "" {
		b.overlay = asked
	}
	return b, nil
}

// fail remembers what didn't hold in one story; the others go on.
func (b *bed) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, err)
}

// end is the verdict on all stories.
func (b *bed) end(ctx context.Context) error {
	if len(b.problems) > 0 {
		b.story.Fail(errors.Join(b.problems...))
	}
	if b.story.Err() != nil {
		// Whoever ended the test wants to know, too.
		b.show(context.WithoutCancel(ctx))
	}
	verdict := b.story.End()
	b.stay(ctx)
	return verdict
}

// stay keeps the cluster for people to look at, if they asked for it.
func (b *bed) stay(ctx context.Context) {
	if os.Getenv("STOWAGE_E2E_STAY") == "" || b.Plane == nil {
		return
	}
	kubectl, err := controlplane.Binary("kubectl")
	if err != nil {
		fmt.Println(err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	fmt.Printf("\nThe cluster stays until Ctrl-C. To look at it:\n\n  nsenter -t $(pgrep -f 'inside .*/%s$') -m -n -p %s --kubeconfig %s get pods -A\n",
		b.Folder.Name(), kubectl, b.kubeconfig())
	<-ctx.Done()
}
