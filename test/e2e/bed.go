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

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/test/controlplane"
	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/kubenode"
	"github.com/stowage-dev/stowage/test/story"
)

// patience is how long anything may take, with many stories told at once on a machine
// that is busy.
const patience = 5 * time.Minute

// bed is what all stories are told on.
type bed struct {
	story   *story.Story
	folder  guests.Folder
	overlay string
	// chosen are the stories that are told, by name.
	chosen *regexp.Regexp

	guests []*guests.Node
	nodes  []*kubenode.Node
	plane  *controlplane.ControlPlane
	client client.Client
	share  *guests.NFSServer

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
	b := &bed{story: story.New(ctx), folder: folder, overlay: "default", chosen: chosen}
	if asked := os.Getenv("STOWAGE_E2E_OVERLAY"); asked != "" {
		b.overlay = asked
	}
	return b, nil
}

// connect makes the administrator's client.
func (b *bed) connect() error {
	scheme, err := program.Scheme()
	if err != nil {
		return err
	}
	b.client, err = client.New(b.plane.Config, client.Options{Scheme: scheme})
	return err
}

// each does something with all nodes at once.
func (b *bed) each(do func(*kubenode.Node) error) error {
	problems := make([]error, len(b.nodes))
	var all sync.WaitGroup
	for i, node := range b.nodes {
		all.Go(func() { problems[i] = do(node) })
	}
	all.Wait()
	return errors.Join(problems...)
}

// node is the node of a name.
func (b *bed) node(name string) *kubenode.Node {
	for _, node := range b.nodes {
		if node.Name == name {
			return node
		}
	}
	return nil
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
	if os.Getenv("STOWAGE_E2E_STAY") == "" || b.plane == nil {
		return
	}
	kubectl, err := controlplane.Binary("kubectl")
	if err != nil {
		fmt.Println(err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	fmt.Printf("\nThe cluster stays until Ctrl-C. To look at it:\n\n  nsenter -t $(pgrep -f 'inside .*/%s$') -m -n -p %s --kubeconfig %s get pods -A\n",
		b.folder.Name(), kubectl, b.kubeconfig())
	<-ctx.Done()
}
