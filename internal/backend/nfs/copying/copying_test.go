package copying

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfs3"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfstest"
)

// place is where copies of one directory are made, which wait before their end until release is closed.
type place struct {
	*testing.T
	client           *nfs3.Client
	copier           Copier
	entered, release chan struct{}
	ended            chan error
}

func newPlace(t *testing.T) *place {
	t.Helper()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "from"), 0o755); err != nil {
		t.Fatal(err)
	}
	server, err := nfstest.Serve(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	client := nfs3.NewClient(nfstest.Host, nfs3.Options{Port: server.Port(), MountPort: server.Port(), CallTimeout: time.Minute})
	t.Cleanup(client.Close)
	return &place{T: t, client: client, entered: make(chan struct{}), release: make(chan struct{}), ended: make(chan error, mostCopies)}
}

func (p *place) copy(id, namespace string) error {
	root, err := p.client.Open(p.Context(), nfstest.Share)
	if err != nil {
		return err
	}
	defer root.Close()
	return p.copier.Run(p.Context(), root, Copy{
		ID: id, Namespace: namespace, From: "from", To: id, Aside: id + ".aside", Until: time.Now().Add(time.Minute),
		Complete: func() error {
			p.entered <- struct{}{}
			<-p.release
			return nil
		},
	})
}

// begin begins copies, and returns once all wait before their end.
func (p *place) begin(namespace string, ids ...string) {
	p.Helper()
	for _, id := range ids {
		go func() { p.ended <- p.copy(id, namespace) }()
		select {
		case <-p.entered:
		case err := <-p.ended:
			p.Fatalf("copy %s ended: %v", id, err)
		}
	}
}

func (p *place) mustWait(id, namespace, words string) {
	p.Helper()
	if err := p.copy(id, namespace); !errors.Is(err, backend.InProgress) || !strings.Contains(err.Error(), words) {
		p.Errorf("copy %s of namespace %s: %v", id, namespace, err)
	}
}

func TestACopyWaitsForItsTurn(t *testing.T) {
	p := newPlace(t)
	p.begin("shop", "a", "b")
	p.mustWait("c", "shop", "2 copies are being made on the server, 2 of them for namespace shop")
	p.begin("bank", "d", "e")
	p.mustWait("f", "office", "4 copies are being made on the server, 0 of them")
	p.mustWait("a", "shop", "an earlier call is still copying")

	close(p.release)
	for range 4 {
		if err := <-p.ended; err != nil {
			t.Error(err)
		}
	}

	go func() { <-p.entered }()
	if err := p.copy("c", "shop"); err != nil {
		t.Errorf("it isn't made once the others are: %v", err)
	}
}
